"""What a search for the highest rate found, in words: each setting once, and every factor by the mechanism of effects.

A setting has one number, which the worst of its seeds decides, so a comparison has no interval. It is equal where the
searches ended alike; where the rates that were tried leave open which setting holds more, they are not told apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.report.effects import Effects
from analysis.report.factors import Factor
from analysis.report.numbers import and_all, per_second
from analysis.report.told import Held, Rates
from analysis.report.words import Sentence, comparisons, head

RATE = "arrivals.publish_rate"


@dataclass(frozen=True)
class Compared:
    """Two settings that differ in one factor."""

    base: Rates
    level: Rates
    where: str  # the levels of all other factors

    @property
    def equal(self) -> bool:
        return (self.base.holds, self.base.fails, self.base.drawn) == (
            self.level.holds,
            self.level.fails,
            self.level.drawn,
        )

    @property
    def open(self) -> bool:
        """Whether some rate may be the highest of both."""
        ends = [rates.fails for rates in (self.base, self.level) if rates.fails is not None]
        return max(self.base.holds or 0, self.level.holds or 0) < min(ends, default=float("inf"))

    @property
    def change(self) -> float:
        return (self.level.drawn or 0) / (self.base.drawn or 1) - 1


def titles(effects: Effects, held: Held) -> list[str]:
    """What each setting is called, in the order of `held`; as everywhere, but without its rates."""
    return [effects.title(_point(effects, rates), _rate(effects)) for rates in held.found]


def rate_sentences(effects: Effects, held: Held) -> list[Sentence]:
    """The answer of each setting, those that are alike together; then what every factor changes."""
    alike: dict[tuple[object, ...], list[tuple[str, Rates]]] = {}
    for title, rates in zip(titles(effects, held), held.found, strict=True):
        alike.setdefault((rates.text, rates.holds, rates.fails), []).append((title, rates))
    found = []
    for some in alike.values():
        said = f"With {and_all([title for title, _ in some])}{', equally' * (len(some) > 1)}: "
        text = f"{said if len(held.found) > 1 else ''}{some[0][1].text}"
        found.append(Sentence(text, tuple(rates for _, rates in some)))
    return [*found, *_effects(effects, held), Sentence(f"{_rests_on(held.seeds)}.")]


def _rests_on(seeds: int) -> str:
    tables = "tables of all settings have means over seeds, and publish rates per ms"
    if seeds == 1:
        return f"One seed decides, so no number here has an interval; {tables}"
    return (
        f"A rate is held if each of {seeds} seeds holds it: the worst seed decides, so no number here has an interval, "
        f"and times are those of the slowest seed; {tables}"
    )


def _rate(effects: Effects) -> Factor | None:
    return next((factor for factor in effects.factors if factor.keys == (RATE,)), None)


def _without_rate(point: str) -> dict[str, object]:
    return {key: value for key, value in json.loads(point).items() if key != RATE}


def _point(effects: Effects, rates: Rates) -> str:
    wanted = json.loads(rates.setting)
    return next(point for point in effects.summary.order if _without_rate(point) == wanted)


def _effects(effects: Effects, held: Held) -> Iterator[Sentence]:
    points = {_point(effects, rates): rates for rates in held.found if rates.holds is not None}
    factors = [factor for factor in effects.factors if factor is not _rate(effects)]
    for factor in factors:
        others = [other for other in factors if other is not factor]
        places = {(factor.of[p], tuple(other.of[p] for other in others)): rates for p, rates in points.items()}
        ends = [(factor.levels[0], factor.levels[-1])] if factor.numbers else comparisons(factor)
        for base, level in ends:
            compared = [
                Compared(one, places[level, rest], ", ".join(o.names[at] for o, at in zip(others, rest, strict=True)))
                for (at_base, rest), one in places.items()
                if at_base == base and (level, rest) in places
            ]
            if compared:
                said = head(factor, base, level)
                text = f"{said[0].upper()}{said[1:]}: highest rate held {in_words(compared)}."
                yield Sentence(text, tuple(compared))


def in_words(compared: list[Compared]) -> str:
    """483.7 → 387.3 events/s (−19.9 %); of several: −19.9 % (star) to −5.0 % (line), equal in 1 of 3."""
    if len(compared) == 1:
        (one,) = compared
        if one.equal:
            return f"equal, {_drawn(one.base)} events/s"
        open_ = ", not told apart by the rates that were tried" if one.open else f" ({_percent(one.change)})"
        return f"{_drawn(one.base)} → {_drawn(one.level)} events/s{open_}"
    equal = sum(one.equal for one in compared)
    apart = sorted((one for one in compared if not one.equal and not one.open), key=lambda one: one.change)
    ends = dict.fromkeys([*apart[:1], *apart[-1:]])
    words = [" to ".join(f"{_percent(one.change)} ({one.where})" for one in ends)] if apart else []
    for number, said in ((equal, "equal"), (len(compared) - equal - len(apart), "not told apart by the rates tried")):
        words += [f"{said} in {number} of {len(compared)}"] if number else []
    return ", ".join(words)


def _drawn(rates: Rates) -> str:
    return per_second(rates.drawn or 0.0)


def _percent(change: float) -> str:
    return f"{'+' if change > 0 else '−'}{abs(100 * change):.1f} %"
