"""The study of approximate covering in words, tables and the rows of its pictures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from analysis.report.numbers import UNKNOWN, duration_text, number_text
from analysis.report.study import (
    ATTRIBUTES,
    EXACT,
    IN_PROBES,
    MAYBE,
    NOTHING,
    PAYS,
    Case,
    Interval,
    Row,
    Verdict,
    sensitivity,
)

MANY = 12  # workloads; for more than this a grid replaces the sentences
MOST_NAMES = 3  # searches that a sentence names
# Where the index is under these profiles; under all others it is in memory.
CALLED = {"disk": "on disk", "remote": "on another machine", IN_PROBES: "in probes"}
WHY_RECALL = (
    "Recall misleads: it is per check, and a cover that one broker misses is looked for again at every hop. What is "
    "kept of the saving is what counts."
)


def called(profile: str) -> str:
    return CALLED.get(profile, "in memory")


def sentence(case: Case) -> str:
    """What exact covering saves, then for each place of the index whether approximation pays."""
    words = [f"Exact covering keeps {share_text(case.away)} of the messages away."]
    if all(verdict.what == NOTHING for verdict in case.verdicts):
        return f"{words[0]} There is hardly anything to find, so that no search pays, exact or not."
    return " ".join([*words, *(_of_profile(case, verdict) for verdict in case.verdicts), *_greedy(case)])


def _of_profile(case: Case, verdict: Verdict) -> str:
    exact, best, profile = verdict.exact, verdict.best, verdict.profile
    place = called(profile).capitalize()
    takes = f"{exact.method} takes {cost_text(case, exact, profile)} per subscription"
    if best is None:
        return f"{place}: {takes}."
    numbers = (
        f"{best.name} keeps {with_half(best.kept)} of the saving for {share_text(best.ratio[profile].mean)} of that "
        f"({cost_text(case, best, profile)})"
    )
    if verdict.what in {PAYS, MAYBE}:
        seeds = "one seed does" if case.seeds == 1 else f"{case.seeds} seeds do"
        unsure = "" if verdict.what == PAYS else f", which {seeds} not make sure"
        return f"{place} approximation {verdict.what}: exact search by {takes}, {numbers}{unsure}."
    return f"{place}, use exact covering: {takes}; what comes closest, {numbers}."


def _greedy(case: Case) -> list[str]:
    """What the slides' greedy search on a curve keeps at best, and at what cost under the profile of the runs."""
    rows = [row for row in case.rows if row.on_curve and row.epsilon > 0 and row.kept.mean == row.kept.mean]
    if not rows:
        return []
    best, profile = max(rows, key=lambda row: row.kept.mean), case.profiles[0]
    return [
        f"The slides’ greedy search keeps {share_text(best.kept.mean)} at best ({best.name}), for "
        f"{number_text(best.ratio[profile].mean, '')} times the cost of exact search."
    ]


def overall(cases: Sequence[Case]) -> str:
    """Where the index must be for approximation to pay, in how many workloads, and by how much."""
    if not cases:
        return ""
    sentences = [_overall(cases, number) for number in range(len(cases[0].profiles))]
    nothing = sum(case.verdicts[0].what == NOTHING for case in cases)
    exact = sum(all(verdict.what == EXACT for verdict in case.verdicts) for case in cases)
    if exact:
        sentences.append(f"In {exact} of {len(cases)} exact search is the better choice wherever the index is.")
    if nothing:
        sentences.append(f"In {nothing} there is hardly anything to cover.")
    if min(case.seeds for case in cases) == 1:
        one = sum(case.seeds == 1 for case in cases)
        sentences.append(f"{one} of {len(cases)} workloads have one seed only, which makes nothing sure.")
    return " ".join(sentences)


def _overall(cases: Sequence[Case], number: int) -> str:
    profile = cases[0].profiles[number]
    place = "Counted in probes" if profile == IN_PROBES else f"With the index {called(profile)}"
    verdicts = [case.verdicts[number] for case in cases]
    paying = [verdict for verdict in verdicts if verdict.what == PAYS]
    may = sum(verdict.what == MAYBE for verdict in verdicts)
    maybe = f", and may pay in {may}" if may else ""
    if paying:
        best = [verdict.best for verdict in paying if verdict.best is not None]
        ratios = [row.ratio[profile].mean for row in best]
        names = [name for name, _ in Counter(row.name for row in best).most_common()]
        others = f" and {len(names) - MOST_NAMES} others" if len(names) > MOST_NAMES else ""
        return (
            f"{place} it pays in {len(paying)} of {len(cases)}, at {_range(ratios)} of exact search's cost, by "
            f"{', '.join(names[:MOST_NAMES])}{others}{maybe}."
        )
    keepers = [(v.keeper.ratio[profile].mean, c) for c, v in zip(cases, verdicts, strict=True) if v.keeper is not None]
    least, where = min(keepers, key=lambda pair: pair[0]) if keepers else (math.nan, cases[0])
    closest = f"; what keeps enough costs {share_text(least)} of exact search at least ({where.title})"
    return f"{place} approximation pays in none of {len(cases)} workloads{maybe}{closest if keepers else ''}."


def by_size(cases: Sequence[Case]) -> list[str]:
    """One sentence per number of subscriptions, if there are several: in how many workloads it pays, and which."""
    sizes: dict[int, list[Case]] = {}
    for case in cases:
        sizes.setdefault(case.size, []).append(case)
    if len(sizes) < 2:
        return []
    found = []
    for size, some in sorted(sizes.items()):
        words = []
        for number, profile in enumerate(some[0].profiles):
            paying = [case for case in some if case.verdicts[number].what == PAYS]
            if paying:
                words.append(f"{called(profile)} in {len(paying)} ({kinds(paying)})")
        pays = ", ".join(words) or "in none"
        found.append(f"With {size:,} subscriptions approximation pays {pays} of {len(some)} workloads.")
    return found


def kinds(cases: Sequence[Case]) -> str:
    """Workloads as a list: wide uniform, d = 4, 8; zipf, d = 8."""
    found: dict[str, dict[str, None]] = {}
    for case in cases:
        found.setdefault(case.kind, {})[str(case.fixed.get(ATTRIBUTES, ""))] = None
    return "; ".join(f"{kind}, d = {', '.join(of)}" if any(of) else kind for kind, of in found.items())


def sensitivity_rows(cases: Sequence[Case]) -> list[list[str]]:
    """A row per pair of thresholds: least share kept, most cost, then per profile in how many workloads it pays."""
    return [
        [
            f"{100 * thresholds.keeps:g} %",
            f"{100 * thresholds.cheaper:g} %",
            *(f"{counts[profile]} of {len(cases)}" for profile in cases[0].profiles),
        ]
        for thresholds, counts in sensitivity(cases)
    ]


def sensitivity_sentence(cases: Sequence[Case]) -> str:
    """How the number of workloads in which it pays changes with the thresholds."""
    if not cases:
        return ""
    found, chosen = sensitivity(cases), cases[0].thresholds
    words = []
    for profile in cases[0].profiles:
        counts = [counts[profile] for _, counts in found]
        words.append(f"{called(profile)} {min(counts)} to {max(counts)}")
    kept, cost = ([getattr(t, name) for t, _ in found] for name in ("keeps", "cheaper"))
    return (
        f"“Pays” means at least {share_text(chosen.keeps)} of the saving for at most {share_text(chosen.cheaper)} of "
        f"the cost, at 95 % confidence. With {share_text(min(kept))} to {share_text(max(kept))} at "
        f"{share_text(min(cost))} to {share_text(max(cost))} the workloads in which it pays are: {', '.join(words)}."
    )


def row_cells(case: Case, row: Row) -> list[tuple[str, str, str]]:
    """One search in the table of a case: (column title, note, text) per column."""
    costs = []
    for profile in case.profiles:
        place, note = called(profile), "All searches for its covers, at all brokers that it reaches."
        costs.append((f"{place}, {case.unit}/subscription", note, number_text(row.cost[profile].mean, "")))
        note = "Cost as a multiple of the cheapest exact search, 95 %."
        costs.append((f"× exact {place}", note, _times(row.ratio[profile])))
    saving = "Of the messages (or entries) that exact covering saves against simple routing, 95 %."
    probes = "Key ranges looked up (curve methods), words or boxes compared (others)."
    upper = "The slides' upper bound on approximate search, constant 1, mean over regions; none for other methods."
    recall = f"Covers found, of those that exact covering finds, per check. {WHY_RECALL}"
    settled = "Time within which 95 % of the subscriptions are known wherever they must be."
    count = {name: number_text(value, "") for name, value in row.values.items()}
    share = {name: number_text(value, "share") for name, value in row.values.items()}
    late = "cannot keep up" if row.saturated else ""
    return [
        ("search", "Exact, or the parameter that says what may be missed.", row.name),
        ("saving kept", saving, with_half(row.kept)),
        *costs,
        ("µs/check", "What a check takes by the profile of the runs.", count["check_time"]),
        ("probes/check", probes, count["probes_per_check"]),
        ("bound", upper, number_text(bound(case, row), "")),
        ("recall", recall, share["recall"]),
        ("first hop", "The same at the subscriber's own broker.", share["recall_first_hop"]),
        ("capped", "Part of the checks that a probe cap or a budget ended.", share["capped"]),
        ("table entries", "Of all brokers together, at the end.", count["entries"]),
        ("messages", "Control messages over links.", count["control_messages"]),
        ("settled p95 ms", settled, late or count["convergence_p95"]),
        ("event p95 ms", "Time within which 95 % of the deliveries arrive.", late or count["latency_p95"]),
    ]


def bound(case: Case, row: Row) -> float:
    """The slides' upper bound for the row of a curve method; NaN for other methods, which it is not about."""
    if not case.bounds or not row.on_curve or not row.epsilon > 0:
        return math.nan
    return float(case.bounds["upper"].get(f"{row.epsilon:g}", math.nan))


def trade_rows(case: Case, profile: str) -> list[dict[str, Any]]:
    """A dot per search: its cost and what it keeps, with 95 % intervals, and whether it is on the Pareto front."""
    known = [row for row in case.rows if row.kept.mean == row.kept.mean]
    best, front = -math.inf, set()
    for row in sorted(known, key=lambda row: (row.cost[profile].mean, -row.kept.mean)):
        if row.kept.mean > best:
            best = row.kept.mean
            front.add(row.point)
    found = []
    for row in known:
        y, x = row.kept.mean, row.cost[profile].mean
        (low, high), (xlow, xhigh) = _ends(row.kept), _ends(row.cost[profile])
        place = {"x": x, "y": y, "low": low, "high": high, "xlow": max(xlow, x / 10), "xhigh": xhigh}
        text = f"{cost_text(case, row, profile)} per subscription, {with_half(row.kept)} of the saving"
        words = {"series": "exact" if row.exact else _kind(row), "name": row.name, "label": _label(row)}
        # Four digits are more than a picture shows, and a study has thousands of dots.
        rounded = {name: float(f"{number:.4g}") for name, number in place.items()}
        found.append({**words, **rounded, "front": row.point in front, "text": text})
    return found


def _ends(interval: Interval) -> tuple[float, float]:
    """The ends of the line through a dot; the dot itself for a single seed."""
    known = interval.low == interval.low
    return (interval.low, interval.high) if known else (interval.mean, interval.mean)


def _label(row: Row) -> str:
    """The name without what the legend already says: 0.1, 64, auto."""
    return f"{row.epsilon:g}" if row.epsilon > 0 else row.name.split(" ")[-1].strip("()")


def _kind(row: Row) -> str:
    """The way to approximate: the method and its parameter."""
    return f"{row.method}, ε" if row.epsilon > 0 else row.name.rsplit(" ", 1)[0]


def bound_rows(case: Case) -> list[dict[str, Any]]:
    """Measured probes of the curve methods and the bounds per ε, for the picture: series, x, y, text, kind."""
    theory, cubes = case.bounds, "cubes of the greedy, closed form"
    if not theory:
        return []
    curves = [row for row in case.rows if row.on_curve]
    counts = [
        ("lower bound on exact search", 0.0, theory["exact_lower"], "theory"),
        ("runs of an exact search, closed form", 0.0, theory["exact_runs"], "theory"),
        (cubes, 0.0, theory["exact_cubes"], "theory"),
        *((cubes, float(epsilon), count, "theory") for epsilon, count in theory["greedy"].items()),
        *(("upper bound on approximate search", float(e), count, "theory") for e, count in theory["upper"].items()),
        *((f"{row.method}, measured", row.epsilon, row.values["probes_per_check"], "measured") for row in curves),
    ]
    found = []
    for series, epsilon, count, kind in sorted(counts, key=lambda count: count[1]):
        if count > 0:
            x = "0 (exact)" if epsilon == 0 else f"{epsilon:g}"
            found.append({"series": series, "x": x, "y": count, "text": number_text(count, ""), "kind": kind})
    return found


def shape(case: Case) -> str:
    """α and the shortest side, in words."""
    if not case.bounds:
        return ""
    alpha = case.bounds["alpha"]
    return (
        f"D = {case.bounds['dimensions']}, {case.bounds['bits']} bits per coordinate; aspect ratio α from "
        f"{alpha['low']} to {alpha['high']}, median {alpha['median']:g}; shortest side {case.bounds['shortest']:g} "
        f"cells at the median ({case.bounds['regions']} search regions)."
    )


def cost_text(case: Case, row: Row, profile: str) -> str:
    cost = row.cost[profile].mean
    return duration_text(cost / 1000) if case.unit == "µs" else f"{number_text(cost, '')} probes"


def share_text(share: float) -> str:
    return f"{100 * share:.3g} %" if share == share else UNKNOWN


def with_half(interval: Interval) -> str:
    half = interval.high - interval.mean
    text = share_text(interval.mean)
    return f"{text} ± {100 * half:.1f}" if half > 0 else text


def _times(interval: Interval) -> str:
    half = interval.high - interval.mean
    text = number_text(interval.mean, "")
    return f"{text} ± {number_text(half, '')}" if half > 0 else text


def _range(ratios: Sequence[float]) -> str:
    low, high = share_text(min(ratios)), share_text(max(ratios))
    return low if low == high else f"{low} to {high}"
