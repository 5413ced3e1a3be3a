"""An independent reader of what a search for the highest rate says: each rate recomputed from the runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from analysis.report.numbers import number_text
from analysis.report.told import Held, Rates

RATE = "arrivals.publish_rate"  # per ms


def complaints(runs: pd.DataFrame, held: Held) -> list[str]:
    """What is wrong with the answers; `runs` as in results/run_metrics.csv."""
    rows = runs.to_dict("records")
    return [f"{problem}: {rates.text}" for rates in held.found for problem in _problems(rows, rates, held.limit)]


def _problems(rows: list[dict[Any, Any]], claim: Rates, limit: float) -> Iterable[str]:
    tried: dict[float, list[dict[Any, Any]]] = {}
    for row in rows:
        keys = json.loads(row["point"])
        rate = keys.pop(RATE)
        if keys == json.loads(claim.setting):
            tried.setdefault(float(f"{1000 * rate:.9g}"), []).append(row)

    def good(row: dict[Any, Any]) -> bool:
        return bool(row["latency_p99"] < limit and row["event_load"] < 1 and not row["dropped"] > 0)

    holding = [rate for rate, of in tried.items() if all(map(good, of))]
    failing = [rate for rate in tried if rate not in holding]
    most, least = max(holding, default=math.nan), min(failing, default=math.nan)
    for name, said, found in (("holds", claim.holds, most), ("does not hold", claim.fails, least)):
        if not math.isclose(said or math.nan, found, rel_tol=1e-6) and not (said is None and math.isnan(found)):
            yield f"{found} {name}, not {said}"
    if claim.holds is None or claim.fails is None or not holding or not failing:
        return
    slowest = max(tried[most], key=lambda row: float(row["latency_p99"]))
    first = next(row for row in tried[least] if not good(row))
    expected = [f"99 % at most {number_text(slowest['latency_p99'], 'ms')} ms"]
    expected.append(f"half of the deliveries take at most {number_text(slowest['latency_p50'], 'ms')} ms")
    load = first["event_load"]
    if load >= 1:
        expected.append(f"work for {f'{100 * load:.4g}' if load < 10 else f'{100 * load:,.0f}'} % of the time")
    elif not first["dropped"] > 0:
        expected.append(f"the 99th percentile is then {first['latency_p99']:.3g} ms, not below {limit:g} ms")
    yield from (f"not {words}" for words in expected if words not in claim.text)
