"""An independent reader of what a search for the highest rate says: each rate recomputed from the runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from analysis.report.numbers import number_text
from analysis.report.rates import Compared
from analysis.report.told import Held, Rates
from analysis.report.words import Sentence

RATE = "arrivals.publish_rate"  # per ms


def wrong_sentences(runs: pd.DataFrame, sentences: Iterable[Sentence], limit: float) -> list[str]:
    """What is wrong with the sentences of an answer, those that compare settings included."""
    rows, found = runs.to_dict("records"), []
    for sentence in sentences:
        for one in sentence.of:
            if isinstance(one, Rates):
                found += [*_problems(rows, one, limit), *([] if one.text in sentence.text else ["another text"])]
        some = [one for one in sentence.of if isinstance(one, Compared)]
        found += [f"not {words}: {sentence}" for words in _compared(rows, some, limit) if words not in sentence.text]
        if not sentence.of and f"{len({*runs['seed']})} seeds" not in sentence.text:
            found.append(f"not so many seeds: {sentence}")
    return found


def _compared(rows: list[dict[Any, Any]], some: list[Compared], limit: float) -> Iterable[str]:
    """What a sentence has to say about pairs of settings."""
    changes, equal, undecided = [], 0, 0
    for one in some:
        (most, least, drawn), (high, low, other) = (_ends(rows, rates, limit) for rates in (one.base, one.level))
        if (most, least, drawn) == (high, low, other):
            equal += 1
        elif max(most, high) < min(least, low):
            undecided += 1
        else:
            changes.append(other / drawn - 1)
        if len(some) == 1:
            yield f"equal, {drawn:,.4g} events" if equal else f"{drawn:,.4g} → {other:,.4g} events"
    if len(some) == 1:
        yield from ["not told apart"] * undecided
    elif some:
        yield from (f"{word} in {n} of {len(some)}" for word, n in (("equal", equal), ("tried", undecided)) if n)
    yield from (
        f"{'+' if c > 0 else '−'}{abs(100 * c):.1f} %" for c in ([min(changes), max(changes)] if changes else [])
    )


def _ends(rows: list[dict[Any, Any]], claim: Rates, limit: float) -> tuple[float, float, float]:
    """The highest rate that holds, the lowest that does not, and at the first the rate of the slowest seed's events.

    Work ÷ time × events ÷ work: right where nothing but events is sent while they are published.
    """
    tried = _tried(rows, claim)
    most = max(rate for rate, of in tried.items() if all(_good(row, limit) for row in of))
    least = min(rate for rate, of in tried.items() if not all(_good(row, limit) for row in of))
    return most, least, min(row["event_load"] * row["event_rate_held"] for row in tried[most])


def _tried(rows: list[dict[Any, Any]], claim: Rates) -> dict[float, list[dict[Any, Any]]]:
    tried: dict[float, list[dict[Any, Any]]] = {}
    for row in rows:
        keys = json.loads(row["point"])
        rate = keys.pop(RATE)
        if keys == json.loads(claim.setting):
            tried.setdefault(float(f"{1000 * rate:.9g}"), []).append(row)
    return tried


def _good(row: dict[Any, Any], limit: float) -> bool:
    return bool(row["latency_p99"] < limit and row["event_load"] < 1 and not row["dropped"] > 0)


def complaints(runs: pd.DataFrame, held: Held) -> list[str]:
    """What is wrong with the answers; `runs` as in results/run_metrics.csv."""
    rows = runs.to_dict("records")
    return [f"{problem}: {rates.text}" for rates in held.found for problem in _problems(rows, rates, held.limit)]


def _problems(rows: list[dict[Any, Any]], claim: Rates, limit: float) -> Iterable[str]:
    tried = _tried(rows, claim)
    holding = [rate for rate, of in tried.items() if all(_good(row, limit) for row in of)]
    failing = [rate for rate in tried if rate not in holding]
    most, least = max(holding, default=math.nan), min(failing, default=math.nan)
    for name, said, found in (("holds", claim.holds, most), ("does not hold", claim.fails, least)):
        if not math.isclose(said or math.nan, found, rel_tol=1e-6) and not (said is None and math.isnan(found)):
            yield f"{found} {name}, not {said}"
    if claim.holds is None or claim.fails is None or not holding or not failing:
        return
    slowest = max(tried[most], key=lambda row: float(row["latency_p99"]))
    first = next(row for row in tried[least] if not _good(row, limit))
    expected = [f"99 % at most {number_text(slowest['latency_p99'], 'ms')} ms"]
    expected.append(f"half of the deliveries take at most {number_text(slowest['latency_p50'], 'ms')} ms")
    load = first["event_load"]
    if load >= 1:
        expected.append(f"work for {f'{100 * load:.4g}' if load < 10 else f'{100 * load:,.0f}'} % of the time")
    elif not first["dropped"] > 0:
        expected.append(f"the 99th percentile is then {first['latency_p99']:.3g} ms, not below {limit:g} ms")
    yield from (f"not {words}" for words in expected if words not in claim.text)
