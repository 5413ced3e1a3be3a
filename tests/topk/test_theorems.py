"""What the papers prove, measured on the structures themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import topk
from coverlay import CoverlayError
from tests.topk import oracles
from tests.topk.strategies import entries
from topk.canopy import query as canopy_query
from topk.canopy.index import Canopy
from topk.kernels.value_codes import encode, position_map
from topk.papers.interval.arrangement import arrange, constraint_graph, to_slots
from topk.papers.interval.contract import PROBED, Entries
from topk.papers.interval.segment_tree import SegmentTree
from topk.papers.interval.sopt_rtree import SoptRTree
from topk.papers.predicate import construct
from topk.papers.predicate.bitmap import Lci, LciClipped, Sci, SciClipped
from topk.papers.predicate.dlist import DirectList
from topk.papers.predicate.virtual import LciVirtual, LciVirtualTable, SciVirtual, SciVirtualTable

INTERVALS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=10)
QUIET = settings(max_examples=60, suppress_health_check=list(HealthCheck))


# ---- VLDB 2008 ------------------------------------------------------------------------------------------


@QUIET
@given(INTERVALS)
def test_constraint_graph_and_arrangement_by_definition(pairs: list[tuple[int, int]]) -> None:
    intervals = [(float(a), float(a + w)) for a, w in pairs]
    lo, hi = (np.array([i[side] for i in intervals], dtype=float) for side in (0, 1))
    first, last, slots = to_slots(lo, hi)
    tails, heads, _ = constraint_graph(first, last, slots)
    assert set(zip(tails.tolist(), heads.tolist(), strict=True)) == oracles.constraint_edges(intervals)
    assert len(tails) <= 3 * len(intervals)
    assert arrange(first, tails, heads).tolist() == oracles.arrangement(intervals)


@pytest.mark.parametrize("spread", [1.0, 0.02])
@pytest.mark.parametrize("b", [2, 5, 50])
def test_sopt_explores_at_most_2k_nodes_per_level(b: int, spread: float) -> None:
    """Theorem 3.2: at most k holes, at most 2k nodes per level; on the paper's data and on short intervals."""
    data = entries(4000, 11, spread)
    tree = SoptRTree(data, b=b)
    assert tree.edges <= 3 * len(tree)
    for value in np.linspace(-0.2, 1.2, 60):
        for k in (1, 2, 7, 20):
            tree.explored[:] = 0
            found = tree.stab(value).fetch(k)
            assert (tree.explored <= 2 * k).all()
            holes = tree.explored[1] - len({int(np.flatnonzero(tree._rows == r)[0]) // b for r in found})
            assert holes <= k


def test_segment_tree_copies_are_at_most_two_per_level() -> None:
    tree = SegmentTree(entries(3000, 2))
    tree.check()
    levels = np.ceil(np.log2(2 * len(tree._ends) + 1))
    assert len(tree._members) <= 2 * levels * len(tree)
    assert len(tree._members) > 4 * len(tree), "the order-of-magnitude overhead the paper complains about"


@pytest.mark.parametrize("spread", [1.0, 0.001])
def test_canopy_lists_are_short(spread: float) -> None:
    """At most 32 that cover a cell, and the two ends of an interval: O(n) words, a few dozen entries per query."""
    n = 20_000
    data = entries(n, 4, spread)
    index = Canopy(topk.Catalogue.from_boxes(data.lo, data.hi, data.scores))
    _, records, starts, lists = canopy_query.unpack(index._buffer)
    heads = np.unique(starts)
    assert len(heads) <= 4 * n / 16 + 1
    assert lists[heads[-1]] >> canopy_query.FLAGS < n
    assert index.nbytes <= n * (32 + 4 * (2 + 33 / 4)) + 4 * len(starts) + 100_000
    index.top_many(data.lo[:500, None], 20)
    assert index.stats.entries / index.stats.queries < 100
    assert index.stats.nodes == index.stats.queries == 500
    for value in (0.1, 0.5):
        here = np.flatnonzero((records[:, 0] <= value) & (value <= records[:, 1]))
        expected = [(int(i), float(s)) for i, s in zip(records.view(np.int64)[here, 3], records[here, 2], strict=True)]
        assert index.top(np.array([value]), 20) == expected[:20]


@QUIET
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=80), st.booleans())
def test_position_map_is_monotone(values: list[float], clustered: bool) -> None:
    lo = np.array(values)
    if clustered:  # 500 values in a billionth of the range: the map nests
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is left out
            lo = np.concatenate((lo, lo.mean() + np.arange(500) * (np.ptp(lo) or 1.0) * 1e-12))
    lo = lo[np.isfinite(lo)]
    table = position_map(lo, lo, 10)
    codes = [int(encode(table, v)) for v in np.sort(lo)]
    assert codes == sorted(codes)
    assert all(0 <= c < 1 << 10 for c in codes)


def test_position_map_resolves_a_cluster() -> None:
    rng = np.random.default_rng(1)
    lo = np.concatenate((rng.random(2000) * 1e6, 77.0 + rng.random(2000) * 1e-6))
    table = position_map(lo, lo, 12)
    codes = np.array([encode(table, v) for v in lo])
    assert np.bincount(codes).max() <= 16


# ---- IBM 2004 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("longest", [1, 2, 4, 16])
def test_coordinates_and_covering_segments(logarithmic: bool, longest: int) -> None:
    """Eq. 1–3: coordinates enumerate the construct intervals; segment and table sizes are the paper's."""
    s = construct.shape(logarithmic, longest)
    k = longest.bit_length() - 1
    lengths = [1 << i for i in range(k + 1)] if logarithmic else list(range(1, longest + 1))
    coordinates = [construct.find_coordinate(s, a, a + w) for a in range(3 * longest) for w in lengths]
    assert coordinates == list(range(3 * longest * len(lengths)))
    assert all(
        construct.decode(s, c) == (a, a + w)
        for c, (a, w) in zip(coordinates, ((a, w) for a in range(3 * longest) for w in lengths), strict=True)
    )
    for j in (longest, 2 * longest):
        low, high = construct.covering_segment(s, j, False)
        assert high - low + 1 == (longest * (k + 1) + 1 if logarithmic else longest**2 + 1)
        covering = [c for c in coordinates if construct.decode(s, c)[0] <= j <= construct.decode(s, c)[1]]
        assert (covering[0], covering[-1]) == (low, high)
        assert (construct.distance_table(s) + low).tolist() == covering
    assert len(construct.distance_table(s)) == (2 * longest + k if logarithmic else longest * (longest + 3) // 2)
    between = construct.distance_table(s, between=True)
    assert len(between) == (2 * longest - 1 if logarithmic else longest * (longest + 1) // 2)


def test_the_papers_own_examples() -> None:
    sci, lci = construct.shape(False, 4), construct.shape(True, 16)
    assert [construct.find_coordinate(sci, 0, 2), construct.find_coordinate(sci, 0, 4)] == [1, 3]
    assert construct.find_coordinate(sci, 4, 6) == 17  # Figure 3(a): [a0+4, a0+6] has id 17
    pieces, x = [], 3
    while x < 10:  # "[a, a+4], [a+4, a+6] and [a+6, a+7]" for an interval of length 7
        end = construct.piece(lci, x, 10)
        pieces.append(end - x)
        x = end
    assert pieces == [4, 2, 1]


CONSTRUCTS = [Sci, SciClipped, SciVirtual, SciVirtualTable, Lci, LciClipped, LciVirtual, LciVirtualTable]


@pytest.mark.parametrize("cls", CONSTRUCTS)
def test_storage_formula_is_what_is_allocated(cls: type) -> None:
    index = cls(Entries.none(), length=8, cells=100)
    bitmap = {"sci": "full", "lci": "full", "sci-bc": "clipped", "lci-bc": "clipped"}.get(cls.name, "none")
    shape = construct.shape("sci" not in cls.name, 8)
    tables = sum(t.nbytes for t in index.tables) if cls.name.endswith("-dt") else 0
    assert index.nbytes - index.known_bytes - tables == construct.storage(shape, 100, bitmap)


def test_lengths_that_are_not_powers_of_two_are_refused_by_lci() -> None:
    with pytest.raises(CoverlayError, match="power of two, not 12"):
        topk.create("lci", topk.Catalogue.empty(1), length=12).add(1, [0.0], [1.0], 1.0)


@pytest.mark.parametrize("cls", [Sci, Lci])
def test_only_the_covering_segment_is_looked_at(cls: type) -> None:
    """As an option: the same lists from a fraction of the words; as the paper has it, all of them."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 900, 3000).astype(float)
    data = Entries(np.arange(3000), x, x + rng.integers(1, 90, 3000), np.zeros(3000), np.arange(3000))
    options = {"cells": 1000, "low": 0.0, "high": 999.0, "length": 16}
    whole, part = cls(data, **options), cls(data, segment=True, **options)
    for value in (0.0, 3.0, 3.5, 500.0, 500.25, 998.5, 999.0):
        assert whole.locate(value).tolist() == part.locate(value).tolist()
        assert sorted(whole.stabbed(value)) == np.flatnonzero((data.lo <= value) & (value <= data.hi)).tolist()
        assert sorted(part.stabbed(value)) == sorted(whole.stabbed(value))
    per_start = 16 if cls is Sci else 5
    assert whole.work[PROBED] == 21 * -(-1000 * per_start // 64), "every word of every vector"
    assert part.work[PROBED] <= 14 * (-(-(16 * per_start + 1) // 64) + 1)
    part.check()


@pytest.mark.parametrize("cls", [*CONSTRUCTS, DirectList])
def test_whatever_an_integer_s_lists_hold_matches_until_a_bound_is_none(cls: type) -> None:
    """As in the paper, rows are not held against their bounds; from the first that is no integer on they are."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 40, 200).astype(float)
    lo, hi = [*x, 10.25, 20.0], [*(x + rng.integers(1, 9, 200)), 12.0, 20.0]
    index = cls(
        Entries(np.arange(200), np.array(lo[:200]), np.array(hi[:200]), np.zeros(200), np.arange(200)), cells=64
    )
    for count, exact in ((200, True), (201, False), (202, False)):
        if count > 200:
            index.insert(count - 1, lo[count - 1], hi[count - 1], 0.0, count - 1)
        assert index._exact == exact
        for value in (-3.0, 0.0, 10.0, 10.5, 12.0, 20.0, 20.5, 48.0, 63.0, 70.0):
            expected = [row for row in range(count) if lo[row] <= value <= hi[row]]
            assert sorted(index.stabbed(value)) == expected, value


def test_events_that_are_no_integers_need_less() -> None:
    """Footnote 3: the covering segment and the distance table of a value between two integers are smaller."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 90, 500).astype(float)
    data = Entries(np.arange(500), x, x + rng.integers(1, 9, 500), np.zeros(500), np.arange(500))
    for cls in (SciVirtual, SciVirtualTable, LciVirtual, LciVirtualTable):
        index = cls(data, cells=100, low=0.0, high=99.0, length=8)
        probes = []
        for value in (50.0, 50.5):
            index.work[:] = 0
            assert sorted(index.stabbed(value)) == np.flatnonzero((data.lo <= value) & (value <= data.hi)).tolist()
            probes.append(int(index.work[PROBED]))
        assert probes[1] < probes[0], cls.name


MARKED = ("is-list", "ibs-tree")
LISTED = [*(cls.name for cls in CONSTRUCTS), "dlist", *MARKED]


@pytest.mark.parametrize("name", LISTED)
def test_locating_lists_does_not_depend_on_n(name: str) -> None:
    """All stabbed rows come from the located lists, and their number does not grow with the predicates in them."""
    cls = topk.interval_indexes()[name]
    options = {} if name in MARKED else {"cells": 64, "low": 0.0, "high": 63.0}
    rng = np.random.default_rng(8)
    lo = rng.integers(0, 50, 400).astype(float)
    few = Entries(np.arange(400), lo, lo + rng.integers(0, 14, 400), np.zeros(400), np.arange(400))
    tenfold = Entries(np.arange(4000), np.tile(few.lo, 10), np.tile(few.hi, 10), np.zeros(4000), np.arange(4000))
    small, large = cls(few, **options), cls(tenfold, **options)
    for value in (0.0, 17.0, 30.5):
        located = small.locate(value)
        assert sorted(located) == sorted(set(located))
        assert len(large.locate(value)) == len(located)
        rows = []
        for which in located:
            lists = small._marks if name in MARKED else small._lists
            cell = lists.head[which]
            while cell >= 0:
                rows.append(int(lists.row[cell]))
                cell = lists.next[cell]
        assert set(small.stabbed(value).tolist()) <= set(rows)
        assert len(large.stabbed(value)) == 10 * len(small.stabbed(value))
