"""Durations as small whole numbers of bounded relative error, so that percentiles need only counts.

The bucket of a value is its IEEE 754 bit pattern without sign and without all but the first SUBBITS bits of the
mantissa: every power of two is cut into 2^SUBBITS equal parts. Bit patterns of positive doubles are ordered like
the doubles, so buckets are ordered like the values, and no logarithm is taken whose last bit may differ from one
machine, or one engine, to the next.

A bucket [a, b) has b − a ≤ a ÷ 2^SUBBITS; its middle is within RELATIVE_ERROR of everything in it. Zero, negative
values and values too small for a normal double are in bucket 0, whose middle is 0.

Sums are taken in whole units (TIME_UNIT, WORK_UNIT, SHARE_UNIT): whole numbers below 2^53 add up to the same in any
order, so a mean does not depend on how a table is split, on one machine or on many. They are doubles all the same:
emulated searches take millions of years of simulated time, and sums beyond 2^53 must lose digits, not overflow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SUBBITS = 7  # 128 parts per power of two: 1 µs to 1 h in 4,100 buckets
PARTS = 1 << SUBBITS
RELATIVE_ERROR = 1 / (2 * PARTS)  # of the middle of a bucket against any value in it: 0.39 %
EXPONENT_BIAS = 1023
TIME_UNIT = 2.0**-16  # ms: 15 ns; sums are exact up to 4 years
WORK_UNIT = 2.0**-20  # ms: 1 ns, for searches; sums are exact up to 99 days
SHARE_UNIT = 2.0**-30
_MANTISSA_BITS = 52


def bucket_of(values: ArrayLike) -> NDArray[np.int32]:
    """The bucket of each value."""
    doubles = np.maximum(np.asarray(values, dtype=np.float64), 0.0) + 0.0  # −0.0 becomes 0.0
    buckets = np.ascontiguousarray(doubles).view(np.uint64) >> np.uint64(_MANTISSA_BITS - SUBBITS)
    buckets[buckets < PARTS] = 0  # not a normal number
    return buckets.astype(np.int32)


def middle_of(buckets: ArrayLike) -> NDArray[np.float64]:
    """The value of each bucket."""
    numbers = np.asarray(buckets, dtype=np.int64)
    parts = 1.0 + ((numbers & (PARTS - 1)) + 0.5) / PARTS
    return np.where(numbers == 0, 0.0, np.ldexp(parts, (numbers >> SUBBITS) - EXPONENT_BIAS))


def in_units(values: ArrayLike, unit: float) -> NDArray[np.float64]:
    """Each value as a whole number of units."""
    return np.rint(np.asarray(values, dtype=np.float64) / unit)
