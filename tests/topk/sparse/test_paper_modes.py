"""What makes a structure the paper's: bounds, ranks, cuts and postings as published, and counters that are complete."""

from __future__ import annotations

import numpy as np
import pytest

import topk
from coverlay import CoverlayError, kernel
from sim.workloads.begen import Begen, begen, dblp_like
from topk.sparse import METHODS
from topk.sparse.be.arena import PNODES
from topk.sparse.be.split import exhaustive
from topk.sparse.be.tree import BETree

every_method = pytest.mark.parametrize("method", sorted(METHODS))


@kernel
def split_in_three(lo, hi, alpha, label):
    return exhaustive(lo, hi, alpha, label)


def cut_by_cut(lo, hi, least):
    """§V-A3 as written: every number of leftmost and of rightmost expressions; overlap and coverage of the best."""
    found = []
    for cut in hi:
        found.append((hi <= cut, lo > cut))
    for cut in lo:
        found.append((hi < cut, lo >= cut))
    best = (np.inf, np.inf)
    for left, right in found:
        middle = ~left & ~right
        if left.sum() < least or right.sum() < least:
            continue
        length = [hi[which].max() - lo[which].min() if which.any() else 0.0 for which in (left, right, middle)]
        covered = length[0] + length[1]
        if middle.any():
            covered += length[2]
            for side in (left, right):
                common = min(hi[side].max(), hi[middle].max()) - max(lo[side].min(), lo[middle].min())
                covered -= max(0.0, common)
        best = min(best, (length[2], covered))
    return best


@pytest.mark.parametrize("count", [2, 5, 9, 40, 200])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.4])
def test_no_cut_is_better_than_the_exhaustive_split(count, alpha):
    rng = np.random.default_rng(count)
    for spread in (3, 30, 10_000):
        lo = rng.integers(0, spread, count).astype(float)
        hi = lo + rng.integers(0, max(spread // 4, 2), count)
        label = np.empty(count, np.int64)
        least = max(1, int(np.ceil(alpha * count)))
        expected = cut_by_cut(lo, hi, least)
        assert split_in_three(lo, hi, alpha, label) == (expected[0] < np.inf)
        if expected[0] == np.inf:
            continue
        left, middle, right = (label == part for part in range(3))
        assert min(left.sum(), right.sum()) >= least
        assert hi[left].max() < lo[right].min(), "the sides repel each other"
        overlap = hi[middle].max() - lo[middle].min() if middle.any() else 0.0
        assert overlap == expected[0]


def recursive_ranks(index):
    """§V-B, node by node: common predicates of the l-nodes, less what is discarded, added up from below."""
    tree = index._tree

    def bucket_rank(b):
        node = tree.node[b]
        total = float(node.count * tree.bucket[b].level)
        for child in (int(node.left), int(node.right)):
            total += bucket_rank(child) if child >= 0 else 0.0
        p = int(node.first)
        while p >= 0:
            total += pnode_rank(p)
            p = int(tree.pnode[p].next)
        return total

    def pnode_rank(p):
        loss = float(tree.pnode[p].loss) / max(float(tree.pnode[p].seen), 1.0)
        return bucket_rank(int(tree.pnode[p].root)) - loss

    live = np.flatnonzero(tree.pnode.owner[: int(tree.meta[PNODES])] >= 0)
    return {int(p): pnode_rank(int(p)) for p in live}


@pytest.mark.parametrize("ranking", ["recursive", "histogram"])
def test_ranks_are_recursive(ranking):
    workload = begen(Begen(subscriptions=1500, events=20, dimensions=60, match_probability=0.01, distribution="zipf"))
    index = topk.create("be-star-paper", workload.catalogue, ranking=ranking, window=0)
    for id in range(0, 1500, 7):
        index.remove(id)
    index.check()
    for p, rank in recursive_ranks(index).items():
        assert index._tree.pnode[p].rank == rank, "kept up to date by insertions and deletions"
    learning = topk.create("be-star-paper", workload.catalogue, ranking=ranking, window=1000)
    for event in workload.events:
        learning.top(event, 3)
    expected, found = recursive_ranks(learning), learning.ranks()
    assert learning._tree.pnode.loss.max() > 0.0
    for p, rank in expected.items():
        assert found[p] == pytest.approx(rank, abs=1e-6)
    learning.recycle()
    learning.check()


def test_bounds_as_published_save_more_than_shared_ones():
    """Of the expressions that BE* compares on an author-like set, BE*(1) spares more than ours does."""
    workload = dblp_like("author", 20_000, 20)
    saved = {}
    for method in ("be-star", "be-star-paper"):
        index = topk.create(method, workload.catalogue, window=0)
        looked = []
        for k in (None, 1):
            index.stats.reset()
            for event in workload.events:
                index.top(event, k)
            looked.append(index.stats.entries)
        saved[method] = 1.0 - looked[1] / looked[0]
    assert saved["be-star-paper"] > 0.3 > 0.25 > saved["be-star"]


def test_bounds_are_not_read_where_all_matches_are_wanted():
    workload = begen(Begen(subscriptions=2000, events=8, dimensions=60, match_probability=0.01))
    counted = set()
    for usual_bound in (False, True):
        index = topk.create("be-star-paper", workload.catalogue, usual_bound=usual_bound, window=0)
        for event in workload.events:
            index.top(event, None)
        counted.add((index.stats.entries, index.stats.comparisons, index.stats.nodes, index.stats.queued))
    assert len(counted) == 1, "the two differ in their bounds alone"


def test_k_index_as_published_enumerates_ranges():
    expressions = [[(0, "between", (float(i), float(i + width)), 1.0)] for i, width in enumerate((3, 40, 5000))]
    catalogue = topk.Catalogue.from_predicates(expressions)
    ours, theirs = topk.create("k-index", catalogue), topk.create("k-index-paper", catalogue)
    assert sum(len(run.lists.row) for run in ours._runs) == 4 + 1 + 1
    assert sum(len(run.lists.row) for run in theirs._runs) == 4 + 41 + 5001
    assert theirs.nbytes > ours.nbytes + 10_000
    for value in (0.0, 3.0, 30.5, 5002.0, 5003.0):
        assert theirs.top({0: value}, None) == ours.top({0: value}, None)
    with pytest.raises(CoverlayError, match=r"314,572,800 postings.*most_values"):
        topk.create("k-index-paper", topk.Catalogue.from_predicates([[(0, "between", (0.0, 2.0**20 - 1), 1.0)]] * 300))


@every_method
def test_counters_are_complete(method):
    """With all matches wanted, each is compared by all its predicates and offered to the heap of answers."""
    workload = begen(Begen(subscriptions=2000, events=8, dimensions=60, match_probability=0.01))
    index = topk.create(method, workload.catalogue)
    matches = [id for event in workload.events for id, _ in index.top(event, None)]
    predicates = np.diff(workload.catalogue.offsets)[matches].sum()
    assert matches
    assert index.stats.entries >= len(matches)
    assert index.stats.comparisons >= predicates
    assert index.stats.queued >= len(matches)
    if isinstance(index, BETree):  # what is searched below a p-node has been put into the heap and taken from it
        assert index.stats.queued == len(matches) + 2 * index._tree.pnode.seen.sum()


def test_the_scan_counts_every_comparison():
    catalogue = topk.Catalogue.from_predicates([[(0, "=", 1.0, 1.0), (1, "=", 1.0, 1.0)], [(0, "=", 2.0, 1.0)], []])
    index = topk.create("scan", catalogue)
    index.top({0: 1.0, 1: 1.0}, None)
    assert (index.stats.entries, index.stats.comparisons, index.stats.queued) == (3, 3, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slots": -1}, "slots"),
        ({"ranking": "best"}, "ranking.*recursive"),
        ({"capacity": 0}, "capacity"),
        ({"match_probability": 0.0}, "match_probability must be above 0"),
        ({"capacity": 20, "match_probability": 0.2}, "match_probability has no effect with capacity = 20"),
    ],
)
def test_what_a_be_star_tree_refuses(options, message):
    with pytest.raises(CoverlayError, match=message):
        topk.create("be-star-paper", topk.Catalogue.from_predicates([]), **options)


@pytest.mark.parametrize(("probability", "expected"), [(0.001, 5), (0.05, 20), (0.2, 160)])
def test_capacities_are_those_of_table_2a(probability, expected):
    catalogue = topk.Catalogue.from_predicates([])
    index = topk.create("be-star-paper", catalogue, match_probability=probability)
    assert index._tree.knobs[0] == expected


@pytest.mark.parametrize("capacity", ["many", 0, -3, None, float("nan"), float("inf")])
def test_a_capacity_that_is_none_is_refused(capacity):
    with pytest.raises(CoverlayError, match="capacity must be auto, table or a whole number from 1 on, not"):
        topk.create("be-tree", begen(Begen(subscriptions=5, events=1)).catalogue, capacity=capacity)


def test_rows_below_p_nodes_are_those_whose_path_goes_through_one():
    index = BETree(begen(Begen(subscriptions=3000, events=1, dimensions=30)).catalogue, capacity=5)
    tree, count = index._tree, int(index._tree.meta[PNODES])
    for chosen in (np.arange(0), np.arange(count), np.arange(count)[::7], np.array([count // 2])):
        expected = []
        for row in sorted(index.store.row_of.values()):
            p = int(tree.bucket[tree.home[row]].pnode)
            while p >= 0 and p not in chosen:
                p = int(tree.bucket[tree.pnode[p].owner].pnode)
            if p >= 0:
                expected.append(row)
        assert index._below(chosen).tolist() == expected
