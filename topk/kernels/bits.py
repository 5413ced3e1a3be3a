"""Bit tricks on 64-bit words that compile to a handful of instructions."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel

ZERO = np.uint64(0)
ONE = np.uint64(1)
FULL = ~np.uint64(0)


@kernel(inner=True)
def count_bits(word: Any) -> Any:
    """Set bits, by halves; the compiler recognises the pattern as a population count."""
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel(inner=True)
def bit_length(number: int) -> int:
    """As Python's, for number ≥ 0: the least n with number < 2ⁿ. For number − 1, the least n with number ≤ 2ⁿ."""
    found = 0
    while number > 0:
        found += 1
        number >>= 1
    return found


@kernel(inner=True)
def lowest_bit(word: Any) -> Any:
    """The position of the lowest set bit, which is the number of bits below it. The word must not be 0."""
    return np.int64(count_bits((word & (~word + ONE)) - ONE))
