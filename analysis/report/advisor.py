"""The advisor: which search for covers to use, from a sweep, with the numbers that say so.

Cost is the time of a covering check by the profile of `broker.service` (its probes, if nothing takes time), size is
routing-table entries. Both should be small, and both are measured as ratios to exact covering. A setting is on the
Pareto front if none is at least as good in both and better in one. The advice is the front's knee: where the saved
share of the search exceeds the added share of the entries by most, that is, where cost ratio + size ratio is smallest.
Exact covering has 2. It is advised unless some approximation (an ε, a budget, a search that gives up) has less by
more than WORTH: giving up exact answers has to gain more than a little. Covering methods are choices too: if several
searched exactly, exact covering means the cheapest of them, which an approximation has to beat.

A setting with the same numbers as another (a k-d tree below a thousand entries ignores ε) is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from analysis.report.numbers import duration_text, number_text
from analysis.report.summary import Summary, is_covering, is_exact, other_keys, search_name

TIME, PROBES, SIZE = "check_time", "probes_per_check", "entries"
WORTH = 0.1  # the saved share of the search must exceed the added share of the entries by more than this
MISLEADS = 0.2  # a note is due if the share of the saving kept exceeds the recall by more than this
SLOWER = 1.1  # the advice mentions settling times or latencies above this multiple of exact covering's


@dataclass(frozen=True)
class Option:
    """One setting of the sweep: what a check costs, how large the tables are, and what comes of it."""

    point: str
    name: str  # exact, ε = 0.1, budget 32
    epsilon: float  # NaN where a search may miss for another reason
    cost: float  # µs per check, or probes where nothing takes time
    probes: float
    entries: float
    recall: float | None
    in_time: bool = False  # whether cost is a time
    saving: float = float("nan")  # share of simple routing's entries that is saved
    settled: float = float("nan")  # ms within which 95 % of the subscriptions have settled
    latency: float = float("nan")  # ms within which 95 % of the deliveries arrive
    on_front: bool = False

    @property
    def exact(self) -> bool:
        return self.epsilon == 0

    @property
    def cost_text(self) -> str:
        """0.27 µs (101 probes) per check."""
        probes = f"{number_text(self.probes, 'probes')} probes"
        return f"{duration_text(self.cost / 1000)} ({probes}) per check" if self.in_time else f"{probes} per check"

    @property
    def size_text(self) -> str:
        return f"{number_text(self.entries, 'entries')} entries"


@dataclass(frozen=True)
class Advice:
    """The advised setting among the options of one family, and the sentences that say why."""

    title: str  # the swept keys that were held fixed
    options: tuple[Option, ...]  # exact first
    advised: Option
    sentence: str


def advise(summary: Summary) -> list[Advice]:
    """One piece of advice per setting of everything but the search, if it has an exact and an approximate search."""
    searching = [point for point in summary.order if is_covering(summary.labels(point))]
    in_time = len(summary.means(TIME, searching)) == len(searching)
    groups: dict[tuple[str, str], list[Option]] = {}
    for point in searching:
        option = _option(summary, point, in_time)
        if option.cost == option.cost:
            groups.setdefault(_held_fixed(summary, point), []).append(option)
    found = []
    for (title, _), options in groups.items():
        options.sort(key=lambda o: (not o.exact, o.epsilon != o.epsilon, o.epsilon, o.cost))
        if options[0].exact and not options[-1].exact:
            found.append(_advice(title, _different(options)))
    return found


def _option(summary: Summary, point: str, in_time: bool) -> Option:
    labels, recall = summary.labels(point), summary.mean(point, "recall")
    return Option(
        point,
        "exact" if is_exact(labels) else search_name(summary, point),
        labels["epsilon"],
        summary.mean(point, TIME if in_time else PROBES),
        summary.mean(point, PROBES),
        summary.mean(point, SIZE),
        recall if recall == recall else None,
        in_time,
        summary.mean(point, "reduction"),
        summary.mean(point, "convergence_p95"),
        summary.mean(point, "latency_p95"),
    )


def _different(options: list[Option]) -> list[Option]:
    """The options without those that have the same numbers as an earlier one."""
    kept: dict[tuple[float, float, float | None], Option] = {}
    for option in options:
        # If nothing was missed, a recall of 1 and an unknown recall mean the same.
        kept.setdefault((option.cost, option.entries, None if option.recall == 1 else option.recall), option)
    return list(kept.values())


def _held_fixed(summary: Summary, point: str) -> tuple[str, str]:
    """What the compared points share: a title for readers and the strategy."""
    strategies = {summary.labels(p)["strategy"] for p in summary.order if is_covering(summary.labels(p))}
    strategy = str(summary.labels(point)["strategy"])
    words = [strategy] if len(strategies) > 1 else []
    keys = [key for key in other_keys(summary, point) if not key.startswith("covering.")]
    return ", ".join([*words, *keys]), strategy


def pareto_front(options: list[Option]) -> list[Option]:
    """The options that no other beats, from the cheapest to the smallest."""
    front: list[Option] = []
    for option in sorted(options, key=lambda o: (o.cost, o.entries, not o.exact)):
        if not front or option.entries < front[-1].entries:
            front.append(option)
    return front


def knee(front: list[Option], exact: Option) -> Option:
    """The option with the smallest cost ratio + size ratio to exact covering; exact covering unless clearly beaten."""
    if exact.cost == 0 or exact.entries == 0:
        return exact  # nothing to save, or nothing to grow from

    def ratios(option: Option) -> float:
        return option.cost / exact.cost + option.entries / exact.entries

    best = min(front, key=ratios)
    return best if ratios(best) < 2 - WORTH else exact


def _advice(title: str, options: list[Option]) -> Advice:
    exact = options[0]
    front = pareto_front(options)
    advised = knee(front, exact)
    marked = tuple(replace(option, on_front=option in front) for option in options)
    rough = [option for option in options if not option.exact]
    if not rough:
        numbers = f"{exact.cost_text} and {exact.size_text}"
        alike = f"Approximation makes no difference here: every setting has the numbers of exact covering, {numbers}."
        return Advice(title, marked, advised, alike)
    first = _use_exact(exact, front, rough) if advised.exact else _use_other(exact, advised)
    words = [first, _fewer_probes(exact, rough), _slow(exact, rough), _recall(exact, rough)]
    return Advice(title, marked, advised, " ".join(word for word in words if word))


def _use_exact(exact: Option, front: list[Option], rough: list[Option]) -> str:
    cheapest = min(rough, key=lambda option: option.cost)
    if not all(option.exact for option in front):
        why = f"nothing saves at least {number_text(WORTH, 'share')} more of the search than it adds to the entries"
    else:
        why = "no approximation searches faster here" if exact.in_time else "no approximation searches less here"
    return (
        f"Use exact covering: {why}. It needs {exact.cost_text} and {exact.size_text}, the cheapest approximation "
        f"({cheapest.name}) {cheapest.cost_text} and {cheapest.size_text}."
    )


def _use_other(exact: Option, advised: Option) -> str:
    saved, grown = _change(exact.cost, advised.cost), _change(exact.entries, advised.entries)
    sentence = (
        f"Use {advised.name}: it searches {number_text(-saved, 'share')} {'faster' if exact.in_time else 'less'} than "
        f"exact covering ({advised.cost_text} instead of {exact.cost_text}) and keeps "
        f"{number_text(abs(grown), 'share')} {'more' if grown >= 0 else 'fewer'} entries ({advised.size_text} "
        f"instead of {number_text(exact.entries, 'entries')})"
    )
    if advised.recall is not None:
        sentence += f", finding {number_text(advised.recall, 'share')} of the covers"
    return sentence + "."


def _fewer_probes(exact: Option, rough: list[Option]) -> str:
    """A warning if fewer probes do not take less time."""
    found = [option for option in rough if option.probes < exact.probes and option.cost >= exact.cost]
    if not found or not exact.in_time:
        return ""
    least = min(found, key=lambda option: option.probes)
    return (
        f"Probes mislead: {least.name} needs {number_text(least.probes, 'probes')} instead of "
        f"{number_text(exact.probes, 'probes')} and yet {duration_text(least.cost / 1000)} instead of "
        f"{duration_text(exact.cost / 1000)}; what a probe and the call itself cost differs between methods."
    )


def _slow(exact: Option, rough: list[Option]) -> str:
    """How much the most expensive search delays subscriptions and events."""
    dearest = max(rough, key=lambda option: option.cost)
    compared = (
        ("95 % of the subscriptions have settled within", dearest.settled, exact.settled),
        ("95 % of the deliveries arrive within", dearest.latency, exact.latency),
    )
    parts = [f"{w} {duration_text(slow)} instead of {duration_text(t)}" for w, slow, t in compared if slow > SLOWER * t]
    if not parts or not exact.in_time:
        return ""
    return f"With {dearest.name}, {duration_text(dearest.cost / 1000)} per check, {', and '.join(parts)}."


def _recall(exact: Option, rough: list[Option]) -> str:
    """A warning if recall is far below the share of the saving that is kept."""
    kept = {option.name: option.saving / exact.saving for option in rough if exact.saving > 0}
    asked = {option.name: option.recall for option in rough if option.recall is not None and option.name in kept}
    found = [name for name, recall in asked.items() if recall + MISLEADS < kept[name]]
    if not found:
        return ""
    worst = max(found, key=lambda name: kept[name] - asked[name])
    return (
        f"Recall misleads: {worst} finds {number_text(asked[worst], 'share')} of the covers per check and keeps "
        f"{number_text(kept[worst], 'share')} of exact covering's saving, because what one broker misses is asked "
        "again at every hop."
    )


def _change(old: float, new: float) -> float:
    return (new - old) / old if old else 0.0
