"""How finely methods on a curve divide a coordinate: its bits.

An exact search that learns the next key from every miss wants as many bits as fit. The slides' greedy search enumerates
cubes, and their number grows with every bit while the entries do not get more: it wants about one cell per entry, that
is round(log2 entries ÷ D) bits, at least 1. That costs 1 to 1.5 times as many lookups as the best resolution,
but on wide boxes up to 8 times (docs/covering-guarantee.md).

An index that follows its entries is divided anew when they have doubled since it was last divided, or fallen to a
quarter: an addition or removal pays for a constant number of moves. One batch counts as its entries one by one.
"""

from __future__ import annotations

from typing import Annotated

from covering.contract import CoveringIndex
from covering.quantiser import WORD
from coverlay import Key

Bits = Annotated[
    int | None,
    Key("bits of a coordinate on the curve; absent: a cell per entry (greedy searches) or as many as fit", "bits"),
]
_FINEST_DEFAULT = 16  # more bits separate few more bounds
_COARSEST_DEFAULT = 8  # below this a key hardly discriminates: take another word instead


def full_bits(dimensions: int) -> int:
    """As many as fill one word; where these would be too few, the fewest useful, over several words."""
    return max(_COARSEST_DEFAULT, min(_FINEST_DEFAULT, WORD // dimensions))


# The compiled engine compiles these two too.


def greedy_bits(entries: int, dimensions: int) -> int:
    """round(log2 entries ÷ D), at least 1: the most bits b with entries² ≥ 2^(D·(2b − 1))."""
    squared = 0  # ⌊log2 entries²⌋
    while entries * entries >> (squared + 1):
        squared += 1
    return max(1, (squared // dimensions + 1) // 2)


def divided_with(before: int, entries: int) -> int:
    """The entries when the index was last divided, now that it has so many; `before`: the same, before the update."""
    while entries >= 2 * before:
        before *= 2
    return max(1, entries) if 4 * entries <= before else before


class GreedyBits(CoveringIndex):
    """Base of the greedy searches: divided as their entries ask for, unless `bits` were given."""

    _divided = 1  # entries when it was last divided
    _follows = True

    def _divide(self, bits: int) -> None:
        """Use so many bits from now on."""
        raise NotImplementedError

    def insert(self, slot: int) -> None:
        super().insert(slot)
        self._follow(len(self))

    def insert_many(self, first: int, count: int) -> None:
        super().insert_many(first, count)
        self._follow(len(self))

    def delete(self, slot: int) -> None:
        super().delete(slot)
        self._follow(len(self) - 1)

    def _follow(self, entries: int) -> None:
        self._divided = divided_with(self._divided, entries)
        bits = greedy_bits(self._divided, 2 * self.attributes)
        if self._follows and bits != self.bits:
            self._divide(bits)

    def check_structure(self) -> None:
        super().check_structure()
        assert len(self) < 2 * self._divided
        assert self._divided < 4 * max(1, len(self))
        assert not self._follows or self.bits == greedy_bits(self._divided, 2 * self.attributes)
