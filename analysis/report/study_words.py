"""The study of approximate covering in words and tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from analysis.report.numbers import UNKNOWN, duration_text, number_text
from analysis.report.places import LOOKUPS, Place
from analysis.report.study import (
    ATTRIBUTES,
    EXACT,
    MAYBE,
    NOTHING,
    PAYS,
    Case,
    Interval,
    Row,
    Verdict,
    places_of,
    sensitivity,
)

MANY = 12  # workloads; for more than this a grid replaces the sentences
MOST_NAMES = 3  # searches that a sentence names
WHY_RECALL = (
    "Recall misleads: it is per check, and a cover that one broker misses is looked for again at every hop. What is "
    "kept of the saving is what counts."
)


def sentence(case: Case) -> str:
    """What exact covering saves, then for each place of the index whether approximation pays."""
    words = [f"Exact covering keeps {share_text(case.away)} of the messages away."]
    if all(verdict.what == NOTHING for verdict in case.verdicts):
        return f"{words[0]} There is hardly anything to find, so that no search pays, exact or not."
    return " ".join([*words, *(_of_place(case, verdict) for verdict in case.verdicts)])


def _of_place(case: Case, verdict: Verdict) -> str:
    exact, best, place = verdict.exact, verdict.best, verdict.place
    where = capitalised(place)
    takes = f"{exact.searched_by} takes {cost_text(exact, place)} per subscription"
    if best is None:
        return f"{where}: {takes}."
    numbers = (
        f"{best.name} keeps {with_half(best.kept)} of the saving for {share_text(best.ratio[place.title].mean)} of "
        f"that ({cost_text(best, place)})"
    )
    if verdict.what in {PAYS, MAYBE}:
        seeds = "one seed does" if case.seeds == 1 else f"{case.seeds} seeds do"
        unsure = "" if verdict.what == PAYS else f", which {seeds} not make sure"
        return f"{where} approximation {verdict.what}: exact search by {takes}, {numbers}{unsure}."
    return f"{where}, use exact covering: {takes}; what comes closest, {numbers}."


def capitalised(place: Place) -> str:
    return place.said[0].upper() + place.said[1:]


def overall(cases: Sequence[Case]) -> str:
    """Where the index must be for approximation to pay, in how many workloads, and by how much."""
    if not cases:
        return ""
    sentences = [_overall(cases, place) for place in places_of(cases)]
    nothing = sum(case.nothing for case in cases)
    exact = sum(all(verdict.what == EXACT for verdict in case.verdicts) for case in cases)
    if exact:
        sentences.append(f"In {exact} of {len(cases)} exact search is the better choice wherever the index is.")
    if nothing:
        sentences.append(f"In {nothing} there is hardly anything to cover.")
    if min(case.seeds for case in cases) == 1:
        one = sum(case.seeds == 1 for case in cases)
        sentences.append(f"{one} of {len(cases)} workloads have one seed only, which makes nothing sure.")
    return " ".join(sentences)


def _overall(cases: Sequence[Case], place: Place) -> str:
    compared = [(case, verdict) for case in cases if (verdict := case.verdict(place)) is not None]
    paying = [verdict.best for _, verdict in compared if verdict.what == PAYS and verdict.best is not None]
    may = sum(verdict.what == MAYBE for _, verdict in compared)
    maybe = f", and may pay in {may}" if may else ""
    if paying:
        names = [name for name, _ in Counter(row.name for row in paying).most_common()]
        others = f" and {len(names) - MOST_NAMES} others" if len(names) > MOST_NAMES else ""
        return (
            f"{capitalised(place)} approximation pays in {len(paying)} of {len(compared)} workloads, at "
            f"{_range([row.ratio[place.title].mean for row in paying])} of exact search's cost, by "
            f"{'; '.join(names[:MOST_NAMES])}{others}{maybe}."
        )
    keepers = [(verdict.keeper.ratio[place.title].mean, case) for case, verdict in compared if verdict.keeper]
    least, where = min(keepers, key=lambda pair: pair[0]) if keepers else (math.nan, cases[0])
    closest = f"; what keeps enough costs {share_text(least)} of exact search at least ({where.title})"
    none = f"{capitalised(place)} approximation pays in none of {len(compared)} workloads"
    return f"{none}{maybe}{closest if keepers else ''}."


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
        for place in places_of(some):
            paying = [case for case in some if (verdict := case.verdict(place)) and verdict.what == PAYS]
            if paying:
                words.append(f"{place.said} in {len(paying)} ({kinds(paying)})")
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
    """A row per pair of thresholds: least share kept, most cost, then per place in how many workloads it pays."""
    compared = {place: sum(case.verdict(place) is not None for case in cases) for place in places_of(cases)}
    return [
        [
            f"{100 * thresholds.keeps:g} %",
            f"{100 * thresholds.cheaper:g} %",
            *(f"{counts[place]} of {of}" for place, of in compared.items()),
        ]
        for thresholds, counts in sensitivity(cases)
    ]


def sensitivity_sentence(cases: Sequence[Case]) -> str:
    """How the number of workloads in which it pays changes with the thresholds."""
    if not cases:
        return ""
    found, chosen = sensitivity(cases), cases[0].thresholds
    words = []
    for place in places_of(cases):
        counts = [counts[place] for _, counts in found]
        words.append(f"{place.said} {min(counts)} to {max(counts)}")
    kept, cost = ([getattr(t, name) for t, _ in found] for name in ("keeps", "cheaper"))
    return (
        f"“Pays” means at least {share_text(chosen.keeps)} of the saving for at most {share_text(chosen.cheaper)} of "
        f"the cost, at 95 % confidence. With {share_text(min(kept))} to {share_text(max(kept))} at "
        f"{share_text(min(cost))} to {share_text(max(cost))} the workloads in which it pays are: {', '.join(words)}."
    )


def row_cells(case: Case, row: Row, where: Sequence[Place]) -> list[tuple[str, str, str]]:
    """One search in the table of a case: (column title, note, text) per column; `where`: the places of the study."""
    saving = "Of the messages (or entries) that exact covering saves against simple routing, 95 %."
    missed = f"Of the covers that exact search finds, per check, beside the ε asked for. {WHY_RECALL}"
    lookups = "Records that an average check reads in a store of sorted keys, failed candidates included."
    probes = "Key ranges looked up (curve methods), words or boxes compared (others)."
    inside = "Rows compared inside key ranges; methods whose probes count entries have none."
    upper = "The slides' upper bound on approximate search, constant 1, mean over regions; none for other methods."
    settled = "Time within which 95 % of the subscriptions are known wherever they must be."
    values = row.values
    late = "cannot keep up" if row.saturated else ""

    def count(name: str) -> str:
        return number_text(values[name], "")

    def share(number: float) -> str:
        return number_text(number, "share")

    return [
        ("search", "Exact, or what says what may be missed.", row.name),
        ("saving kept", saving, with_half(row.kept)),
        ("covers missed", missed, share(1 - values["recall"])),
        *_cost_cells(row, where),
        ("µs/check", "What a check takes by the profile of the runs.", count("check_time")),
        ("lookups/check", lookups, count("round_trips_per_check") if row.in_store else UNKNOWN),
        ("bits", "Of a coordinate on the curve, mean over checks.", count("bits")),
        ("probes/check", probes, count("probes_per_check")),
        ("candidates/check", inside, count("candidates_per_check")),
        ("bound", upper, number_text(bound(case, row), "")),
        ("missed, first hop", "The same at the subscriber's own broker.", share(1 - values["recall_first_hop"])),
        ("searched", "Part of the search region that an average check searched.", share(values["volume"])),
        ("capped", "Part of the checks that a cap or a budget ended.", share(values["capped"])),
        ("table entries", "Of all brokers together, at the end.", count("entries")),
        ("messages", "Control messages over links.", count("control_messages")),
        ("settled p95 ms", settled, late or count("convergence_p95")),
        ("event p95 ms", "Time within which 95 % of the deliveries arrive.", late or count("latency_p95")),
    ]


def _cost_cells(row: Row, where: Sequence[Place]) -> list[tuple[str, str, str]]:
    """A column for each kind of cost, and one per place for its ratio to exact search there; – where it cannot live."""
    nothing, found = Interval(math.nan, math.nan, math.nan), dict[str, tuple[str, str, str]]()
    for place in where:
        title = f"{place.unit}/subscription" if place.unit == LOOKUPS else f"{place.title}, {place.unit}/subscription"
        cost, note = row.cost.get(place.title), "All searches for its covers, at all brokers that it reaches."
        if cost or title not in found:
            found[title] = (title, note, number_text((cost or nothing).mean, ""))
        title, note = f"× exact, {place.title}", "Cost as a multiple of the cheapest exact search there, 95 %."
        found[title] = (title, note, _times(row.ratio.get(place.title, nothing)))
    return list(found.values())


def bound(case: Case, row: Row) -> float:
    """The slides' upper bound for the row of a curve method; NaN for other methods, which it is not about."""
    theory = case.bounds.get(row.given_bits)
    if not theory or not row.on_curve or not row.epsilon > 0:
        return math.nan
    return float(theory["upper"].get(f"{row.epsilon:g}", math.nan))


def shape(case: Case) -> str:
    """α and the shortest side, in words, at the finest resolution."""
    if not case.bounds:
        return ""
    theory = max(case.bounds.values(), key=lambda of: float(of["bits"]))
    alpha = theory["alpha"]
    return (
        f"D = {theory['dimensions']}, {theory['bits']} bits per coordinate; aspect ratio α from {alpha['low']} to "
        f"{alpha['high']}, median {alpha['median']:g}; shortest side {theory['shortest']:g} cells at the median "
        f"({theory['regions']} search regions)."
    )


def cost_text(row: Row, place: Place) -> str:
    cost = row.cost[place.title].mean
    return duration_text(cost / 1000) if place.unit == "µs" else f"{number_text(cost, '')} {place.unit}"


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
