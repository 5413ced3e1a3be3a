"""Effects in words: one sentence per comparison, and which level of a factor is best, by which criterion.

A sentence keeps the effects that it was made from, so that it can be checked against the results, number by number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from analysis.report.effects import (
    CHANCE,
    CLOSE,
    DIFFERS,
    EQUAL,
    MORE_IS_BETTER,
    UNSURE,
    Best,
    Effect,
    Effects,
    Paired,
)
from analysis.report.factors import ONE, Factor
from analysis.report.numbers import and_all, duration_text, number_text
from analysis.spark.metrics import CATALOGUE

MOST_COMPARISONS = 12  # of the only factor; more are a table
FEW_COMPARISONS = 5  # of one of several factors, where each is a range over the others
MOST_NAMES = 4
MOST_OTHERS = 2  # if more share the first place, those that do not are named
TIMES = 3.0  # from here on a factor is easier to read than a percentage


@dataclass(frozen=True)
class Span:
    """The means of a metric in all settings, from the smallest to the largest."""

    metric: str
    low: float
    high: float


@dataclass(frozen=True)
class InTable:
    """A factor with too many comparisons for a sentence each."""

    factor: Factor
    count: int


@dataclass(frozen=True)
class Missing:
    """How many combinations of the factors were not run."""

    count: int


@dataclass(frozen=True)
class Sentence:
    text: str
    of: tuple[Any, ...] = ()  # effects, bests, spans; of a study its verdicts

    def __str__(self) -> str:
        return self.text


def sentences(effects: Effects, metrics: Sequence[str]) -> list[Sentence]:
    """The values, where no comparison has them; what every factor does to these metrics, and its best levels."""
    found = [_values(effects, metrics)] if len(effects.factors) != 1 else []
    for factor in effects.factors:
        compared = comparisons(factor)
        if factor.numbers:
            found.append(_from_to(effects, factor, metrics))
        elif len(compared) > (MOST_COMPARISONS if len(effects.factors) == 1 else FEW_COMPARISONS):
            table = f"the {len(compared)} comparisons are in the table of effects and in results/differences.csv"
            found.append(Sentence(f"{_capital(factor.title)}: {table}.", (InTable(factor, len(compared)),)))
        else:
            still = [metric for metric in metrics if len(compared) > 1 and _is_still(effects, factor, metric)]
            moved = [metric for metric in metrics if metric not in still]
            found += [_compared(effects, factor, base, level, moved) for base, level in compared]
            found += _without_base(effects, factor, [m for m in moved if not _along(effects, factor, m)])
            found.append(_whatever(effects, factor, still))
        if not factor.numbers and len(factor.levels) > 2:
            found += _best(effects, factor, metrics)
    return [sentence for sentence in [*found, _missing(effects)] if sentence.text]


def _missing(effects: Effects) -> Sentence:
    """Combinations of the factors that were not run: what is said of a factor is said without them."""
    run = {tuple(factor.of[point] for factor in effects.factors) for point in effects.summary.order}
    every = product(*(factor.levels for factor in effects.factors))
    lacking = tuple(levels for levels in every if levels not in run)
    if not lacking:
        return Sentence("")
    names = [
        ", ".join(factor.names[level] for factor, level in zip(effects.factors, levels, strict=True))
        for levels in lacking[:MOST_NAMES]
    ]
    more = f"; and {len(lacking) - len(names)} others" if len(lacking) > len(names) else ""
    return Sentence(f"Not run: {'; '.join(names)}{more}.", (Missing(len(lacking)),))


def comparisons(factor: Factor) -> list[tuple[str, str]]:
    """(base, level) of the levels that differ from their base in one choice."""
    return [(base, level) for level, base in factor.base.items() if factor.apart[level] <= ONE]


def _without_base(effects: Effects, factor: Factor, metrics: Sequence[str]) -> list[Sentence]:
    """Metrics that no base has, such as switch-overs without fail-over: levels against the first that has them."""
    by_base: dict[str, list[str]] = {}
    for metric in metrics if len(factor.keys) == 1 else ():  # any two levels differ in one choice
        for first in [level for level in factor.levels if effects.has(factor, level, metric)][:1]:
            by_base.setdefault(first, []).append(metric)
    return [
        _compared(effects, factor, first, level, some)
        for first, some in by_base.items()
        for level in factor.levels[factor.levels.index(first) + 1 :]
    ]


_PER_MS = {"ms": 1.0, "µs": 0.001}


def with_unit(number: float, metric: str) -> str:
    """A metric with its unit: 49 ms, 12.3 %; without it where the title says what is counted."""
    unit = CATALOGUE[metric].unit
    if unit in _PER_MS:
        return duration_text(number * _PER_MS[unit])
    text = number_text(number, unit)
    named = unit in {"share", "ratio", "0..1"} or unit in CATALOGUE[metric].title.replace("-", " ").split()
    return text if named else f"{text} {unit.removesuffix('s') if text == '1' else unit}"


# ── comparisons ────────────────────────────────────────────────────────────────────────────────────────────


def _compared(effects: Effects, factor: Factor, base: str, level: str, metrics: Sequence[str]) -> Sentence:
    return _sentence(effects, _capital(head(factor, base, level)), factor, base, level, metrics)


def head(factor: Factor, base: str, level: str) -> str:
    """exact covering against simple routing; state lost against kept."""
    return with_factor(factor, f"{factor.names[level]} against {factor.names[base]}")


def with_factor(factor: Factor, words: str) -> str:
    """Names of levels after their factor's title, unless they say it themselves."""
    return words if factor.routes or words.startswith(factor.title) else f"{factor.title} {words}"


def _from_to(effects: Effects, factor: Factor, metrics: Sequence[str]) -> Sentence:
    """A swept number, from its smallest to its largest value."""
    low, high = factor.levels[0], factor.levels[-1]
    values = [number_text(json.loads(level)[factor.keys[0]], "") for level in (low, high)]
    return _sentence(effects, f"{_capital(factor.title)} {values[0]} → {values[1]}", factor, low, high, metrics)


def _sentence(effects: Effects, start: str, factor: Factor, base: str, level: str, metrics: Sequence[str]) -> Sentence:
    """The metrics that differ, then those that may by chance, then those alike in print, then the ties."""
    known = [effect for metric in metrics if (effect := effects.compare(factor, base, level, metric)) is not None]
    told: dict[str, list[Effect]] = {"": [], "not beyond chance": [], "alike in all digits shown": [], "equal": []}
    for effect in known:
        between = bool(_between(effects, effect))
        if effect.verdict == EQUAL and not between:
            kind = "equal"
        elif _alike_in_print(effect) and not between:
            kind = "alike in all digits shown"
        else:
            kind = "not beyond chance" if effect.verdict == CHANCE and not between else ""
        told[kind].append(effect)
    first = told.pop("")
    words = [f"{start}: {_listed(effects, first)}"] if first else []
    for kind, some in told.items():
        if some:
            titles = ", ".join(title(effect.metric) for effect in some)
            said = _listed(effects, some) if kind == "not beyond chance" else titles
            every = " with every seed" if kind == "equal" and not words else ""
            words.append(f"{kind}{every}: {said}")
    text = "; ".join(words) if first else f"{start}, {'; '.join(words)}"
    return Sentence(f"{text}." if words else "", tuple(known))


def _alike_in_print(effect: Effect) -> bool:
    return all(with_unit(part.base, effect.metric) == with_unit(part.value, effect.metric) for part in effect.parts)


def _listed(effects: Effects, some: Sequence[Effect]) -> str:
    return _by_words((effect.metric, in_words(effects, effect)) for effect in some)


def _by_words(said: Iterable[tuple[str, str]]) -> str:
    """Metrics about which the same is said are named together."""
    titles: dict[str, list[str]] = {}
    for metric, words in said:
        titles.setdefault(words, []).append(title(metric))
    return ", ".join(f"{and_all(names)} {words}" for words, names in titles.items())


def title(metric: str) -> str:
    """A metric's title without a comma: latency p99."""
    name = CATALOGUE[metric].title
    for long, short in _SHORTER.items():
        name = name.replace(long, short)
    return name


_SHORTER = {", 99th percentile": " p99", ", 95th percentile": " p95", ", median": " p50", ", mean": " mean", ", ": " "}


def in_words(effects: Effects, effect: Effect) -> str:
    """23,200 → 7,137 (−69.2 % ± 10.8); where there are other factors: −66.3 % (state kept) to −69.3 % (lost)."""
    metric = effect.metric
    if len(effect.parts) == 1:
        part = effect.parts[0]
        change = change_text(part, metric)
        base, value = with_unit(part.base, metric), with_unit(part.value, metric)
        moves = f"stays {base}" if base == value else f"{base} → {value}{f' ({change})' if change else ''}"
        only = f" with {effects.rest_in_words(part.rest, effect.factor)}" if len(effects.factors) > 1 else ""
        return f"{moves}{only}{_between(effects, effect)}"
    parts = effect.ordered()
    texts = _short_changes(parts, metric)
    if len(set(texts)) == 1:
        others = and_all([other.title for other in effects.factors if other is not effect.factor])
        whatever = f"{texts[0]}{_widest(parts, parts, metric)} whatever the {others}"
        return f"{whatever}{_surely(effect)}{_between(effects, effect)}"
    ends = dict.fromkeys(_where(effects, effect, texts, end) for end in (0, -1))
    return f"{' to '.join(ends)}{_surely(effect)}{_between(effects, effect)}"


def _surely(effect: Effect) -> str:
    """In how many combinations of the other factors it is more than chance, if not in all or none."""
    parts = len(effect.parts)
    return f", beyond chance in {effect.sure} of {parts}" if 0 < effect.sure < parts else ""


def _where(effects: Effects, effect: Effect, texts: Sequence[str], end: int) -> str:
    """A change with its interval, and for which combination of the other factors if it is one only."""
    parts = effect.ordered()
    same = [part for part, text in zip(parts, texts, strict=True) if text == texts[end]]
    words = f"{texts[end]}{_widest(same, parts, effect.metric)}"
    return words if len(same) > 1 else f"{words} ({effects.rest_in_words(same[0].rest, effect.factor)})"


def change_text(part: Paired, metric: str) -> str:
    """−69.2 % ± 10.8; +3.1 points ± 0.4; 5.3 times ± 0.2; empty from 0."""
    unit = _unit([part], metric)
    return f"{_size(part, unit)}{_half_text(part, unit)}"


def _short_changes(parts: Sequence[Paired], metric: str) -> list[str]:
    """The changes alone, in the same unit; both values from 0."""
    unit = _unit(parts, metric)
    values = ((with_unit(part.base, metric), with_unit(part.value, metric)) for part in parts)
    return [
        "unchanged" if part.verdict == EQUAL else _size(part, unit) or f"{base} → {value}"
        for part, (base, value) in zip(parts, values, strict=True)
    ]


def _widest(some: Sequence[Paired], parts: Sequence[Paired], metric: str) -> str:
    """The interval of those that change by as much; if they differ in it, the widest: ± at most 21.2."""
    unit = _unit(parts, metric)
    widths = sorted((_half(part, unit), _half_text(part, unit)) for part in some if _half_text(part, unit))
    if not widths:
        return ""
    text = widths[-1][1]
    return text if {text for _, text in widths} == {text} else text.replace("± ", "± at most ")


_POINTS, _PERCENT, _TIMES = "points", "%", "times"


def _unit(parts: Sequence[Paired], metric: str) -> str:
    """In what changes are told: shares in points, all increases as times if one is large."""
    if CATALOGUE[metric].unit == "share":
        return _POINTS
    known = [part for part in parts if part.base and part.verdict != EQUAL]
    large = any(part.base > 0 and part.value / part.base >= TIMES for part in known)
    return _TIMES if large and all(0 < part.base < part.value for part in parts) else _PERCENT


def _size(part: Paired, unit: str) -> str:
    """−69.2 %; +3.1 points; 1.00 times, 11.5 times, 1,234 times; empty from 0."""
    if unit == _POINTS:
        return f"{_signed(100 * part.difference)} points"
    if not part.base:
        return ""
    if unit == _PERCENT:
        return f"{_signed(100 * part.change)} %"
    ratio = part.value / part.base
    return f"{number_text(ratio, '') if ratio >= 100 else f'{ratio:#.3g}'} times"


def _half(part: Paired, unit: str) -> float:
    """Half of the 95 % interval, in the same unit."""
    return part.half * {_POINTS: 100, _PERCENT: 100, _TIMES: 1}[unit] / (1.0 if unit == _POINTS else abs(part.base))


def _half_text(part: Paired, unit: str) -> str:
    """Empty for one seed, a tie, a change that is the same with every seed, or from 0."""
    if not part.half > CLOSE * abs(part.value) or part.verdict == EQUAL or (unit != _POINTS and not part.base):
        return ""
    half = _half(part, unit)
    return f" ± {half:.2g}" if unit == _TIMES and half < 100 else f" ± {half:,.1f}"


def _signed(number: float) -> str:
    text = f"{abs(number):,.1f}"
    return text if text == "0.0" else f"{'+' if number > 0 else '−'}{text}"


def _between(effects: Effects, effect: Effect) -> str:
    """What a swept number does between its ends, where it is surely beyond both."""
    factor = effect.factor
    beyond: dict[str, dict[str, tuple[float, str]]] = {"most": {}, "least": {}}  # by combination of the other factors
    seeds = {part.rest: part.n for part in effect.parts}
    for level in factor.levels[1:-1] if factor.numbers else ():
        sides = [effects.compare(factor, end, level, effect.metric) for end in (effect.base, effect.level)]
        one, other = ({part.rest: part for part in side.parts} if side else {} for side in sides)
        for rest in sorted(one.keys() & other.keys() & seeds.keys()):
            pair = one[rest], other[rest]
            for word, sign in (("most", 1), ("least", -1)):
                sure = all(part.verdict in (DIFFERS, UNSURE) and sign * part.difference > 0 for part in pair)
                if sure and one[rest].n == other[rest].n == seeds[rest]:
                    here = sign * pair[0].value, level
                    beyond[word][rest] = max(here, beyond[word].get(rest, here))
    found = []
    for word, places in beyond.items():
        if len(effect.parts) > 1 and places:
            found.append(f"{word} in between in {len(places)} of {len(effect.parts)}")
        for value, level in places.values() if len(effect.parts) == 1 else ():
            found.append(f"{word} at {factor.names[level]}: {with_unit(abs(value), effect.metric)}")
    may_be = " (may be chance)" if effect.verdict == CHANCE else ""
    return f"{may_be}, {', '.join(found)}" if found else ""


# ── the best ───────────────────────────────────────────────────────────────────────────────────────────────


def _best(effects: Effects, factor: Factor, metrics: Sequence[str]) -> list[Sentence]:
    """For each metric the best levels; where several share the first place, what the next metrics say about them."""
    found: list[Sentence] = []
    for metric in metrics:
        best = effects.best(factor, metric)
        if best is not None and not best.levels:
            others = and_all([other.title for other in effects.factors if other is not factor])
            found.append(Sentence(f"{_superlative(metric)}: no {factor.title} has it whatever the {others}.", (best,)))
        if best is None or not _tells(best):
            continue
        chain, first = [best], not any("; of these" in str(sentence) for sentence in found)
        for other in metrics if first else ():
            next_one = effects.best(factor, other, chain[-1].levels) if len(chain[-1].levels) > 1 else None
            if next_one is not None and 0 < len(next_one.levels) < len(next_one.among):
                chain.append(next_one)
        words = [best_in_words(best), *(f"of these, {_lower(best_in_words(other))}" for other in chain[1:])]
        found.append(Sentence(f"{'; '.join(words)}.", tuple(chain)))
    return found


def _tells(best: Best) -> bool:
    """Whether somebody has the first place, few share it, and somebody surely does not."""
    worse = len(best.among) - len(best.levels) - len(best.unsure)
    others = len(best.among) - len(best.levels)
    return worse > 0 and (0 < len(best.levels) <= MOST_NAMES or others <= MOST_OTHERS)


def best_in_words(best: Best) -> str:
    """Fewest control messages: auto = prune (7,137; none with flooding), not told apart from budget 32 (7,187)."""
    numbers = range_text(best.low, best.high, best.metric)
    one_seed = ", by one seed" if best.seeds == 1 else ""
    without = and_all([best.factor.names[level] for level in best.without])
    none = f"; none with {without}" if without else ""
    near = [f"{best.factor.names[level]} ({range_text(*ends, best.metric)})" for level, ends in best.unsure.items()]
    more = f"{len(near)} others" if len(near) > MOST_NAMES else and_all(near)
    unsure = f", not told apart by these seeds from {more}" if near else ""
    shared = ", in some settings equal to others" if best.shared else ""
    return f"{_who_is_best(best)} ({numbers}{one_seed}{shared}{none}){unsure}"


def _who_is_best(best: Best) -> str:
    who = " = ".join(best.factor.names[level] for level in best.levels)
    if len(best.levels) > MOST_NAMES:
        others = [best.factor.names[level] for level in best.among if level not in best.levels]
        who = f"all but {and_all(others)}"
    return f"{_superlative(best.metric)}: {who}"


def _superlative(metric: str) -> str:
    if metric in MORE_IS_BETTER:
        return f"Highest {title(metric)}"
    words = {"ms": "Shortest", "µs": "Shortest", "share": "Lowest", "ratio": "Lowest", "0..1": "Lowest"}
    return f"{words.get(CATALOGUE[metric].unit, 'Fewest')} {title(metric)}"


# ── what holds in all settings ─────────────────────────────────────────────────────────────────────────────


def _values(effects: Effects, metrics: Sequence[str]) -> Sentence:
    """Routing-table entries 1,320; latency p99 31.3 ms to 52 ms."""
    spans = []
    for metric in metrics:
        means = [float(np.nanmean(of)) for of in effects.values(metric).values() if not np.isnan(of).all()]
        spans += [Span(metric, min(means), max(means))] if means else []
    words = _by_words((span.metric, range_text(span.low, span.high, span.metric)) for span in spans)
    where = "Over all settings: " if len(effects.summary.order) > 1 else ""
    return Sentence(_capital(f"{where}{words}.") if words else "", tuple(spans))


def range_text(low: float, high: float, metric: str) -> str:
    ends = (with_unit(number, metric) for number in (low, high))
    return " to ".join(dict.fromkeys(ends))


def _is_still(effects: Effects, factor: Factor, metric: str) -> bool:
    """Whether no comparison shows a difference: equal, or perhaps chance and alike in all digits that are shown."""
    parts = [part for effect in _along(effects, factor, metric) for part in effect.parts]
    return bool(parts) and all(
        part.verdict == EQUAL or with_unit(part.base, metric) == with_unit(part.value, metric) for part in parts
    )


def _along(effects: Effects, factor: Factor, metric: str) -> list[Effect]:
    known = (effects.compare(factor, base, level, metric) for base, level in comparisons(factor))
    return [effect for effect in known if effect is not None]


def _whatever(effects: Effects, factor: Factor, metrics: Sequence[str]) -> Sentence:
    """The metrics that no level of a factor changes."""
    of = {metric: _along(effects, factor, metric) for metric in metrics}
    equal = [title(metric) for metric in of if all(effect.verdict == EQUAL for effect in of[metric])]
    nearly = [title(metric) for metric in of if title(metric) not in equal]
    words = [f"equal with every seed: {', '.join(equal)}"] if equal else []
    words += [f"alike in all digits shown: {', '.join(nearly)}"] if nearly else []
    text = f"Whatever the {factor.title}, {'; '.join(words)}." if words else ""
    return Sentence(text, tuple(effect for some in of.values() for effect in some))


def _capital(text: str) -> str:
    return text if text.startswith("ε") else f"{text[:1].upper()}{text[1:]}"


def _lower(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"


# ── cards ──────────────────────────────────────────────────────────────────────────────────────────────────


def cards(effects: Effects, metrics: Sequence[str], most: int = 3) -> list[dict[str, Any]]:
    """The first effect of every factor that is one, and the best level by the first metric that has any."""
    found: list[dict[str, Any]] = []
    for factor in effects.factors:
        ends = [(factor.levels[0], factor.levels[-1])] if factor.numbers else comparisons(factor)
        known = (effects.compare(factor, base, level, m) for m in metrics for base, level in ends)
        effect = next((e for e in known if e is not None and e.verdict not in (CHANCE, EQUAL)), None)
        if effect is not None:
            text = f"{title(effect.metric)}: {head(factor, effect.base, effect.level)}{_surely(effect)}"
            found.append({"figure": _figure(effect), "text": text, "tone": "", "of": effect})
    bests = (effects.best(f, m) for f in effects.factors if len(f.levels) > 2 and not f.numbers for m in metrics[:1])
    best = next((b for b in bests if b is not None and _tells(b)), None)
    if best is not None and best.low == best.high:
        figure = with_unit(best.low, best.metric)
        unsure = ", not told apart from others" if best.unsure else ""
        found.append({"figure": figure, "text": f"{_lower(_who_is_best(best))}{unsure}", "tone": "", "of": best})
    return found[:most]


def _figure(effect: Effect) -> str:
    texts = list(dict.fromkeys(_short_changes(effect.ordered(), effect.metric)))
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"
