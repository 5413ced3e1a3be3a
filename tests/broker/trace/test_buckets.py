"""Buckets keep the order of values and their size within the promised error, to the last bit the same everywhere."""

from __future__ import annotations

import math
import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from broker.trace.buckets import PARTS, RELATIVE_ERROR, SUBBITS, bucket_of, in_units, middle_of

DURATIONS = st.floats(min_value=0.0, max_value=1e300)


def naive_bucket(value: float) -> int:
    """By the definition: which of 2^SUBBITS equal parts of its power of two the value lies in."""
    if value < 2.0**-1022:
        return 0
    mantissa, exponent = math.frexp(value)  # in [1/2, 1)
    return (exponent - 1 + 1023) * PARTS + math.floor((2 * mantissa - 1) * PARTS)


@given(DURATIONS)
def test_a_bucket_is_a_part_of_a_power_of_two(value):
    assert bucket_of([value])[0] == naive_bucket(value)


@given(st.lists(DURATIONS, min_size=1, max_size=50))
def test_order_is_kept(values):
    assert (np.diff(bucket_of(sorted(values))) >= 0).all()


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_the_middle_is_within_the_promised_error(value):
    assert abs(middle_of(bucket_of([value]))[0] - value) <= RELATIVE_ERROR * value


@given(st.integers(min_value=1, max_value=2045))
def test_a_middle_lies_in_its_own_bucket(exponent):
    buckets = exponent * PARTS + np.arange(PARTS)
    assert (bucket_of(middle_of(buckets)) == buckets).all()


def test_nothing_and_less_are_bucket_zero():
    assert bucket_of([0.0, -0.0, -1.0, -1e-300, 5e-324]).tolist() == [0] * 5
    assert middle_of([0]).tolist() == [0.0]
    assert len(bucket_of([])) == 0


def test_bits_not_logarithms():
    (bits,) = struct.unpack("<q", struct.pack("<d", 0.1))
    assert bucket_of([0.1])[0] == bits >> (52 - SUBBITS)


@given(st.permutations([0.1, 0.2, 0.3, 1e9, 1e-9, 7.7]))
def test_sums_in_units_do_not_depend_on_the_order(values):
    assert in_units(values, 2.0**-16).sum() == in_units(sorted(values), 2.0**-16).sum()
