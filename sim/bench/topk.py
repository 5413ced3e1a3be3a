"""Top-k stabbing against its peers, in one run: build, bytes, µs per query alone and in a batch, ratio.

Four workloads. "paper": the regional Zipf generator of VLDB 2008, score = 1 − half-length, a third matches,
events from the same regions as the subscriptions. "paper, elsewhere": the same subscriptions, events from
other regions, where few of the short, high-scoring intervals are. "short": ten of n match. "wide": almost
everything matches.

Then 4 dimensions, and the space of the papers' trees.

Every method gets a number (from two dimensions on an array) and returns the same answer, a list of (id, score), best
first; all answers are compared before anything is timed. Times are the least of interleaved rounds, because other
processes use the machine too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import topk
from sim.bench import Progress, Row, verdict
from sim.bench.timing import mean_least, timed
from sim.bench.topk_peers import PEERS, Search, snap
from sim.workloads.points_in_regions import regional_points, zipf_lengths
from topk.papers.interval.contract import Entries
from topk.papers.interval.ir_tree import IRTree
from topk.papers.interval.sopt_rtree import SoptRTree

K = 20
OURS = "auto"
ROUNDS = 50  # on a busy machine some of them run undisturbed; a neighbour on the same core slows one by half
_PAPERS = ("segment-tree", "sopt-rtree", "ir-tree", "scored-rtree", "scored-interval-tree")
SCAN = "branch-free scan, score order"
_EVENTS, _BATCH = 20_000, 1000  # enough for the quickest to warm up with; the first of them are the batch
_QUICK, _SLOW = 0.0005, 0.02  # seconds per event: slower methods answer fewer events in fewer rounds


def run(quick: bool, progress: Progress) -> list[Row]:
    sizes = (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    rows: list[Row] = []
    for n in sizes:
        for kind in ("paper", "paper, elsewhere", "short", "wide"):
            rows += one_dimension(kind, n, progress)
    for n in sizes[1:]:
        rows += several_dimensions(4, n, progress)
    return rows + space(sizes[-1])


def workload(kind: str, n: int, events: int, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """lo, hi, scores, event values."""
    if kind.startswith("paper"):
        points = regional_points(rng, n + events, 1)[:, 0]
        half = zipf_lengths(rng, n, 1)[:, 0]
        values = points[n:] if kind == "paper" else regional_points(rng, events, 1)[:, 0]
        return snap(points[:n] - half), snap(points[:n] + half), 1 - half, snap(values)
    start = rng.random(n)
    if kind == "short":
        return snap(start), snap(start + 20 / n * rng.random(n)), rng.random(n), snap(rng.random(events))
    return snap(start * 0.05), snap(1 - 0.05 * rng.random(n)), rng.random(n), snap(rng.random(events))


def _paced(tasks: dict[str, Callable[[Any], Any]], events: list[Any], progress: Progress) -> dict[str, float]:
    """Seconds per event. Slow methods answer fewer of the events, fast ones more often."""
    seconds: dict[str, float] = {}
    paces: dict[tuple[int, int], dict[str, Callable[[Any], Any]]] = {}
    for name, task in tasks.items():
        once = mean_least({name: task}, events[:3], 2)[name]
        pace = (200, ROUNDS) if once < _QUICK else (20, 5) if once < _SLOW else (5, 2)
        paces.setdefault(pace, {})[name] = task
    for (count, rounds), group in paces.items():
        progress(f"timing {', '.join(group)}")
        # As in the paper's experiments: some queries to warm up, then others are measured.
        seconds |= mean_least(group, events[:count], rounds, warm_up=events[count:])
    return seconds


def one_dimension(kind: str, n: int, progress: Progress) -> list[Row]:
    rng = np.random.default_rng(17)
    lo, hi, scores, values = workload(kind, n, _EVENTS, rng)
    order = np.lexsort((np.arange(n), -scores))
    catalogue = topk.Catalogue.from_boxes(lo, hi, scores)
    rows: dict[str, Row] = {}
    single: dict[str, Callable[[Any], Any]] = {}
    batch: dict[str, Callable[[Any], Any]] = {}
    values_list, together = values.tolist(), values[:_BATCH, None]
    ranked_lo, ranked_hi, ranked_scores = lo[order], hi[order], scores[order]

    def answering(search: Search) -> Any:
        def answer(value: float, k: int) -> list[tuple[int, float]]:
            at = search(value, k)
            return list(zip(order[at].tolist(), ranked_scores[at].tolist(), strict=True))

        return answer

    reference = answering(PEERS["numpy scan, score order"](ranked_lo, ranked_hi))
    expected = [reference(v, K) for v in values_list[:20]]

    def add(name: str, build: Callable[[], Any]) -> Any:
        progress(f"{kind}, n = {n:,}: building {name}")
        made, seconds = timed(build)
        rows[name] = {"case": kind, "n": n, "method": name, "build_ms": seconds * 1e3}
        return made

    for name, peer in PEERS.items():
        try:
            search = answering(add(name, partial(peer, ranked_lo, ranked_hi)))
        except ImportError as missing:
            rows.pop(name, None)
            progress(f"{name} left out: {missing}")
            continue
        for v, want in zip(values_list, expected, strict=False):
            assert search(v, K) == want, f"{name} disagrees at {v}"
        single[name] = partial(search, k=K)
    topk.create(OURS, topk.Catalogue.from_boxes(lo[:1000], hi[:1000], scores[:1000]))  # compile before timing
    for name in (OURS, *_PAPERS):
        index = add(name, partial(topk.create, name, catalogue))
        for v, want in zip(values_list, expected, strict=False):
            assert index.top(v, K) == want, f"{name} disagrees at {v}"
        index.stats.reset()
        single[name] = partial(index.top, k=K)
        batch[name] = partial(index.top_many, k=K)
        index.top_many(together, K)
        did = index.stats
        rows[name] |= {"bytes": index.nbytes, "nodes": did.nodes / did.queries, "entries": did.entries / did.queries}
    # Ours takes turns with the peers; the papers' structures, which touch far more memory, come after.
    papers = {name: single.pop(name) for name in _PAPERS}
    times = _paced(single, values_list, progress) | _paced(papers, values_list, progress)
    for name, seconds in times.items():
        rows[name] |= {"us_single": seconds * 1e6, "times_ours": seconds / times[OURS]}
    for name, task in batch.items():
        rows[name]["us_batch"] = mean_least({name: task}, [together], 7)[name] / _BATCH * 1e6
    ends = np.concatenate((lo, hi))
    builds = mean_least({"sort": lambda _: np.sort(ends), "build": lambda _: topk.create(OURS, catalogue)}, [0], 25)
    rows[OURS] |= {"build_ms": builds["build"] * 1e3, "build_over_sort": builds["build"] / builds["sort"]}
    return list(rows.values())


def several_dimensions(d: int, n: int, progress: Progress) -> list[Row]:
    rng = np.random.default_rng(23)
    points = regional_points(rng, n + 1000, d)
    half = zipf_lengths(rng, n, d)
    catalogue = topk.Catalogue.from_boxes(points[:n] - half, points[:n] + half, 1 - half)
    events = points[n:]
    found: list[Row] = []
    for semantics in topk.SEMANTICS:
        case, indexes, rows = f"paper, d = {d}, {semantics}", {}, {}
        for name in ("scan", OURS):
            progress(f"{case}, n = {n:,}: building {name}")
            index, seconds = timed(partial(topk.create, name, catalogue, semantics=semantics))
            indexes[name] = index
            rows[name] = {"case": case, "n": n, "method": name, "build_ms": seconds * 1e3, "bytes": index.nbytes}
        for e in events[:10]:
            assert indexes["scan"].top(e, K) == indexes[OURS].top(e, K), "the two disagree"
        times = mean_least({name: partial(index.top, k=K) for name, index in indexes.items()}, events[:30], 7)
        for name, seconds in times.items():
            rows[name] |= {"us_single": seconds * 1e6, "times_ours": seconds / times[OURS]}
        batch = mean_least({OURS: partial(indexes[OURS].top_many, k=K)}, [events], 5)[OURS]
        rows[OURS]["us_batch"] = batch / len(events) * 1e6
        found += rows.values()
    return found


def space(n: int) -> list[Row]:
    """Bytes of the two recommended trees against the interval data they hold."""
    lo, hi, scores, _ = workload("paper", n, 1, np.random.default_rng(3))
    entries = Entries(np.arange(n), lo, hi, scores, np.arange(n))
    rows = []
    for tree, each in ((SoptRTree, 24), (IRTree, 32)):  # bounds and row; the updatable one also score and id
        size = tree(entries).nbytes
        row = {"case": "space", "n": n, "method": tree.name, "bytes": size, "bytes_over_data": size / (each * n)}
        rows.append(row)
    return rows


def verdicts(rows: list[Row]) -> list[Row]:
    largest = max(r["n"] for r in rows if r["case"] == "paper")

    def of(case: str, method: str | None = None) -> list[dict[str, Any]]:
        return [r for r in rows if r["case"] == case and r["n"] == largest and method in (None, r["method"])]

    def at_least(target: str, value: float, least: float) -> Row:
        return verdict(target, f"{value:.2f}×", value >= least)

    def at_most(target: str, value: float, most: float) -> Row:
        return verdict(target, f"{value:.2f}×", value <= most)

    out = []
    for case, alone, batch in (("paper", 20.0, None), ("paper, elsewhere", 20.0, None), ("short", 4.0, 15.0)):
        peers = {r["method"]: float(r["us_single"]) for r in of(case) if r["method"] in PEERS}
        best = min(peers, key=lambda name: peers[name])
        ours = of(case, OURS)[0]
        where = f"{case}, n = {largest:,}, against {best}"
        out.append(at_least(f"{where}: single call at least {alone:g}×", peers[best] / ours["us_single"], alone))
        if batch:
            out.append(at_least(f"{where}: batch at least {batch:g}×", peers[best] / ours["us_batch"], batch))
    wide = of("wide", SCAN)[0]["us_single"] / of("wide", OURS)[0]["us_single"]
    out.append(at_least("wide: never slower than a branch-free score-ordered scan, single call", wide, 1.0))
    batch_wide = of("wide", SCAN)[0]["us_single"] / of("wide", OURS)[0]["us_batch"]
    out.append(at_least("wide: the same in a batch", batch_wide, 1.0))
    ratio = of("paper", OURS)[0]["build_over_sort"]
    out.append(at_most("build of ours at most 5× numpy's sort of the endpoints", ratio, 5.0))
    for row in of("short", OURS):
        out.append(at_most("the same where all intervals are short", row["build_over_sort"], 5.0))
    for semantics in topk.SEMANTICS:
        scan = of(f"paper, d = 4, {semantics}", "scan")[0]["times_ours"]
        out.append(at_least(f"4 dimensions, {semantics}, n = {largest:,}: at least 20× the scan", scan, 20.0))
    for method, most in (("sopt-rtree", 1 + 2 / 49), ("ir-tree", 2.0)):
        ratio = of("space", method)[0]["bytes_over_data"]
        out.append(at_most(f"{method}: at most {most:.2f}× the interval data", ratio, most))
    return out
