"""Both engines on numbers at the edges of float64 and int64: the same trace, and nothing delivered wrongly.

Workloads come from files, as a user's would: bounds and events around 2^53, denormals, ±inf, 1e±300, nanosecond
timestamps, zeros of both signs, equal bounds, scores of any size, ids at both ends of int64. Values are taken from few,
so that bounds and events meet exactly where rounding would show.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.trace.schema import MUST_BE_ZERO
from coverlay import CoverlayError
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from tests.sim.compiled.both_engines import differences, with_engine

TINY = 5e-324  # the smallest number above 0
NOW = 1_700_000_000_000_000_000  # nanoseconds since 1970; float64 has one number in 256 there
LARGEST = 1.7976931348623157e308


def _around(value: float) -> list[float]:
    return [math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)]


PALETTES: dict[str, list[Any]] = {
    "beyond 2^53": [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, -(2**53)],
    "denormals": [-TINY, -0.0, 0.0, TINY, 3 * TINY, *_around(2.2250738585072014e-308)],
    "huge": [-1e300, *_around(1e300), 1e299, 0.0, 1e-300],
    "largest": [-LARGEST, -1e308, 0.0, 1e308, LARGEST],
    "timestamps": [NOW + step for step in (-1000, -256, 0, 1, 256, 512, 10**9)],
    "all": [-1e300, -1.0, -TINY, 0.0, TINY, 1e-300, 0.1, *_around(1.0), 2**53 + 1, NOW, 1e300],
    "neighbours": [*_around(0.1), *_around(0.3), *_around(1 / 3)],
    "one": [NOW],
}
SCORES = [0.0, -0.0, TINY, 1e-300, 0.5, 1.0, *_around(2.0**53), 1e300, -1e300]
ENDS = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1]
METHODS: list[dict[str, Any]] = [
    {"method": "scan"},
    {"method": "packed"},
    {"method": "kdtree"},
    {"method": "kdtree", "epsilon": 0.1},
    {"method": "auto"},
    {"method": "zorder-emulated", "epsilon": 0.2},
    {"method": "zorder-emulated", "epsilon": 0.01, "probe_cap": 7},
]
ARRIVALS: list[dict[str, Any]] = [
    {"kind": "static", "unsubscribe": 0.3, "subscribe_rate": 2.0},
    {"kind": "churn", "lifetime": 30.0},
    {"kind": "preloaded", "share": 0.5, "unsubscribe": 0.4},
]


def _pick(rng: np.random.Generator, values: list[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _write(path: Path, columns: dict[str, list[Any]]) -> str:
    """Whole numbers as int64, so that the reader rounds them itself; one float makes the column float64."""
    pq.write_table(pa.table({name: pa.array(_alike(values)) for name, values in columns.items()}), path)
    return str(path)


def _alike(values: list[Any]) -> list[Any]:
    return [None if v is None else float(v) for v in values] if any(isinstance(v, float) for v in values) else values


def _bounds(rng: np.random.Generator, palette: list[Any]) -> tuple[Any, Any]:
    low, high = sorted((_pick(rng, palette), _pick(rng, palette)))
    kind = rng.integers(8)
    if kind == 0:
        return None, high  # unbounded
    if kind == 1:
        return low, math.inf
    if kind == 2:
        return -math.inf, None
    return (low, low) if kind == 3 else (low, high)


def draw(seed: int, folder: Path) -> dict[str, Any]:
    """One experiment, and its files in `folder`."""
    rng = np.random.default_rng(seed)
    names = [f"x{j}" for j in range(int(rng.integers(1, 4)))]
    palettes = {name: PALETTES[_pick(rng, list(PALETTES))] for name in names}
    brokers, count = int(rng.integers(3, 7)), int(rng.integers(5, 40))
    subscriptions: dict[str, list[Any]] = {}
    for name in names:
        drawn = [_bounds(rng, palettes[name]) for _ in range(count)]
        subscriptions[f"{name}_lo"], subscriptions[f"{name}_hi"] = ([b[side] for b in drawn] for side in (0, 1))
    subscriptions["score"] = [float(_pick(rng, SCORES)) for _ in range(count)]
    if count >= len(ENDS):
        subscriptions["id"] = [*ENDS, *range(100, 100 + count - len(ENDS))]
    subscriptions["broker"] = rng.integers(0, brokers, count).tolist()
    published = int(rng.integers(3, 25))
    events: dict[str, list[Any]] = {name: [_pick(rng, palettes[name]) for _ in range(published)] for name in names}
    events["broker"] = rng.integers(0, brokers, published).tolist()
    relaxed = bool(rng.integers(4) == 0)
    if relaxed and rng.integers(2):
        events[names[0]][0] = None  # an event that lacks an attribute
    strategy = _pick(rng, ["simple", "identity", "covering", "covering", "covering", "hierarchical"])
    searches = strategy in ("covering", "hierarchical")
    return {
        "name": "extreme",
        "seeds": [seed],
        "overlay": {"kind": _pick(rng, ["random-tree", "line", "star"]), "brokers": brokers},
        "workload": {
            "subscriptions_file": _write(folder / "subscriptions.parquet", subscriptions),
            "events_file": _write(folder / "events.parquet", events),
        },
        "arrivals": _pick(rng, ARRIVALS),
        "routing": {"strategy": strategy, **({"mode": _pick(rng, ["lazy", "active"])} if searches else {})},
        "covering": _pick(rng, METHODS) if searches else {},
        "matching": {
            "semantics": "relaxed" if relaxed else "exact",
            **_pick(rng, [{}, {"k": 1}, {"k": 3}]),
        },
        "run": {"samples": 1},
    }


def outcome(data: dict[str, Any], engine: str) -> tuple[str, dict[str, Any]]:
    """The hash of the trace, or the refusal; and the tables."""
    try:
        tables, _ = simulate(with_engine(plan(data).runs[0], engine))
    except CoverlayError as error:
        return str(error), {}
    return tables["run"].column("trace_hash")[0].as_py(), tables


def check(seed: int, folder: Path) -> str:
    """Draw an experiment and run it on both engines; says what came of it."""
    folder.mkdir()
    data = draw(seed, folder)
    (one, reference), (other, compiled) = outcome(data, "simpy"), outcome(data, "compiled")
    if not compiled and "does not support" in other:
        return "not supported"
    assert one == other, (seed, one, other, differences(reference, compiled) if reference and compiled else data)
    if not reference:
        return "refused"
    record = reference["run"].to_pylist()[0]
    assert not any(record[name] for name in MUST_BE_ZERO), (seed, record)
    return "delivered" if record["deliveries"] else "silent"


def _check_many(seeds: range, folder: Path) -> Counter[str]:
    return Counter(check(seed, folder / str(seed)) for seed in seeds)


def test_extreme_values_have_the_same_trace_in_both_engines(tmp_path):
    found = _check_many(range(40), tmp_path)
    assert found["delivered"] >= 25, found
    assert not found["refused"], found


@pytest.mark.slow
def test_thousands_of_extreme_workloads_have_the_same_trace(tmp_path):
    found = _check_many(range(1000, 3000), tmp_path)
    assert found["delivered"] >= 1200, found
    assert not found["refused"], found
