"""The bits of a curve: stated once, followed by every greedy search as entries come and go."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import covering
from covering.curve.keys import mirror
from covering.curve.resolution import divided_with, greedy_bits
from covering.quantiser import Quantiser

FOLLOWERS = ("zorder", "zorder-emulated", "hilbert")


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_all_cells_of_the_grid_are_used(bits):
    """A cell per entry means 2^bits of them per coordinate; unbounded sides are in the uppermost."""
    cells = 2**bits
    quantiser = Quantiser.of(np.array([[0.0, 1.0]] * cells), bits)
    values = np.repeat((np.arange(cells) + 0.5) / cells, 2)
    codes = np.empty(2 * cells, np.int64)
    mirror(values - [1.0, 0.0] * cells, quantiser.offset, quantiser.scale, bits, codes)
    assert codes.tolist() == np.repeat(np.arange(cells)[::-1], 2).tolist()
    for beyond, code in ((-np.inf, cells - 1), (-9.0, cells - 1), (9.0, 0), (np.inf, 0)):
        mirror(np.full(2 * cells, beyond), quantiser.offset, quantiser.scale, bits, codes)
        assert (codes == code).all()


@given(st.integers(0, 10**9), st.integers(2, 64))
def test_the_bits_are_the_rounded_logarithm_over_the_dimensions(entries, dimensions):
    wanted = math.log2(entries) / dimensions if entries else 0.0
    bits = greedy_bits(entries, dimensions)
    assert bits == max(1, round(wanted)) or abs(abs(wanted - bits) - 0.5) < 1e-9


@given(st.lists(st.integers(0, 300), max_size=40))
def test_an_index_is_divided_anew_when_entries_double_or_fall_to_a_quarter(counts):
    """A batch counts as its entries one by one."""
    at_once = one_by_one = 1
    now = 0
    for entries in counts:
        if entries < now:  # removals come one by one
            for left in range(now, entries, -1):
                at_once = divided_with(at_once, left - 1)
        at_once = divided_with(at_once, entries)
        step = 1 if entries > now else -1
        for held in range(now, entries, step):
            one_by_one = divided_with(one_by_one, held + step)
        now = entries
        assert at_once == one_by_one
        assert at_once <= max(1, 4 * now)
        assert now < 2 * at_once


@pytest.mark.parametrize("name", FOLLOWERS)
def test_a_greedy_index_follows_its_entries_unless_bits_are_given(name):
    rng = np.random.default_rng(1)
    boxes = np.sort(rng.random((600, 1, 2)), axis=2)
    index, fixed = covering.create(name, [[0, 1]]), covering.create(name, [[0, 1]], bits=7)
    seen = {}
    for number, box in enumerate(boxes):
        for each in (index, fixed):
            each.add(number, box)
        seen[number + 1] = index.bits
    assert (seen[1], seen[8], seen[64], seen[600]) == (1, 2, 3, 5)
    index.check()
    for number in range(590):
        index.remove(number)
    assert (index.bits, fixed.bits) == (3, 7)
    index.check()
    assert index.find_cover(boxes[595]) is not None


def test_rebuilding_moves_each_entry_a_constant_number_of_times(monkeypatch):
    moved = []
    method = covering.METHODS["zorder"]
    divide = method._give_new_keys
    monkeypatch.setattr(method, "_give_new_keys", lambda self, bits: (moved.append(len(self)), divide(self, bits)))
    index = covering.create("zorder", [[0, 1]])
    for number in range(2000):
        index.add(number, [[0.0, number / 2000]])
    assert sum(moved) <= 2 * 2000
    before = len(moved)
    for number in range(2000, 2400):  # comes and goes at a boundary: nothing is divided
        index.remove(number - 1)
        index.add(number, [[0.0, number / 3000]])
    assert len(moved) == before
