"""Sadoghi & Jacobsen, "Relevance Matters: Capitalizing on Less" (ICDE 2012): Table II and Figures 6 to 9.

SCAN, k-index, BE-Tree, BE*-Tree (built one by one) and BE*-B (built at once) on BEGen-like expressions (see
`sim.workloads.begen` for what is ours about them) and on author- and title-like sets. Figures 6 and 7 match everything,
as the paper's do; Figures 8 and 9 compare with top-1 and top-5.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from analysis.report.claims import Claim
from sim.bench import Progress
from sim.reproduce.sheet import NOISE, Asks, Sheet, most_saved, saved
from sim.workloads.begen import Begen, Expressions, begen, dblp_like
from topk.sparse import build

SCAN, KIND, BE, BATCH, STAR = "SCAN", "k-ind", "BE", "BE*-B", "BE*"
_METHODS = {SCAN: "scan", KIND: "k-index", BE: "be-tree", BATCH: "be-star-batch", STAR: "be-star"}
_DISTRIBUTIONS = ("uniform", "zipf")
_NONE = 30  # where "no clusters" is drawn on the axis of clusters
_CAPACITIES = (5, 20, 160)  # of an l-node, Table II(a)
_LITTLE = 30.0  # per cent: what still counts as a minor improvement; the paper quotes up to 11
# Reasons say what was counted, and call the rest a guess.
_OWN_DATA = (
    "our expressions are not theirs: BEGen's correlation between expressions and events is not published, ours is "
    "a model of our own with near misses around every match; which of its traits changes the factor was not isolated"
)


def run(out: Path, quick: bool, progress: Progress) -> list[Claim]:
    """Sizes as in Table III; with `quick` a twentieth."""
    sheet = Sheet("icde12", out, progress, "20,000 expressions instead of up to 1,000,000" if quick else "")
    small = Begen(subscriptions=20_000 if quick else 100_000, events=10 if quick else 20)
    large = replace(small, subscriptions=20_000 if quick else 1_000_000)
    _construction(sheet, large)
    _capacity(sheet, small)
    macro = {d: _macro(sheet, replace(small, distribution=d), large.subscriptions, quick) for d in _DISTRIBUTIONS}
    _overall(sheet, macro)
    _by_cardinality(sheet, macro, small)
    _by_cluster(sheet, macro, replace(small, distribution="zipf"))
    _by_size(sheet, small, large.subscriptions)
    _by_probability(sheet, large, quick)
    return sheet.claims


def asks(
    workload: Expressions, names: Sequence[str], ks: Mapping[str, Sequence[int | None]] | None = None, **options: Any
) -> Asks:
    """What to time: every method's answer to one event, for all matches or for each of its ks; each built once."""
    found: dict[str, Callable[[Any], Any]] = {}
    for name in names:
        method = _METHODS[name]
        index = build(method, workload.catalogue, **(options if method.startswith("be") else {}))
        for k in (ks or {}).get(name, (None,)):
            found[name if k is None else f"{name}({k})"] = partial(index.top, k=k)
    return found


def _sweep(sheet: Sheet, figure: str, title: str, x: str, values: Sequence[tuple[float, Begen]]) -> Any:
    def point(parameters: Begen) -> tuple[Asks, Sequence[Any]]:
        workload = begen(parameters)
        probability = parameters.match_probability
        return asks(workload, tuple(_METHODS), match_probability=probability), list(workload.events)

    return sheet.sweep(figure, title, x, [(v, partial(point, p)) for v, p in values])


def _macro(sheet: Sheet, base: Begen, large: int, quick: bool) -> dict[str, Any]:
    """Figures 6 and 7 for one distribution of attributes."""
    d = base.distribution
    cardinalities = (2_500, 250_000, 250_000_000) if quick else (2_500, 25_000, 250_000, 2_500_000, 250_000_000)
    dimensions = (50, 400, 1400) if quick else (50, 200, 400, 1400)
    clusters = (2, 10, None) if quick else (2, 4, 10, 18, 26, None)
    sizes = (25, 100, 800) if quick else (25, 50, 100, 200, 400, 800)
    events = ((5, 13), (8, 15), (30, 43)) if quick else ((5, 13), (8, 15), (16, 25), (30, 43), (66, 81))
    return {
        "cardinality": _sweep(sheet, f"fig-6-cardinality-{d}", f"Cardinality, {d}", "cardinality",
                              [(c, replace(base, cardinality=c)) for c in cardinalities]),
        "dimensions": _sweep(sheet, f"fig-6-dimensions-{d}", f"Dimensions, {d}", "dimensions",
                             [(c, replace(base, dimensions=c, subscriptions=large)) for c in dimensions]),
        "clusters": _sweep(sheet, f"fig-7-clusters-{d}", f"Clusters ({_NONE}: none), {d}", "clusters",
                           [(c or _NONE, replace(base, clusters=c)) for c in clusters]),
        "cluster-size": _sweep(sheet, f"fig-7-cluster-size-{d}", f"Cluster size, {d}", "cluster size",
                               [(c, replace(base, cluster_size=c)) for c in sizes]),
        "size": _sweep(sheet, f"fig-7-size-{d}", f"Predicates per expression, {d}", "predicates",
                       [(s, replace(base, subscription_size=s, event_size=e)) for s, e in events]),
    }  # fmt: skip


def _overall(sheet: Sheet, macro: dict[str, dict[str, Any]]) -> None:
    for d, over_k, over_be in (("uniform", 60.0, 35.0), ("zipf", 90.0, 65.0)):
        for peer, published in ((KIND, over_k), (BE, over_be)):
            gains = [saved(series, peer, STAR) for series in macro[d].values()]
            sheet.gain(
                f"average-{peer}-{d}".lower(),
                f"{d}: BE* takes less time than {peer}, on average",
                published,
                sum(gains) / len(gains),
                _OWN_DATA,
                figure=f"fig-6-cardinality-{d}",
            )


def _by_cardinality(sheet: Sheet, macro: dict[str, dict[str, Any]], base: Begen) -> None:
    for d, published in (("uniform", 1.29), ("zipf", 1.36)):
        series = macro[d]["cardinality"]
        be, star = (series[name][max(series[name])] / series[name][min(series[name])] for name in (BE, STAR))
        grown = sheet.kept(f"growth-{d}", partial(_growth, replace(base, distribution=d), sorted(series[BE])))
        counted = ", ".join(f"{what} {factor:.2f}×" for what, factor in grown.items())
        sheet.statement(
            f"cardinality-{d}",
            f"{d}: BE slows down with cardinality, BE* hardly",
            f"BE {published:.2f}×, BE* about 1×",
            f"BE {be:.2f}×, BE* {star:.2f}×",
            be >= 1.0 + NOISE and star <= max(1.0 + NOISE, (1.0 + be) / 2.0),
            f"what is looked at per event changes by these factors in our data: {counted}; values lie in a few "
            "clusters whatever the cardinality is",
            f"fig-6-cardinality-{d}",
        )


def _growth(parameters: Begen, cardinalities: Sequence[int]) -> dict[str, float]:
    """By how much what the trees look at per event grows from the first cardinality to the last."""
    found: dict[str, float] = {}
    for name in (BE, STAR):
        counts = []
        for cardinality in (cardinalities[0], cardinalities[-1]):
            workload = begen(replace(parameters, cardinality=cardinality))
            index = build(_METHODS[name], workload.catalogue, match_probability=parameters.match_probability)
            counts.append(looked(index, workload.events, None))
        (nodes, entries), (more_nodes, more_entries) = counts
        found |= {f"{name} nodes": more_nodes / nodes, f"{name} expressions": more_entries / entries}
    return found


def looked(index: Any, events: Sequence[Any], k: int | None) -> tuple[float, float]:
    """Nodes and expressions that an index looks at per event."""
    nodes, entries = index.stats.nodes, index.stats.entries
    for event in events:
        index.top(event, k)
    return (index.stats.nodes - nodes) / len(events), (index.stats.entries - entries) / len(events)


def _steps(parameters: Begen) -> float:
    """Rows that k-index looks at per event."""
    workload = begen(parameters)
    return looked(build("k-index", workload.catalogue), workload.events, None)[1]


def _by_cluster(sheet: Sheet, macro: dict[str, dict[str, Any]], base: Begen) -> None:
    clusters, size = macro["zipf"]["clusters"], macro["zipf"]["cluster-size"]
    fewer = _steps(replace(base, clusters=2)) / _steps(replace(base, clusters=None))
    smaller = _steps(replace(base, cluster_size=25)) / _steps(replace(base, cluster_size=800))
    why = (
        f"in our data the rows that k-index looks at grow only {fewer:.3g}× from no clusters to two and {smaller:.3g}× "
        "from cluster size 800 to 25: half of our expressions belong to topics, whose anchors they share whatever the "
        "clusters are"
    )
    sheet.factor(
        "clusters-k-ind",
        "Zipf: k-index slows down from no clusters to two",
        20.84,
        clusters[KIND][2] / clusters[KIND][_NONE],
        why,
        figure="fig-7-clusters-zipf",
    )
    sheet.factor(
        "cluster-size-k-ind",
        "Zipf: k-index slows down from cluster size 800 to 25",
        17.44,
        size[KIND][25] / size[KIND][800],
        why,
        figure="fig-7-cluster-size-zipf",
    )
    sheet.gain(
        "clusters-be",
        "Zipf: BE* saves over BE when data is clustered, at most",
        77.0,
        most_saved(clusters, BE, STAR),
        _OWN_DATA,
        figure="fig-7-clusters-zipf",
    )
    others = (SCAN, KIND, BE)
    worst = min(
        min(series[name][x] for name in others) / min(series[STAR][x], series[BATCH][x])
        for family in macro.values()
        for series in (family["clusters"], family["cluster-size"])
        for x in series[STAR]
    )
    sheet.statement(
        "fig-7-dominant",
        "BE* is the fastest for every number and size of clusters",
        "always",
        _at_worst(worst),
        worst * (1.0 + NOISE) >= 1.0,
        _OWN_DATA,
        "fig-7-cluster-size-zipf",
    )


def _at_worst(ratio: float) -> str:
    return f"the next best takes {ratio:.2f}× as long at worst"


def _construction(sheet: Sheet, base: Begen) -> None:
    """Table II(b): seconds to build by insertion. The kernels are compiled before."""
    build("be-star", begen(replace(base, subscriptions=500)).catalogue)
    share = base.subscriptions / 1_000_000
    sets: dict[str, tuple[Callable[[], Expressions], float]] = {
        "uniform": (lambda: begen(base), 2.30),
        "Zipf": (lambda: begen(replace(base, distribution="zipf")), 2.45),
        "author": (lambda: dblp_like("author", int(760_000 * share), 1), 4.98),
        "title": (lambda: dblp_like("title", int(250_000 * share), 1), 2.83),
    }
    for name, (make, published) in sets.items():
        sheet.progress(f"icde12 table II: building {name}")

        def built(make: Callable[[], Expressions] = make) -> dict[str, float]:
            workload = make()
            started = time.perf_counter()
            build("be-star", workload.catalogue)
            return {"seconds": time.perf_counter() - started, "expressions": len(workload.catalogue)}

        found = sheet.kept(f"construction-{name}".lower(), built)
        full = published * share
        sheet.statement(
            f"construction-{name}".lower(),
            f"{name}: BE* is built dynamically in seconds ({found['expressions']:.0f})",
            f"{published} s for the full set, {full:.2g} s in proportion",
            f"{found['seconds']:.2f} s",
            found["seconds"] <= 2.0 * full,
            "an insertion here also keeps weight bounds at every level and the boxes of the inactive dimensions; "
            "what share of the time that is was not measured",
        )


def _capacity(sheet: Sheet, base: Begen) -> None:
    """Table II(a): which capacity of an l-node is best at which match probability."""
    for probability, published in ((0.001, 5), (0.05, 20), (0.2, 160)):

        def point(probability: float = probability) -> tuple[Asks, Sequence[Any]]:
            # All capacities in one point: they take turns, so a busy machine slows them alike.
            workload = begen(replace(base, match_probability=probability))
            every: dict[str, Any] = {}
            for capacity in _CAPACITIES:
                every[f"{STAR} A={capacity}"] = asks(workload, (STAR,), capacity=capacity)[STAR]
            return every, list(workload.events)

        figure, title = f"table-2a-{probability:g}", f"Capacity at {probability:.1%}"
        times = sheet.sweep(figure, title, "match probability", [(probability, point)], rounds=5)
        series = {capacity: times[f"{STAR} A={capacity}"][probability] for capacity in _CAPACITIES}
        best = min(series, key=lambda c: series[c])
        near = series[published] <= 1.1 * series[best]
        work = sheet.kept(f"{figure}-work", partial(_by_capacity, replace(base, match_probability=probability)))
        sheet.statement(
            f"capacity-{probability:g}",
            f"best l-node capacity at match probability {probability:.1%}",
            str(published),
            f"{best:g} (theirs takes {series[published] / series[best]:.2f}×)",
            near,
            "per event "
            + ", ".join(
                f"{work[f'nodes {c}']:,.0f} nodes are visited and {work[f'expressions {c}']:,.0f} rows compared at {c}"
                for c in (best, published)
            ),
            figure,
        )


def _by_capacity(parameters: Begen) -> dict[str, float]:
    """Nodes and expressions that BE* looks at per event, by capacity of an l-node."""
    workload, found = begen(parameters), {}
    for capacity in _CAPACITIES:
        index = build("be-star", workload.catalogue, capacity=capacity)
        found[f"nodes {capacity}"], found[f"expressions {capacity}"] = looked(index, workload.events, None)
    return found


_TOP_K: Mapping[str, Sequence[int | None]] = {KIND: (None, 1), STAR: (None, 1, 5)}


def _ranked(workload: Expressions, **options: Any) -> tuple[Asks, Sequence[Any]]:
    """k-ind, k-ind(1), BE*, BE*(1) and BE*(5)."""
    return asks(workload, (KIND, STAR), _TOP_K, **options), list(workload.events)


def _work(make: Callable[[], Expressions]) -> dict[str, float]:
    """Matches per event, and by how many per cent BE*(1) does less than BE* to find the best of them."""
    workload = make()
    index, events = build("be-star", workload.catalogue), workload.events
    matches = sum(index.count_matches(event) for event in events) / len(events)
    every, one = looked(index, events, None), looked(index, events, 1)
    nodes, entries = (100.0 * (1.0 - few / all_) for few, all_ in zip(one, every, strict=True))
    return {"matches": matches, "nodes": nodes, "entries": entries}


def _by_size(sheet: Sheet, base: Begen, largest: int) -> None:
    """Figure 8: top-k by the number of expressions."""
    published = {"uniform": (23.0, 1.3), "zipf": (77.0, 6.2), "author": (72.0, 3.5), "title": (71.0, 8.5)}
    steps = (largest // 2, largest) if largest <= base.subscriptions else (largest // 10, 2 * largest // 5, largest)

    def make(name: str, count: int) -> Expressions:
        if name in _DISTRIBUTIONS:
            return begen(replace(base, subscriptions=count, distribution=name))
        return dblp_like(name, count, base.events)

    def point(name: str, count: int) -> tuple[Asks, Sequence[Any]]:
        return _ranked(make(name, count))

    for name, (star, kind) in published.items():
        share = {"author": 0.76, "title": 0.25}.get(name, 1.0)  # of a million: Table III
        counts = [int(step * share) for step in steps]
        series = sheet.sweep(
            f"fig-8-{name}", f"Top-k and size, {name}", "expressions", [(c, partial(point, name, c)) for c in counts]
        )
        work = sheet.kept(f"work-{name}", partial(_work, partial(make, name, counts[0])))
        sheet.gain(
            f"top-1-be-{name}",
            f"{name}: BE*(1) saves over BE*, at most",
            star,
            most_saved(series, STAR, f"{STAR}(1)"),
            f"an event of ours matches {work['matches']:.3g} of {counts[0]:,} expressions; to find the best of them "
            f"BE*(1) visits {work['nodes']:.0f} % fewer nodes than BE* and compares {work['entries']:.0f} % fewer "
            "expressions",
            figure=f"fig-8-{name}",
        )
        gain = most_saved(series, KIND, f"{KIND}(1)")
        sheet.statement(
            f"top-1-k-ind-{name}",
            f"{name}: k-ind(1) saves little over k-ind",
            f"{kind} %",
            f"{gain:.3g} %",
            gain < _LITTLE,
            "ours also skips whole partitions by size; that this is the cause is a guess",
            f"fig-8-{name}",
        )


def _by_probability(sheet: Sheet, base: Begen, quick: bool) -> None:
    """Figure 9: top-k by match probability."""

    def point(distribution: str, probability: float) -> tuple[Asks, Sequence[Any]]:
        workload = begen(replace(base, distribution=distribution, match_probability=probability))
        return _ranked(workload, match_probability=probability)

    for d in _DISTRIBUTIONS:
        probabilities = (0.0001, 0.01, 0.09) if quick else (0.0001, 0.001, 0.01, 0.09)
        series = sheet.sweep(
            f"fig-9-{d}",
            f"Top-k and match probability, {d}",
            "match probability",
            [(p, partial(point, d, p)) for p in probabilities],
        )
        worst = min(series[f"{KIND}(1)"][p] / series[f"{STAR}(1)"][p] for p in series[STAR])
        sheet.statement(
            f"fig-9-{d}",
            f"{d}: BE*(1) beats k-ind(1) at every match probability",
            "always",
            _at_worst(worst),
            worst * (1.0 + NOISE) >= 1.0,
            _OWN_DATA,
            f"fig-9-{d}",
        )
