"""Summaries made by hand: any points, metrics and counts; and sweeps over approximate searches."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.report.summary import Summary
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import LOSSES, MUST_BE_ZERO
from tests.analysis.handmade import facts

SEEDS = 5
NONE = 900  # messages of simple routing, one per entry
BUDGETS = (16, 32, 64, 128, 256)


def make(points: list[tuple[dict[str, Any], dict[str, float]]], seeds: int = 3) -> Summary:
    """A summary with these points; metrics not given are unknown, and intervals are ± 10 %."""
    runs, values = [], []
    for keys, metrics in points:
        point = json.dumps(keys, sort_keys=True)
        labels = {
            "strategy": keys.get("routing.strategy", "covering"),
            "mode": "lazy",
            "method": "scan",
            "epsilon": float(keys.get("covering.epsilon", 0.0)),
            "overlay": "line",
        }
        labels |= facts({"routing": {"strategy": labels["strategy"]}, "covering": {"method": labels["method"]}})
        known: dict[str, Any] = dict.fromkeys(CATALOGUE, math.nan) | metrics
        in_force = {"routing.strategy": "covering", "routing.mode": "lazy", "covering.method": "scan"} | keys
        known |= {"settings": json.dumps(in_force), "brokers": 3, "subscriptions": 5}
        runs.append({"run": point, "point": point, "seed": 1, "experiment": "e", **labels, **known})
        for name in CATALOGUE:
            mean = float(metrics.get(name, math.nan))
            row = {"n": seeds, "mean": mean, "sd": 1.0, "low": mean * 0.9, "high": mean * 1.1}
            values.append({"point": point, "metric": name, **row, "min": mean, "max": mean})
    nothing = pd.DataFrame()
    return Summary(Path("out"), pd.DataFrame(runs), pd.DataFrame(values), nothing, nothing, nothing, nothing)


def with_counts(summary: Summary, **counts: float) -> Summary:
    """The same with 100 deliveries and these counts of the oracle in every run."""
    zero = dict.fromkeys((*MUST_BE_ZERO, *LOSSES), 0)
    no_differences = pd.DataFrame(columns=["point", "factor", "baseline", "metric", "differs"])
    runs = summary.runs.assign(**{"deliveries": 100, "events": 10, "judged_share": 1.0, **zero, **counts})
    return replace(summary, runs=runs, differences=no_differences)


def search(method: str, cost: float, messages: float, **given: Any) -> tuple[dict[str, Any], dict[str, float]]:
    """One setting: µs per check, messages, other keys of covering and metrics."""
    named = ("pages", "trips", "recall", "wobble", "capped", "volume")
    metrics = {name: given.pop(name) for name in named if name in given}
    keys = {"covering.method": method, **{f"covering.{name}": value for name, value in given.items()}}
    return keys, {
        "check_time": cost,
        "probes_per_check": 1000 * cost,
        "pages_per_check": metrics.get("pages", 1.0),
        "round_trips_per_check": metrics.get("trips", 1.0),
        "candidates_per_check": 0.0,
        "volume": metrics.get("volume", 1.0),
        "capped": metrics.get("capped", 0.0),
        "control_messages": messages,
        "entries": messages,
        "reduction": 1 - messages / NONE,
        "recall": metrics.get("recall", 0.9),
        "unsubscribe_messages": 0.0,
        "checks": 200.0,
        "utilisation_max": 0.1,
        "wobble": metrics.get("wobble", 0.0),
    }


def made(points: list[Any], **changes: Any) -> Summary:
    """A summary of several seeds; `wobble` is by how much messages differ between them, relatively."""
    summary = make(points, SEEDS)
    runs = []
    for row, (keys, metrics) in zip(summary.runs.to_dict("records"), points, strict=True):
        labels = {"method": keys["covering.method"], "epsilon": keys.get("covering.epsilon", 0.0)}
        options = {key.removeprefix("covering."): keys[key] for key in keys if key.startswith("covering.")}
        labels |= facts({"routing": {}, "covering": labels | options})
        if "covering.budget" in keys:
            labels["epsilon"] = math.nan
        for seed in range(SEEDS):
            sent = metrics["control_messages"] * (1 + metrics["wobble"] * (seed - (SEEDS - 1) / 2))
            own = {
                **metrics,
                "control_messages": sent,
                "seed": seed,
                "simple_entries": NONE,
                "brokers": 10,
                "subscriptions": 1000,
                "subscribe_requests": 100,
            }
            runs.append({**row, **labels, **own, **changes})
    return replace(summary, runs=pd.DataFrame(runs))


def sweep(cost: float, messages: float, **given: Any) -> list[Any]:
    """Exact search at 1 µs and 90 messages, and five budgets that all cost and send the same."""
    rough = [search("budget", cost, messages, budget=budget, **given) for budget in BUDGETS]
    return [search("auto", 1.0, 90.0, recall=1.0), *rough]
