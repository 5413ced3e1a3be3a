"""The ε advisor: which ε to use, from a sweep, with the numbers that say so.

Cost is probes per covering check, size is routing-table entries; both are wanted small, and both are
measured as ratios to exact covering. A setting is on the Pareto front if none is at least as good in both
and better in one. The advice is the front's knee: where the saved share of the search exceeds the added
share of the entries by most, that is where cost ratio + size ratio is smallest. Exact covering has 2; it is
advised unless some ε has less by WORTH: who gives up exact answers wants more for it than a hair. Covering methods
are choices too: where several searched exactly, exact covering means the cheapest of them, so that an ε has to beat
the best exact search, not only its own method at ε = 0.

An ε that gave the numbers of a smaller one (a k-d tree below a thousand entries ignores it) is no option: equal rows
are never compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from analysis.report.summary import Summary, is_covering, is_exact, number_text, other_keys

COST, SIZE = "probes_per_check", "entries"
WORTH = 0.1  # by how much of exact covering the saved search must exceed the added entries


@dataclass(frozen=True)
class Option:
    """One ε of the sweep: what a check costs, how large the tables are."""

    point: str
    epsilon: float
    cost: float
    entries: float
    recall: float | None
    on_front: bool = False


@dataclass(frozen=True)
class Advice:
    """The advised ε among the options of one family and method, and the sentence that says why."""

    title: str  # what was held fixed: the other swept keys
    options: tuple[Option, ...]  # by ε
    advised: Option
    sentence: str


def advise(summary: Summary) -> list[Advice]:
    """One piece of advice per setting of everything but ε, where the sweep has exact covering and another ε."""
    groups: dict[tuple[str, str], list[Option]] = {}
    for point in summary.order:
        labels = summary.labels(point)
        cost, size = summary.value(point, COST)["mean"], summary.value(point, SIZE)["mean"]
        if is_covering(labels) and cost == cost and (is_exact(labels) or labels["epsilon"] > 0):
            recall = summary.value(point, "recall")["mean"]
            option = Option(point, labels["epsilon"], cost, size, recall if recall == recall else None)
            groups.setdefault(_held_fixed(summary, point), []).append(option)
    found = []
    for (title, _), options in groups.items():
        options.sort(key=lambda option: (option.epsilon, option.cost))
        if options[0].epsilon == 0 and options[-1].epsilon > 0:
            found.append(_advice(title, _different(options)))
    return found


def _different(options: list[Option]) -> list[Option]:
    """The options without those that gave the same numbers at a smaller ε."""
    kept: dict[tuple[float, float, float | None], Option] = {}
    for option in options:
        # Where nothing was missed it does not matter whether anybody looked for misses.
        kept.setdefault((option.cost, option.entries, None if option.recall == 1 else option.recall), option)
    return list(kept.values())


def _held_fixed(summary: Summary, point: str) -> tuple[str, str]:
    """What the compared points share: a title for readers, and the strategy."""
    strategies = {summary.labels(p)["strategy"] for p in summary.order if is_covering(summary.labels(p))}
    strategy = str(summary.labels(point)["strategy"])
    words = [strategy] if len(strategies) > 1 else []
    keys = [key for key in other_keys(summary, point) if not key.startswith("covering.")]
    return ", ".join([*words, *keys]), strategy


def pareto_front(options: list[Option]) -> list[Option]:
    """The options that no other one beats, from cheapest to smallest."""
    front: list[Option] = []
    for option in sorted(options, key=lambda o: (o.cost, o.entries, o.epsilon)):
        if not front or option.entries < front[-1].entries:
            front.append(option)
    return front


def knee(front: list[Option], exact: Option) -> Option:
    """The option with the smallest cost ratio + size ratio to exact covering, which wins unless beaten clearly."""
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
    marked = tuple(Option(o.point, o.epsilon, o.cost, o.entries, o.recall, on_front=o in front) for o in options)
    return Advice(title, marked, advised, _sentence(exact, advised, front, options))


def _sentence(exact: Option, advised: Option, front: list[Option], options: list[Option]) -> str:
    if all(option.epsilon == 0 for option in options):
        numbers = f"{_cost(exact)} and {_size(exact)}"
        return f"ε makes no difference here: every ε gives the numbers of exact covering, {numbers}."
    if advised.epsilon == 0:
        cheapest = min((option for option in options if option.epsilon > 0), key=lambda option: option.cost)
        numbers = (
            f"{_cost(exact)} and {_size(exact)}, against {_cost(cheapest)} and {_size(cheapest)} "
            f"at ε = {cheapest.epsilon:g}"
        )
        if front == [exact]:
            return f"Use exact covering: no ε searches less here. It needs {numbers}."
        why = f"no ε saves at least {number_text(WORTH, 'share')} more of the search than it adds to the entries"
        return f"Use exact covering: {why}. It needs {numbers}."
    saved, grown = _change(exact.cost, advised.cost), _change(exact.entries, advised.entries)
    sentence = (
        f"Use ε = {advised.epsilon:g}: it searches {number_text(-saved, 'share')} less than exact covering "
        f"({_cost(advised)} instead of {number_text(exact.cost, 'probes')}) and keeps "
        f"{number_text(abs(grown), 'share')} {'more' if grown >= 0 else 'fewer'} entries ({_size(advised)} "
        f"instead of {number_text(exact.entries, 'entries')})"
    )
    if advised.recall is not None:
        sentence += f", finding {number_text(advised.recall, 'share')} of the covers"
    return sentence + "."


def _change(old: float, new: float) -> float:
    return (new - old) / old if old else 0.0


def _cost(option: Option) -> str:
    return f"{number_text(option.cost, 'probes')} probes per check"


def _size(option: Option) -> str:
    return f"{number_text(option.entries, 'entries')} entries"
