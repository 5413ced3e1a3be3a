"""Sadoghi & Jacobsen, "Relevance Matters: Capitalizing on Less" (ICDE 2012): Table II and Figures 6 to 9.

SCAN, k-index, BE-Tree, BE*-Tree (built one by one) and BE*-B (built at once) on BEGen-like expressions (see
`sim.workloads.begen` for what is ours about them) and on author- and title-like sets. Figures 6 and 7 match everything,
as the paper's do; Figures 8 and 9 compare with top-1 and top-5.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from analysis.claims import Claim
from sim.reproduce.matching import Asks, Progress, Sheet, most_saved, saved
from sim.workloads.begen import Begen, Expressions, begen, dblp_like, varied
from topk.sparse import build

SCAN, KIND, BE, BATCH, STAR = "SCAN", "k-ind", "BE", "BE*-B", "BE*"
_METHODS = {SCAN: "scan", KIND: "k-index", BE: "be-tree", BATCH: "be-star-batch", STAR: "be-star"}
_DISTRIBUTIONS = ("uniform", "zipf")
# Reasons say what was counted, and call the rest a guess.
_OWN_DATA = (
    "our expressions are not theirs: BEGen's correlation between expressions and events is not published, ours is "
    "a model of our own with near misses around every match; which of its traits changes the factor was not isolated"
)


def run(out: Path, quick: bool, progress: Progress) -> list[Claim]:
    sheet = Sheet("icde12", out, progress)
    base = Begen(subscriptions=20_000 if quick else 100_000, events=20)
    _construction(sheet, base if quick else varied(base, subscriptions=1_000_000))
    _capacity(sheet, base)
    macro = {d: _macro(sheet, varied(base, distribution=d), quick) for d in _DISTRIBUTIONS}
    _overall(sheet, macro)
    _by_cardinality(sheet, macro)
    _by_cluster(sheet, macro)
    _top_k(sheet, base, quick)
    return sheet.claims


def asks(workload: Expressions, k: int | None, names: Sequence[str], suffix: str = "", **options: Any) -> Asks:
    """What to time: every method's answer to one event."""

    def ask(name: str) -> Callable[[Any], Any]:
        method = _METHODS[name]
        index = build(method, workload.catalogue, **(options if method.startswith("be") else {}))
        return lambda event: index.top(event, k)

    return {f"{name}{suffix}": ask(name) for name in names}


def _sweep(sheet: Sheet, figure: str, title: str, x: str, values: Sequence[tuple[float, Begen]]) -> Any:
    def point(parameters: Begen) -> tuple[Asks, Sequence[Any]]:
        workload = begen(parameters)
        probability = parameters.match_probability
        return asks(workload, None, tuple(_METHODS), match_probability=probability), list(workload.events)

    return sheet.sweep(figure, title, x, [(v, lambda p=p: point(p)) for v, p in values])  # type: ignore[misc]


def _macro(sheet: Sheet, base: Begen, quick: bool) -> dict[str, Any]:
    """Figures 6 and 7 for one distribution of attributes."""
    d = base.distribution
    cardinalities = (2_500, 250_000, 250_000_000) if quick else (2_500, 25_000, 250_000, 2_500_000, 250_000_000)
    dimensions = (50, 400, 1400) if quick else (50, 100, 200, 400, 800, 1400)
    clusters = (2, 10, None) if quick else (2, 4, 10, 18, 26, None)
    sizes = (25, 100, 800) if quick else (25, 50, 100, 200, 400, 800)
    events = ((5, 13), (8, 15), (30, 43)) if quick else ((5, 13), (8, 15), (16, 25), (30, 43), (66, 81))
    return {
        "cardinality": _sweep(sheet, f"fig-6-cardinality-{d}", f"Cardinality, {d}", "cardinality",
                              [(c, varied(base, cardinality=c)) for c in cardinalities]),
        "dimensions": _sweep(sheet, f"fig-6-dimensions-{d}", f"Dimensions, {d}", "dimensions",
                             [(c, varied(base, dimensions=c)) for c in dimensions]),
        "clusters": _sweep(sheet, f"fig-7-clusters-{d}", f"Clusters ({30} stands for none), {d}", "clusters",
                           [(30 if c is None else c, varied(base, clusters=c)) for c in clusters]),
        "cluster-size": _sweep(sheet, f"fig-7-cluster-size-{d}", f"Cluster size, {d}", "cluster size",
                               [(c, varied(base, cluster_size=c)) for c in sizes]),
        "size": _sweep(sheet, f"fig-7-size-{d}", f"Predicates per expression, {d}", "predicates",
                       [(s, varied(base, subscription_size=s, event_size=e)) for s, e in events]),
    }  # fmt: skip


def _overall(sheet: Sheet, macro: dict[str, dict[str, Any]]) -> None:
    for d, over_k, over_be in (("uniform", 60.0, 35.0), ("zipf", 90.0, 65.0)):
        for peer, published in ((KIND, over_k), (BE, over_be)):
            gains = [saved(series, peer, STAR) for series in macro[d].values()]
            sheet.gain(
                f"average-{peer}-{d}".lower(), f"{d}: BE* takes less time than {peer}, on average", published,
                sum(gains) / len(gains), _OWN_DATA, figure=f"fig-6-cardinality-{d}",
            )  # fmt: skip


def _by_cardinality(sheet: Sheet, macro: dict[str, dict[str, Any]]) -> None:
    for d, published in (("uniform", 1.29), ("zipf", 1.36)):
        series = macro[d]["cardinality"]
        be, star = (series[name][max(series[name])] / series[name][min(series[name])] for name in (BE, STAR))
        sheet.statement(
            f"cardinality-{d}", f"{d}: BE slows down with cardinality, BE* hardly",
            f"BE {published:.2f}×, BE* about 1×",
            f"BE {be:.2f}×, BE* {star:.2f}×", be > 1.05 and star < be, _OWN_DATA, f"fig-6-cardinality-{d}",
        )  # fmt: skip


def _by_cluster(sheet: Sheet, macro: dict[str, dict[str, Any]]) -> None:
    clusters, size = macro["zipf"]["clusters"], macro["zipf"]["cluster-size"]
    why = (
        "in our data the steps of k-index grow only by about 1.4 (fewer clusters) and 1.6 (smaller clusters) at 20,000 "
        "expressions, while it opens the same 135 lists per event; that opening hides the rest is a guess"
    )
    sheet.factor(
        "clusters-k-ind", "Zipf: k-index slows down from no clusters to two", 20.84,
        clusters[KIND][2] / clusters[KIND][30], why, figure="fig-7-clusters-zipf",
    )  # fmt: skip
    sheet.factor(
        "cluster-size-k-ind", "Zipf: k-index slows down from cluster size 800 to 25", 17.44,
        size[KIND][25] / size[KIND][800], why, figure="fig-7-cluster-size-zipf",
    )  # fmt: skip
    sheet.gain(
        "clusters-be", "Zipf: BE* saves over BE when data is clustered, at most", 77.0, most_saved(clusters, BE, STAR),
        _OWN_DATA, figure="fig-7-clusters-zipf",
    )  # fmt: skip
    everywhere = all(
        min(series, key=lambda name: series[name][x]) in (STAR, BATCH)
        for family in macro.values() for key in ("clusters", "cluster-size") for series in (family[key],)
        for x in series[STAR]
    )  # fmt: skip
    sheet.statement(
        "fig-7-dominant", "BE* is the fastest for every number and size of clusters", "always",
        "always" if everywhere else "not always", everywhere, _OWN_DATA, "fig-7-cluster-size-zipf",
    )  # fmt: skip


def _construction(sheet: Sheet, base: Begen) -> None:
    """Table II(b): seconds to build by insertion. The kernels are compiled before."""
    build("be-star", begen(varied(base, subscriptions=500)).catalogue)
    count = base.subscriptions
    share = count / 1_000_000
    sets = {
        "uniform": (begen(base), 2.30), "Zipf": (begen(varied(base, distribution="zipf")), 2.45),
        "author": (dblp_like("author", int(760_000 * share), 1), 4.98),
        "title": (dblp_like("title", int(250_000 * share), 1), 2.83),
    }  # fmt: skip
    for name, (workload, published) in sets.items():
        sheet.progress(f"icde12 table II: building {name}")
        started = time.perf_counter()
        build("be-star", workload.catalogue)
        seconds = time.perf_counter() - started
        full = published * share
        sheet.statement(
            f"construction-{name}".lower(), f"{name}: BE* is built dynamically in seconds ({len(workload.catalogue)})",
            f"{published} s for the full set, {full:.2g} s in proportion", f"{seconds:.2f} s", seconds <= 2.0 * full,
            "an insertion here also keeps weight bounds at every level and the boxes of the inactive dimensions; "
            "what share of the time that is was not measured",
        )  # fmt: skip


def _capacity(sheet: Sheet, base: Begen) -> None:
    """Table II(a): which capacity of an l-node is best at which match probability."""
    for probability, published in ((0.001, 5), (0.05, 20), (0.2, 160)):
        workload = begen(varied(base, match_probability=probability))

        def point(workload: Expressions = workload) -> tuple[Asks, Sequence[Any]]:
            # All capacities in one point: they take turns, so a busy machine slows them alike.
            every: dict[str, Any] = {}
            for capacity in (5, 20, 160):
                every |= asks(workload, None, (STAR,), f" A={capacity}", capacity=capacity)
            return every, list(workload.events)

        figure, title = f"table-2a-{probability:g}", f"Capacity at {probability:.1%}"
        times = sheet.sweep(figure, title, "match probability", [(probability, point)], rounds=5)
        series = {capacity: times[f"{STAR} A={capacity}"][probability] for capacity in (5, 20, 160)}
        best = min(series, key=lambda c: series[c])
        near = series[published] <= 1.1 * series[best]
        sheet.statement(
            f"capacity-{probability:g}", f"best l-node capacity at match probability {probability:.1%}", str(published),
            f"{best:g} (theirs takes {series[published] / series[best]:.2f}×)", near,
            "a guess: a node visited costs us more, against an expression compared, than it cost them",
            f"table-2a-{probability:g}",
        )  # fmt: skip


def _top_k(sheet: Sheet, base: Begen, quick: bool) -> None:
    """Figures 8 and 9."""
    n = base.subscriptions
    steps = (n // 2, n) if quick else (n, 4 * n, 10 * n)
    published = {"uniform": (23.0, 1.3), "zipf": (77.0, 6.2), "author": (72.0, 3.5), "title": (71.0, 8.5)}

    def make(name: str, count: int) -> Expressions:
        if name in _DISTRIBUTIONS:
            return begen(varied(base, subscriptions=count, distribution=name))
        return dblp_like(name, int(count * (0.76 if name == "author" else 0.25)), 20)

    def point(workload: Expressions, **options: Any) -> tuple[Asks, Sequence[Any]]:
        every: dict[str, Any] = {}
        every |= asks(workload, None, (KIND, STAR), "", **options)
        every |= asks(workload, 1, (KIND, STAR), "(1)", **options)
        every |= asks(workload, 5, (STAR,), "(5)", **options)
        return every, list(workload.events)

    for name, (star, kind) in published.items():
        points: Any = [(c, lambda c=c, name=name: point(make(name, c))) for c in steps]
        series = sheet.sweep(f"fig-8-{name}", f"Top-k and size, {name}", "expressions", points)
        sheet.gain(
            f"top-1-be-{name}", f"{name}: BE*(1) saves over BE*, at most", star, most_saved(series, STAR, f"{STAR}(1)"),
            "an author- or title-like event of ours matches one expression, so that finding the best is finding all"
            if name in ("author", "title") else _OWN_DATA, figure=f"fig-8-{name}",
        )  # fmt: skip
        gain = most_saved(series, KIND, f"{KIND}(1)")
        why = "ours also skips whole partitions by size; that this is the cause is a guess"
        sheet.statement(
            f"top-1-k-ind-{name}", f"{name}: k-ind(1) saves little over k-ind", f"{kind} %", f"{gain:.3g} %",
            gain < 30.0, why, f"fig-8-{name}",
        )  # fmt: skip
    for d in _DISTRIBUTIONS:
        by_probability: Any = [
            (p, lambda p=p, d=d: point(begen(varied(base, distribution=d, match_probability=p)), match_probability=p))
            for p in ((0.0001, 0.01, 0.09) if quick else (0.0001, 0.001, 0.01, 0.05, 0.09))
        ]
        series = sheet.sweep(f"fig-9-{d}", f"Top-k and match probability, {d}", "match probability", by_probability)
        ahead = all(series[f"{STAR}(1)"][p] < series[f"{KIND}(1)"][p] for p in series[STAR])
        sheet.statement(
            f"fig-9-{d}", f"{d}: BE*(1) beats k-ind(1) at every match probability", "always",
            "always" if ahead else "not always", ahead, _OWN_DATA, f"fig-9-{d}",
        )  # fmt: skip
