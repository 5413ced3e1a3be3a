"""The study of approximate covering in words and tables: a sentence per place, a row per workload, all its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.report.effects import CHANCE, DIFFERS, EQUAL, UNSURE, Paired
from analysis.report.numbers import UNKNOWN, and_all, duration_text, number_text
from analysis.report.places import LOOKUPS, Place
from analysis.report.study import (
    ATTRIBUTES,
    CHEAPER,
    EXACT,
    MAYBE,
    NOTHING,
    PAYS,
    Case,
    Cheapest,
    Row,
    Unjudged,
    Verdict,
    places_of,
    sensitivity,
)
from analysis.report.thresholds import Thresholds
from analysis.report.words import Sentence

SEEN = 0.0005  # half an interval that is written
MOST_NAMES = 3  # searches, or workloads, that a sentence names
WHY_RECALL = (
    "Recall misleads: it is per check, and a cover that one broker misses is looked for again at every hop. What is "
    "kept of the saving is what counts."
)


# ── verdicts ───────────────────────────────────────────────────────────────────────────────────────────────


def verdicts(cases: Sequence[Case]) -> list[Sentence]:
    """A sentence per place: whether an approximation pays there, in which workloads, which one, and at what cost."""
    if not cases:
        return []
    if len(cases) == 1 and not cases[0].nothing:
        found = [in_words(cases[0], verdict) for verdict in cases[0].verdicts]
    else:
        found = [_of_place(cases, place) for place in places_of(cases)]
        if few := [case for case in cases if case.nothing]:
            what = tuple(verdict for case in few for verdict in case.verdicts)
            found.append(Sentence(f"Hardly anything is covered in {len(few)} of {len(cases)}: {kinds(few)}.", what))
    return [*found, *([Sentence(meaning(cases[0].thresholds))] if found else []), *_unjudged(cases)]


def _unjudged(cases: Sequence[Case]) -> list[Sentence]:
    """What a sweep lacks to be judged in a place: a sentence per thing to add."""
    lacking: dict[str, list[Unjudged]] = {}
    for one in (one for case in cases for one in case.unjudged):
        lacking.setdefault(one.place.lacking, []).append(one)
    found = []
    for what, some in lacking.items():
        where = and_all(list(dict.fromkeys(one.place.said for one in some)))
        many = len({one.held for one in some})
        of = f" in {many} of {len(cases)} workloads" if many < len(cases) else ""
        found.append(Sentence(not_judged(f"{where}{of}", what), tuple(some)))
    return found


def not_judged(where: str, what: str) -> str:
    return f"Not judged {where}, without an exact search that one would use there: add {what} to the sweep."


def meaning(thresholds: Thresholds) -> str:
    return (
        f"“Pays” means at least {share_text(thresholds.keeps)} of what exact covering saves, for at most "
        f"{share_text(thresholds.cheaper)} of the cost of the cheapest exact search there, at 95 % confidence."
    )


def in_words(case: Case, verdict: Verdict) -> Sentence:
    """One workload in one place."""
    place, best = verdict.place, verdict.best
    where, exact = capitalised(place), f"{names(verdict.exact)}, {_costs_text(verdict.exact, place)} per subscription"
    least = share_text(verdict.thresholds.keeps)
    if verdict.what == NOTHING:
        text = f"{where} exact covering saves {share_text(case.away)} of the messages: hardly anything is covered."
    elif best is None:
        text = f"{where} use exact search ({exact}): no approximation keeps at least {least} of the saving."
    elif verdict.what == EXACT:
        text = (
            f"{where} use exact search ({exact}): {names(best)}, the cheapest that keeps at least {least} of the "
            f"saving, costs {_against_exact([row.ratio[place.title] for row in best.rows])}."
        )
    else:
        verb = _PLURAL[verdict.what] if len(best.rows) > 1 else verdict.what
        does = f"{verb} than exact search, but too little to pay" if verdict.what == CHEAPER else verb
        unsure = f"; {_seeds(case)} not settle it" if verdict.what == MAYBE else ""
        text = (
            f"{where} {names(best)} {does}: {_each([row.kept for row in best.rows])} of the saving for "
            f"{_each([row.ratio[place.title] for row in best.rows])} of the cost of exact search ({exact}){unsure}."
        )
    return Sentence(text, (verdict,))


_PLURAL = {PAYS: "pay", MAYBE: "may pay", CHEAPER: "are cheaper"}


def _against_exact(ratios: Sequence[Paired]) -> str:
    """104 % ± 2 of that; as much with every seed; of several searches with the same verdict."""
    verdict = ratios[0].verdict
    unsure = {CHANCE: ", which may be chance", UNSURE: ", with one seed"}.get(verdict, "")
    return "as much with every seed" if verdict == EQUAL else f"{_each(ratios)} of that{unsure}"


def _each(ratios: Sequence[Paired]) -> str:
    """39.7 % ± 0.8; 39.7 % to 41 % where they are not alike."""
    texts = {with_half(ratio) for ratio in ratios}
    return texts.pop() if len(texts) == 1 else _range([ratio.value for ratio in ratios])


def _seeds(case: Case) -> str:
    return "one seed does" if case.seeds == 1 else f"{case.seeds} seeds do"


def names(of: Cheapest) -> str:
    """budget 64 = budget 512; ≈ where seeds do not tell them apart."""
    told = [row.searched_by.replace(", ε", " at ε") for row in of.rows]
    others = f" and {len(told) - MOST_NAMES} more" if len(told) > MOST_NAMES else ""
    return (" ≈ " if of.chance else " = ").join(told[:MOST_NAMES]) + others


def _of_place(cases: Sequence[Case], place: Place) -> Sentence:
    compared = [(case, verdict) for case in cases if (verdict := case.verdict(place)) is not None]
    paying = [(case, verdict) for case, verdict in compared if verdict.what == PAYS]
    maybe = [case for case, verdict in compared if verdict.what == MAYBE]
    cheaper = [cost for _, v in compared if v.what == CHEAPER and v.best for cost in _ratios(v.best, place)]
    less = sum(verdict.what == CHEAPER for _, verdict in compared)
    text = f"{capitalised(place)} approximation pays in {len(paying) or 'none'} of {len(compared)} workloads"
    if 0 < len(paying) <= MOST_NAMES:
        text += f": {'; '.join(_named(case, verdict) for case, verdict in paying)}"
    elif paying:
        at = _range([cost for _, verdict in paying if verdict.best for cost in _ratios(verdict.best, place)])
        text += f" ({kinds([case for case, _ in paying])}), for {at} of the cost of exact search"
    if maybe:
        text += f"; it may pay in {len(maybe)} ({kinds(maybe)})"
    if not paying:
        at = f"; in {less} what keeps enough is cheaper than exact search" if cheaper else ""
        text += f"{at}, at {_range(cheaper)} of its cost" if cheaper else "; nothing that keeps enough is cheaper"
    return Sentence(f"{text}.", tuple(verdict for _, verdict in compared))


def _named(case: Case, verdict: Verdict) -> str:
    assert verdict.best is not None
    kept = _range([row.kept.value for row in verdict.best.rows])
    cost = _range(_ratios(verdict.best, verdict.place))
    return f"{case.title}, by {names(verdict.best)} ({kept} of the saving for {cost} of the cost)"


def _ratios(of: Cheapest, place: Place) -> list[float]:
    return [row.ratio[place.title].value for row in of.rows]


def capitalised(place: Place) -> str:
    return place.said[0].upper() + place.said[1:]


def kinds(cases: Sequence[Case]) -> str:
    """Workloads as a list: wide uniform, d = 4, 8; zipf, d = 8."""
    found: dict[str, dict[str, None]] = {}
    for case in cases:
        found.setdefault(case.kind, {})[str(case.fixed.get(ATTRIBUTES, ""))] = None
    return "; ".join(f"{kind}, d = {', '.join(of)}" if any(of) else kind for kind, of in found.items())


# ── workloads × places ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Cell:
    """What approximation costs in one workload and place, as a multiple of exact search's cost."""

    text: str  # 0.58; =: the same with every seed; ~1.1: not told apart; none; ·; empty
    tone: str  # pays, maybe, below, plain, nothing

    def marked(self, pays: str, maybe: str) -> str:
        """With what a medium without colours has for these tones, around the text."""
        marks = {"pays": pays, "maybe": maybe}.get(self.tone, "{}")
        return marks.format(self.text)


LEGEND = (
    "Cost of the cheapest approximation whose mean keeps enough of the saving (where one pays, of those that pay), as "
    "a multiple of the cheapest exact search’s there; =: equal with every seed; ~: not told apart from it; none: none "
    "keeps enough; ·: hardly any covers; empty: not compared."
)


def grid(cases: Sequence[Case]) -> tuple[list[str], list[tuple[str, str, list[Cell]]]]:
    """The titles of the places; for each workload its title, what exact covering saves, and a cell per place."""
    where = places_of(cases)
    rows = [(case.title, share_text(case.away), [_cell(case.verdict(place)) for place in where]) for case in cases]
    return [place.title for place in where], rows


def _cell(verdict: Verdict | None) -> Cell:
    if verdict is None or verdict.what == NOTHING:
        return Cell("·" if verdict else "", "nothing")
    if verdict.best is None:
        return Cell("none", "nothing")
    ratio = verdict.best.row.ratio[verdict.place.title]
    number = f"{ratio.value:.2g}" if ratio.value < 10 else number_text(ratio.value, "")
    if number == "1" and ratio.verdict == DIFFERS:
        number = f"{ratio.value:.4g}"  # 0.998: not as much
    text = "=" if ratio.verdict == EQUAL else f"~{number}" if ratio.verdict == CHANCE else number
    return Cell(text, {PAYS: "pays", MAYBE: "maybe", CHEAPER: "below"}.get(verdict.what, "plain"))


def in_text(cases: Sequence[Case], pays: str = "{} ✓", maybe: str = "{} ?") -> tuple[list[str], list[list[str]]]:
    """Headers and rows."""
    titles, rows = grid(cases)
    texts = [[title, away, *(cell.marked(pays, maybe) for cell in cells)] for title, away, cells in rows]
    return ["workload", "exact saves", *titles], texts


# ── other thresholds, all numbers ──────────────────────────────────────────────────────────────────────────


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


def sensitivity_sentence(cases: Sequence[Case]) -> Sentence:
    """In how many workloads it pays with the strictest of other thresholds, and with the loosest."""
    found = {(thresholds.keeps, -thresholds.cheaper): counts for thresholds, counts in sensitivity(cases)}
    strictest, loosest = max(found), min(found)
    words = []
    for place in places_of(cases):
        compared = [case for case in cases if case.verdict(place) is not None]
        words.append(f"{place.said} {found[strictest][place]} to {found[loosest][place]} of {len(compared)}")
    (high, few), (low, many) = strictest, loosest
    ends = f"from {share_text(high)} of the saving for {share_text(-few)} of the cost to {share_text(low)} for"
    text = f"With other thresholds ({ends} {share_text(-many)}) it pays {', '.join(words)}."
    return Sentence(text, tuple(verdict for case in cases for verdict in case.verdicts))


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
    found: dict[str, tuple[str, str, str]] = {}
    for place in where:
        title = f"{place.unit}/subscription" if place.unit == LOOKUPS else f"{place.title}, {place.unit}/subscription"
        note, lives = "All searches for its covers, at all brokers that it reaches.", place.title in row.costs
        if lives or title not in found:
            found[title] = (title, note, number_text(row.cost(place), "") if lives else UNKNOWN)
        title, note = f"× exact, {place.title}", "Cost as a multiple of the cheapest exact search there, 95 %."
        found[title] = (title, note, _times(row.ratio[place.title]) if lives else UNKNOWN)
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


def _costs_text(of: Cheapest, place: Place) -> str:
    """2 µs; 2 µs to 2.1 µs of searches that are not told apart."""
    ends = (pick(of.rows, key=lambda row: row.cost(place)) for pick in (min, max))
    return " to ".join(dict.fromkeys(cost_text(row, place) for row in ends))


def cost_text(row: Row, place: Place) -> str:
    cost = row.cost(place)
    return duration_text(cost / 1000) if place.unit == "µs" else f"{number_text(cost, '')} {place.unit}"


def share_text(share: float) -> str:
    if share != share:
        return UNKNOWN
    return f"{100 * share:.3g} %" if share < 9.995 else f"{100 * share:,.0f} %"


def with_half(ratio: Paired) -> str:
    """39.7 % ± 0.8; without an interval where there is none."""
    return share_text(ratio.value) + (f" ± {100 * ratio.half:.1f}" if ratio.half >= SEEN else "")


def _times(ratio: Paired) -> str:
    return number_text(ratio.value, "") + (f" ± {number_text(ratio.half, '')}" if ratio.half > 0 else "")


def _range(ratios: Sequence[float]) -> str:
    low, high = share_text(min(ratios)), share_text(max(ratios))
    return low if low == high else f"{low} to {high}"
