"""Figures 8 and 9 of ICDE 2012: the best one and five, by the number of expressions and by match probability."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sim.reproduce.icde12_bouts import DISTRIBUTIONS, KIND, OURS, STAR, Ks, bout, drawn, judge
from sim.reproduce.measure import Bout
from sim.reproduce.series import Series, growth, most_saved
from sim.reproduce.sheet import Sheet
from sim.workloads.begen import Begen, begen, dblp_like

TOP_K: Ks = {KIND: (None, 1), STAR: (None, 1, 5), OURS: (None, 1, 5)}


def by_size(sheet: Sheet, base: Begen, largest: int) -> None:
    """Figure 8: top-k by the number of expressions."""
    steps = (largest // 2, largest) if largest <= base.subscriptions else (largest // 10, 2 * largest // 5, largest)

    def point(name: str, count: int, seed: int) -> Bout:
        if name in DISTRIBUTIONS:
            workload = begen(replace(base, subscriptions=count, distribution=name, seed=seed))
        else:
            workload = dblp_like(name, count, base.events, seed)
        return bout(workload, drawn(sheet, TOP_K, seed), TOP_K)

    for name in ("uniform", "zipf", "author", "title"):
        share = {"author": 0.76, "title": 0.25}.get(name, 1.0)  # of a million: Table III
        counts = [int(step * share) for step in steps]
        figure = f"fig-8-{name}"
        points = [(float(c), partial(point, name, c)) for c in counts]
        swept = sheet.sweep(figure, f"Top-k and size, {name}", "expressions", points)
        judge(sheet, f"top-1-be-{name}", swept, lambda s: most_saved(s, STAR, f"{STAR}(1)"), figure, STAR, f"{STAR}(1)")
        judge(
            sheet, f"top-1-k-ind-{name}", swept, lambda s: most_saved(s, KIND, f"{KIND}(1)"), figure, KIND, f"{KIND}(1)"
        )
        five = f"{STAR}(5)"
        judge(sheet, f"top-5-k-ind-{name}", swept, partial(_at_worst, five), figure, f"{KIND}(1)", five)


def by_probability(sheet: Sheet, base: Begen) -> None:
    """Figure 9: top-k by match probability."""
    one, star, five = f"{KIND}(1)", f"{STAR}(1)", f"{STAR}(5)"

    def point(name: str, probability: float, seed: int) -> Bout:
        workload = begen(replace(sets[name], match_probability=probability, seed=seed))
        return bout(workload, drawn(sheet, TOP_K, seed), TOP_K, match_probability=probability)

    words = replace(base, distribution="zipf", dimensions=677, cardinality=26**3)
    share = base.subscriptions / 1_000_000
    sets = {  # the last four columns of Table III
        **{d: replace(base, distribution=d) for d in DISTRIBUTIONS},
        "author": replace(words, subscriptions=int(400_000 * share), subscription_size=8, event_size=16),
        "title": replace(words, subscriptions=int(150_000 * share), subscription_size=30, event_size=43),
    }
    for d in sets:
        probabilities = (0.0001, 0.01, 0.09) if sheet.quick else (0.0001, 0.001, 0.01, 0.09)
        figure, points = f"fig-9-{d}", [(p, partial(point, d, p)) for p in probabilities]
        swept = sheet.sweep(figure, f"Top-k and match probability, {d}", "match probability", points)
        judge(sheet, f"fig-9-{d}", swept, partial(_at_worst, star), figure, one, star)
        judge(sheet, f"fig-9-5-{d}", swept, partial(_at_worst, five), figure, one, five)
        judge(sheet, f"fig-9-scales-{d}", swept, lambda s: growth(s, one) / growth(s, star), figure, one, star)


def _at_worst(name: str, series: Series) -> float:
    """k-ind(1) ÷ another, at the point where this is least."""
    return min(series[f"{KIND}(1)"][x] / series[name][x] for x in series[name])
