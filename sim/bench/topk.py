"""Top-k stabbing against its peers, in one run: build, bytes, µs per query alone and in a batch, ratio.

Four workloads. "paper": the regional Zipf generator of VLDB 2008, score = 1 − half-length, a third matches,
events from the same regions as the subscriptions. "paper, elsewhere": the same subscriptions, events from
other regions, where few of the short, high-scoring intervals are. "short": ten of n match. "wide": almost
everything matches.

Then 4 dimensions, events that are intervals, our index from a thousand to five million subscriptions, the
space of the papers' trees, and upkeep: the amortised cost of insertions (for the SOPT-R-tree by
log-structured rebuilds), score updates and deletions.

Every method gets a number (from two dimensions on an array) and returns the same answer, a list of (id, score), best
first; all answers are compared before anything is timed. Times are the least of interleaved rounds, because other
processes use the machine too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import topk
from sim.bench import Progress, Row, verdict
from sim.bench.timing import mean_least
from sim.bench.topk_aspects import intervals, scale, space, upkeep
from sim.bench.topk_common import OURS, K, asking, paced, workload
from sim.bench.topk_peers import PEERS
from sim.workloads.regional_zipf import regional_zipf, zipf_lengths

_PAPERS = ("segment-tree", "sopt-rtree", "ir-tree", "scored-rtree", "scored-interval-tree")
SCAN = "branch-free scan, score order"
_EVENTS, _BATCH = 20_000, 1000  # as many as the quickest answers while it warms up; of these a batch


def one_dimension(kind: str, n: int, progress: Progress) -> list[Row]:
    rng = np.random.default_rng(17)
    lo, hi, scores, values = workload(kind, n, _EVENTS, rng)
    order = np.lexsort((np.arange(n), -scores))
    catalogue = topk.Catalogue.from_boxes(lo, hi, scores)
    rows: dict[str, Row] = {}
    single: dict[str, Callable[[Any], Any]] = {}
    batch: dict[str, Callable[[Any], Any]] = {}
    values_list = values.tolist()
    ranked_lo, ranked_hi, ranked_scores = lo[order], hi[order], scores[order]

    def answering(search: Callable[[float, int], Any]) -> Callable[[float, int], list[tuple[int, float]]]:
        def answer(value: float, k: int) -> list[tuple[int, float]]:
            at = search(value, k)
            return list(zip(order[at].tolist(), ranked_scores[at].tolist(), strict=True))

        return answer

    reference = answering(PEERS["numpy scan, score order"](ranked_lo, ranked_hi))
    expected = [reference(v, K) for v in values_list[:20]]

    def add(name: str, build: Callable[[], Any]) -> Any:
        progress(f"{kind}, n = {n:,}: building {name}")
        started = time.perf_counter()
        made = build()
        rows[name] = {"case": kind, "n": n, "method": name, "build_ms": (time.perf_counter() - started) * 1e3}
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
        single[name] = asking(search)
    topk.create(OURS, topk.Catalogue.from_boxes(lo[:1000], hi[:1000], scores[:1000]))  # compile before timing
    for name in (OURS, *_PAPERS):
        index = add(name, partial(topk.create, name, catalogue))
        events = values[:_BATCH, None]
        for v, want in zip(values_list, expected, strict=False):
            assert index.top(v, K) == want, f"{name} disagrees at {v}"
        index.stats.reset()
        rows[name]["bytes"] = index.nbytes
        single[name] = asking(index.top)
        batch[name] = asking(index.top_many)
        index.top_many(events, K)
        rows[name]["nodes"] = index.stats.nodes / index.stats.queries
        rows[name]["entries"] = index.stats.entries / index.stats.queries
    # Ours takes turns with the peers; the papers' structures, which touch far more memory, come after.
    rivals = {name: task for name, task in single.items() if name not in _PAPERS}
    times = paced(rivals, values_list, progress)
    times |= paced({name: single[name] for name in _PAPERS}, values_list, progress)
    batches = {name: mean_least({name: batch[name]}, [values[:_BATCH, None]], 7)[name] for name in batch}
    ours = times[OURS]
    for name, seconds in times.items():
        rows[name]["us_single"] = seconds * 1e6
        rows[name]["times_ours"] = seconds / ours
        if name in batches:
            rows[name]["us_batch"] = batches[name] / _BATCH * 1e6
    rows[OURS].update(_build_against_sort(catalogue, lo, hi))
    return list(rows.values())


def _build_against_sort(catalogue: topk.Catalogue, lo: Any, hi: Any) -> Row:
    ends = np.concatenate((lo, hi))
    times = mean_least({"sort": lambda _: np.sort(ends), "build": lambda _: topk.create(OURS, catalogue)}, [0], 25)
    return {"build_ms": times["build"] * 1e3, "build_over_sort": times["build"] / times["sort"]}


def several_dimensions(d: int, n: int, progress: Progress) -> list[Row]:
    rng = np.random.default_rng(23)
    points = regional_zipf(rng, n + 1000, d)
    half = zipf_lengths(rng, n, d)
    catalogue = topk.Catalogue.from_boxes(points[:n] - half, points[:n] + half, 1 - half)
    events = points[n:]
    rows: list[Row] = []
    for semantics in topk.SEMANTICS:
        indexes = {}
        for name in ("scan", OURS):
            progress(f"{d} dimensions, {semantics}, n = {n:,}: building {name}")
            started = time.perf_counter()
            indexes[name] = topk.create(name, catalogue, semantics=semantics)
            rows.append(
                {
                    "case": f"paper, d = {d}, {semantics}",
                    "n": n,
                    "method": name,
                    "build_ms": (time.perf_counter() - started) * 1e3,
                    "bytes": indexes[name].nbytes,
                }
            )
        for e in events[:10]:
            assert indexes["scan"].top(e, K) == indexes[OURS].top(e, K), "the two disagree"
        tasks = {name: asking(index.top) for name, index in indexes.items()}
        times = mean_least(tasks, list(events[:30]), 7)
        batch = mean_least({OURS: asking(indexes[OURS].top_many)}, [events], 5)[OURS]
        for row in rows[-2:]:
            row["us_single"] = times[str(row["method"])] * 1e6
            if row["method"] == OURS:
                row["us_batch"] = batch / len(events) * 1e6
        ours = rows[-1]["us_single"]
        for row in rows[-2:]:
            row["times_ours"] = row["us_single"] / ours
    return rows


def run(quick: bool, progress: Progress) -> list[Row]:
    sizes = (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    rows: list[Row] = []
    for n in sizes:
        for kind in ("paper", "paper, elsewhere", "short", "wide"):
            rows += one_dimension(kind, n, progress)
    for n in sizes[1:]:
        rows += several_dimensions(4, n, progress)
    rows += intervals(sizes[-1], progress)
    rows += scale((1000, *sizes) if quick else (1000, *sizes, 5_000_000), progress)
    rows += space(sizes[-1])
    return rows + upkeep(5_000 if quick else 50_000, progress)


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
