"""The parts under the methods: SFC array, ids, k-d fallback, filters, strings, unions, auto."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covering
from broker.language.text_code import StringAttribute
from covering import auto
from covering.curve.sfc_array import BLOCK, SfcArray
from covering.filters import FilterIndex
from covering.residue import EMPTY, Residue
from covering.slot_table import Ids
from coverlay import CoverlayError
from sim.reproduce import box_union
from sim.workloads.boxes import adversarial
from tests.covering.oracles import contains


def test_sfc_array_splits_merges_and_frees_blocks():
    rng = np.random.default_rng(0)
    array = SfcArray(1)
    held: list[list[int]] = []
    for step in range(4 * BLOCK):
        row = [int(rng.integers(0, 50)), step]  # many equal keys
        array.insert(np.array(row, np.uint64))
        held.append(row)
        if step % 97 == 0:
            array.check()
    assert array.rows().tolist() == sorted(held)
    for row in rng.permutation(held).tolist():
        array.delete(np.array(row, np.uint64))
    array.check()
    assert len(array) == 0
    array.insert_many(np.array(held, np.uint64))
    array.insert_many(np.array([[60, 1], [3, 10**6]], np.uint64))
    array.check()
    assert array.rows().tolist() == sorted([*held, [60, 1], [3, 10**6]])


def test_ids_compact_and_back():
    ids = Ids()
    ids.reserve(20_000)
    ids.put_many(np.arange(0, 30_000, 3), 0)
    small = ids.nbytes
    assert small < 10_000 * 8 + 20_000 * 8 + 10_000 * 6
    for i in range(0, 30_000, 6):
        ids.drop(i, i // 3)
    ids.check()
    assert ids.find(3) == 1
    assert ids.find(6) == -1
    assert ids.find("3") == -1
    with pytest.raises(CoverlayError, match="twice"):
        ids.put_many(np.array([1, 3]), 12_000)
    ids.put("name", 0)
    ids.check()
    assert ids.find("name") == 0
    assert ids.find(9) == 3
    assert len(ids) == 5001


@pytest.mark.parametrize("name", ["kdtree", "packed", "auto"])
def test_large_enough_for_the_real_limits(name):
    """Several thousand entries, real tail limits, several levels of the tree, removals in the static part."""
    rng = np.random.default_rng(7)
    held = np.sort(rng.random((6000, 2, 2)), axis=2)
    held[:, :, 1] = np.minimum(held[:, :, 1], held[:, :, 0] + 0.05)
    index, scan = covering.create(name, [[0, 1]] * 2), covering.create("scan", [[0, 1]] * 2)
    for each in (index, scan):
        each.add_many(np.arange(5000), held[:5000])
        for i in range(5000, 6000):
            each.add(i, held[i])
        for i in range(0, 6000, 5):
            each.remove(i)
    index.check()
    asked = held[:1500] * 0.999 + 0.0005
    truth = scan.find_cover_many(asked)
    found = index.find_cover_many(asked)
    assert [f is None for f in found] == [t is None for t in truth]
    assert all(contains(held[f], box) for f, box in zip(found, asked, strict=True) if f is not None)
    for box in ([[0, 0.5], [0, 1]], *(held[:20] + np.array([-0.05, 0.05]))):
        assert index.find_covered(box) == scan.find_covered(box)
    assert index.stats.probes < scan.stats.probes


def test_kdtree_falls_back_on_adversarial_input():
    """Every entry fails in exactly one coordinate, so no subtree can be ruled out by one maximum."""
    rng = np.random.default_rng(1)
    n = 20_000
    held = np.tile([0.0, 1.0], (n, 2, 1))
    side = rng.integers(0, 4, n)
    held[np.arange(n), side // 2, side % 2] = np.where(side % 2, 0.6, 0.4) + rng.random(n) * 0.01
    query = [[0.3, 0.7], [0.3, 0.7]]
    capped, free = (covering.create("kdtree", [[0, 1]] * 2, node_cap=cap) for cap in (10, 10**9))
    for index in (capped, free):
        index.add_many(np.arange(n), held)
        assert index.find_cover(query) is None
    assert capped.stats.probes >= n - 128
    capped.add(n, [[0.2, 0.8], [0.3, 0.7]])
    assert capped.find_cover(query) == n
    with pytest.raises(CoverlayError, match="node_cap"):
        covering.create("kdtree", [[0, 1]], node_cap=0)


def test_kdtree_with_epsilon_skips_and_says_so():
    rng = np.random.default_rng(2)
    held = np.sort(rng.random((20_000, 2, 2)), axis=2)
    held[:, :, 1] = np.minimum(held[:, :, 1], held[:, :, 0] + 0.1)
    asked = held[:2000] + np.array([0.0005, -0.0005])
    asked = asked[(asked[:, :, 0] < asked[:, :, 1]).all(axis=1)]
    hits, probes = [], []
    for epsilon in (0.0, 0.05, 0.5):
        index = covering.create("kdtree", [[0, 1]] * 2, epsilon)
        index.add_many(np.arange(len(held)), held)
        index.find_cover_many(asked)
        hits.append(index.stats.hits)
        probes.append(index.stats.probes)
        assert index.stats.volume / index.stats.checks >= 1 - epsilon
    assert hits[0] == len(asked)
    assert hits[0] >= hits[1] >= hits[2]
    assert hits[2] < hits[0]


def test_auto_goes_over_and_back(monkeypatch):
    monkeypatch.setattr(auto, "REVIEW", 50)
    index = auto.AutoIndex([[0, 1]] * 6)
    index._next_review = 50
    rng = np.random.default_rng(0)
    index.add_many(range(300), np.sort(rng.random((300, 6, 2)), axis=2))
    index.add("all", [[-np.inf, np.inf]] * 6)
    assert index.choice == "kdtree"
    index.find_cover_many(np.tile([0.4, 0.5], (60, 6, 1)))
    assert index.choice == "packed"
    index.check()
    assert len(index) == 301
    assert "all" in index
    index.remove("all")
    index.find_cover_many(np.tile([0.0, 1.0], (60, 6, 1)))
    assert index.choice == "kdtree"
    assert index.stats.checks == 120
    index.check()


def test_auto_leaves_the_tree_where_it_does_not_help(monkeypatch):
    monkeypatch.setattr(auto, "REVIEW", 50)
    monkeypatch.setattr(auto, "STAY", 2)
    stored, asked = adversarial(20_000, 4, np.random.default_rng(0))
    index = auto.AutoIndex([[0, 1]] * 4)
    index._next_review = 50
    index.add_many(np.arange(len(stored)), stored)
    assert index.find_cover_many(asked) == [None] * len(asked)
    assert index.choice == "packed"
    for _ in range(2):
        assert index.choice == "packed"
        index.find_cover_many(asked)
    assert index.choice == "kdtree"
    index.check()


# ---- filters -----------------------------------------------------------------------------------------

GRID = [0.0, 1.0, 2.0, 3.0]
FILTER = st.tuples(
    st.lists(st.tuples(st.sampled_from(GRID), st.sampled_from(GRID)).map(sorted), min_size=2, max_size=2).map(np.array),
    st.builds(
        Residue.of,
        st.dictionaries(st.sampled_from([0, 1]), st.sets(st.sampled_from(GRID), max_size=2), max_size=1),
        st.dictionaries(st.sampled_from([0, 1]), st.sets(st.sampled_from(GRID), min_size=1), max_size=1),
    ),
    st.sampled_from([None, "IBM"]),
)


def admitted(filter_: tuple[np.ndarray, Residue, object]) -> set[tuple[float, ...]]:
    box, residue, _ = filter_
    return {
        e for e in itertools.product(GRID, GRID) if contains(box, np.array([[v, v] for v in e])) and residue.admits(e)
    }


@settings(max_examples=150)
@given(st.lists(FILTER, max_size=10), FILTER)
def test_filters_on_integral_attributes_against_sets_of_events(held, asked):
    index = FilterIndex("scan", [[0, 3]] * 2, integral=[True, True])
    for i, (box, residue, group) in enumerate(held):
        index.add(i, box, residue, group)
    index.check()
    events = admitted(asked)
    found = index.find_cover(*asked)
    if found is not None:
        assert held[found][2] == asked[2]
        assert events <= admitted(held[found])
    by_sets = [i for i, f in enumerate(held) if f[2] == asked[2] and contains(f[0], asked[0]) and events <= admitted(f)]
    if events:
        assert (found is None) == (not by_sets)
    for i in index.find_covered(*asked):
        assert admitted(held[i]) <= events
        assert held[i][2] == asked[2]
    for i, f in enumerate(held):
        if f[2] == asked[2] and admitted(f) and contains(asked[0], f[0]) and admitted(f) <= events:
            assert i in index.find_covered(*asked)
    for i in range(len(held)):
        index.remove(i)
    index.check()
    assert len(index) == 0


def test_filter_stats_count_one_check_and_mistakes_are_refused():
    index = FilterIndex("zorder", [[0, 10]], 0.1)
    index.add(1, [[0, 5]], Residue.of({0: [3]}))
    index.add(2, [[0, 9]])
    assert index.find_cover([[4, 5]]) in (1, 2)
    assert index.find_cover([[2, 4]]) == 2
    assert index.find_cover([[0, 10]], EMPTY, "other group") is None
    assert index.stats.checks == 3
    assert index.stats.hits == 2
    assert 0 < index.stats.volume <= 3
    with pytest.raises(CoverlayError, match="scan takes no epsilon"):
        FilterIndex("scan", [[0, 1]], 0.1)


# ---- strings -----------------------------------------------------------------------------------------

WORDS = st.text("ab\x00ÿ", max_size=9)


@settings(max_examples=200)
@given(WORDS, WORDS, WORDS)
def test_string_predicates_are_boxes(first, second, value):
    attribute = StringAttribute(4)
    point = attribute.value(value)

    def matches(box: np.ndarray) -> bool:
        return bool(((box[:, 0] <= point) & (point <= box[:, 1])).all())

    assert matches(attribute.prefix(first)) == value.startswith(first)
    assert matches(attribute.equals(first)) == (value == first)
    assert contains(attribute.prefix(first), attribute.prefix(second)) == second.startswith(first)
    assert contains(attribute.prefix(first), attribute.equals(second)) == second.startswith(first)


def test_strings_longer_than_the_chunks():
    attribute = StringAttribute(1)
    index = covering.create("kdtree", attribute.domain)
    index.add("ab*", attribute.prefix("ab"))
    assert index.find_cover(attribute.prefix("abc")) == "ab*"
    assert index.find_cover(attribute.equals("abcde")) == "ab*"
    assert index.find_cover(attribute.prefix("a")) is None
    long = attribute.value("abcdefgh")
    box = attribute.equals("abcde")
    assert not (box[:, 0] <= long).all() or not (long <= box[:, 1]).all()
    with pytest.raises(CoverlayError, match="bytes"):
        attribute.equals("abcdef")
    with pytest.raises(CoverlayError, match="bytes"):
        attribute.prefix("abcdefg")


# ---- unions ------------------------------------------------------------------------------------------

SMALL = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).map(sorted), min_size=2, max_size=2)


@settings(max_examples=150)
@given(SMALL, st.lists(SMALL, max_size=8))
def test_exact_union_against_a_grid_and_the_sampled_one_never_denies_a_cover(box, others):
    fine = np.arange(0, 4.5, 0.5)
    inside = [
        p for p in itertools.product(fine, fine) if all(lo <= v <= hi for v, (lo, hi) in zip(p, box, strict=True))
    ]
    truth = all(
        any(all(lo <= v <= hi for v, (lo, hi) in zip(p, other, strict=True)) for other in others) for p in inside
    )
    exact = box_union.exactly_covered_by_union(box, np.array(others).reshape(-1, 2, 2))
    assert exact.covered == truth
    sampled = box_union.covered_by_union(box, np.array(others).reshape(-1, 2, 2), seed=1)
    assert sampled.covered or not truth
    if sampled.exact:
        assert sampled.covered == truth
    if not exact.covered:
        assert exact.witness is not None
        assert not any(all(lo <= v <= hi for v, (lo, hi) in zip(exact.witness, o, strict=True)) for o in others)


def test_union_with_unbounded_sides_and_a_stated_error():
    left, right, far = [[-np.inf, 0.5], [0, 1]], [[0.5, np.inf], [0, 1]], [[0, 1], [5, 6]]
    box = [[-np.inf, np.inf], [0, 1]]
    for test in (box_union.covered_by_union, box_union.exactly_covered_by_union):
        assert test(box, [left, right, far]).covered
        assert not test(box, [left, far]).covered
        assert not test([[-np.inf, np.inf], [0, 2]], [left, right, far]).covered
    many = np.stack([np.array([[i / 100, (i + 1) / 100], [0, 1]]) for i in range(100)])
    many = np.concatenate([many, many[:, ::-1]])
    sampled = box_union.covered_by_union([[0, 1], [0, 1]], many, error=1e-6)
    assert sampled.covered
    assert not sampled.exact
    assert 0 < sampled.error <= 1e-6
    with pytest.raises(CoverlayError, match="share"):
        box_union.covered_by_union([[0, 1]], [], share=0)


def test_sampling_misses_a_hole_no_more_often_than_stated():
    """One of 400 cells is a hole; ρ = 1/400, error 0.3: over 300 seeds the misses stay near 0.3."""
    cells = [[[i, i + 0.5], [j, j + 0.5]] for i in range(20) for j in range(20)]
    held = np.array(cells[:-1])
    held[:, :, 1] = np.nextafter(held[:, :, 0] + 1, 0)
    missed = sum(
        box_union.covered_by_union([[0, 19.5], [0, 19.5]], held, share=1 / 400, error=0.5, seed=s).covered
        for s in range(300)
    )
    assert missed / 300 < 0.3 + 0.3
    assert missed > 0
