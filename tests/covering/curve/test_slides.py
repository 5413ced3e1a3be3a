"""Every number on the slides, and the closed forms against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covering
from covering.curve import theory
from covering.curve.cubes import cube_rows
from covering.curve.hilbert_keys import to_hilbert
from covering.curve.zorder import as_integer, merged_runs
from tests.covering.oracles import cells, count_runs, greedy_cubes, z_key

LENGTHS = st.integers(1, 3).flatmap(
    lambda d: st.tuples(
        st.just(4 if d < 3 else 3), st.lists(st.integers(1, 16 if d < 3 else 8), min_size=d, max_size=d)
    )
)


def test_385_runs_against_one():
    plan = theory.plan([257, 257], 9)
    assert theory.runs([257, 257], 9) == 385
    assert plan.levels[8] == 1
    assert plan.fraction(1) == pytest.approx(0.992, abs=5e-4)
    assert theory.plan([257, 257], 9, 0.01).quota == 1


def test_gamma_sequence():
    plan = theory.plan([5, 7], 3, 0.10)
    assert [round(100 * plan.fraction(n), 1) for n in (1, 2, 3)] == [45.7, 57.1, 68.6]
    assert round(100 * plan.fraction(plan.quota), 1) == 91.4  # where ε = 10 % ends the search


def test_three_and_six_cubes():
    assert theory.cubes_per_level([0b1101, 0b0110], 4) == [6, 6, 3, 0, 0]


def test_slide_example_of_covering():
    for name in covering.methods():
        index = covering.create(name, [[0, 100], [1980, 2010]])
        index.add("s1", [[0, 50], [1990, 2004]])
        assert index.find_cover([[0, 30], [1998, 2000]]) == "s1"
        assert index.find_cover([[0, 30], [1989, 2000]]) is None


def test_keys_of_standard_cubes():
    """The slides' 4 × 4 table: column 01, row 10 has key 0110."""
    assert z_key((0b01, 0b10), 2) == 0b0110
    assert z_key((0b11, 0b01), 2) == 0b1011


@settings(max_examples=150)
@given(LENGTHS)
def test_cubes_runs_levels_and_ranks_are_what_enumeration_says(case):
    bits, lengths = case
    cubes = greedy_cubes(lengths, bits)
    levels = theory.cubes_per_level(lengths, bits)
    assert levels == [sum(level == i for level, _ in cubes) for i in range(bits + 1)]
    assert theory.runs(lengths, bits) == count_runs(z_key(cell, bits) for cell in cells(lengths))
    for rank, (level, corner) in enumerate(cubes):
        assert theory.level_of(corner, lengths) == level
        assert theory.rank_of(corner, lengths, bits, levels) == rank
        far = [c + (1 << level) - 1 for c in corner]
        assert theory.rank_of(far, lengths, bits, levels) == rank
    for i in range(bits + 1):
        rounded = [length >> i << i for length in lengths]
        together = theory.runs(rounded, bits) if all(rounded) else 0
        large = [(level, corner) for level, corner in cubes if level >= i]
        keys = {z_key(corner, bits) + k for level, corner in large for k in range(1 << (level * len(lengths)))}
        assert together == count_runs(keys)


@settings(max_examples=60)
@given(LENGTHS, st.booleans())
def test_the_walk_meets_the_cubes_in_greedy_order(case, hilbert):
    bits, lengths = case
    rows, levels = cube_rows(np.array(lengths), bits, hilbert, 10**5)
    cubes = greedy_cubes(lengths, bits)
    assert levels.tolist() == [level for level, _ in cubes]
    shift = 64 - len(lengths) * bits
    if not hilbert:
        assert [as_integer(row) >> shift for row in rows] == [z_key(corner, bits) for _, corner in cubes]
    runs = merged_runs(rows, levels, len(lengths), bits)
    keys = {key for first, last in runs for key in range(first >> shift, (last >> shift) + 1)}
    assert len(keys) == int(np.prod(lengths))
    assert len(runs) == count_runs(keys)
    if not hilbert:
        assert len(runs) == theory.runs(lengths, bits)


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 4), (3, 3), (4, 2)])
def test_hilbert_curve_steps_to_a_neighbour_and_nests(dimensions, bits):
    where = {}
    for cell in cells([1 << bits] * dimensions):
        codes = np.array(cell)
        to_hilbert(codes, bits)
        where[z_key(codes.tolist(), bits)] = cell
    assert sorted(where) == list(range(1 << (dimensions * bits)))
    for key in range(len(where) - 1):
        assert sum(abs(a - b) for a, b in zip(where[key], where[key + 1], strict=True)) == 1
    for key, cell in where.items():  # a key prefix is a standard cube
        first = where[key >> dimensions << dimensions]
        assert [c >> 1 for c in cell] == [c >> 1 for c in first]


@settings(max_examples=100)
@given(st.lists(st.integers(1, 2**8), min_size=2, max_size=4), st.sampled_from([0.01, 0.1, 0.3, 0.5]))
def test_upper_bound_holds(lengths, epsilon):
    bound = theory.approximate_upper_bound(len(lengths), theory.aspect_ratio(lengths), epsilon)
    assert theory.plan(lengths, 9, epsilon).quota <= bound


@pytest.mark.parametrize(("dimensions", "alpha", "b"), [(2, 1, 2), (2, 3, 4), (3, 0, 3), (3, 2, 3), (4, 1, 5)])
def test_lower_bound_is_met_by_the_slides_rectangle(dimensions, alpha, b):
    lengths = theory.worst_rectangle(dimensions, alpha, b)
    assert theory.aspect_ratio(lengths) == alpha
    assert theory.runs(lengths, b + alpha + 1) >= theory.exact_lower_bound(dimensions, alpha, min(lengths))


@settings(max_examples=60)
@given(st.data())
def test_greedy_finished_to_a_level_is_exact_search_with_a_rounded_query(data):
    """A cell is in a cube of side ≥ 2^i iff it lies in the rectangle rounded down to 2^i."""
    lengths = data.draw(st.lists(st.integers(1, 32), min_size=2, max_size=4))
    cell = [data.draw(st.integers(0, length - 1)) for length in lengths]
    for i in range(6):
        rounded = all(m < length >> i << i for m, length in zip(cell, lengths, strict=True))
        assert (theory.level_of(cell, lengths) >= i) == rounded
