"""What methods have to do in a network, as checks of drawn experiments, and what workloads, overlays and service models
have to do by themselves. Ours and those of plug-ins pass the same checks; facts choose what a draw contains.
"""

from __future__ import annotations

import json
import math
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import covering
import topk
from analysis.spark.java import find_java
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import MUST_BE_ZERO
from broker.transport import Work, service_model
from coverlay import Broken, CoverlayError
from routing.overlay.graph import build_overlay
from routing.strategies import STRATEGIES
from sim import plugins
from sim.experiment.plan import Plan, plan
from sim.experiment.runner import simulate
from sim.experiment.sweep import run_sweep
from sim.experiment.toml_text import to_toml
from sim.random_streams import streams
from sim.workloads import generate

Check = Callable[[str, int], None]
OVERLAYS = ("random-tree", "star", "grid", "line")
SIZES = (1, 2, 3, 5, 8, 13, 21, 34, 60)  # of overlays
SUBSCRIPTIONS, EVENTS, BROKERS = 40, 25, 6


def _using(kind: str, name: str) -> dict[str, Any]:
    """The sections with which an experiment uses a method of this kind."""
    if kind == "covering":
        return {"routing": {"strategy": "covering"}, "covering": {"method": name}}
    if kind == "routing":
        return {"routing": {"strategy": name}}
    if kind == "topk":
        of = next(of for of in topk.KINDS if name in topk.registry(of))
        return {"matching": {"method": name, "k": 3, **({"kind": of} if of != "boxes" else {})}}
    if kind == "workloads":
        return {"workload": {"kind": name}}
    if kind == "overlays":
        return {"overlay": {"kind": name}}
    return {"broker": {"service": {"kind": name, **_options(name)}}}


def _options(service: str) -> dict[str, float]:
    """Values for the options of a service model that have no default."""
    from broker.transport import SERVICE_MODELS, needed

    return {option: 0.5 for option in needed(service)} if service in SERVICE_MODELS else {}


def _experiment(kind: str, name: str, case: int) -> dict[str, Any]:
    """A small drawn experiment with churn, and faults where there are any."""
    rng = np.random.default_rng(case)
    data: dict[str, Any] = {
        "name": f"check {name}",
        "seeds": [case + 1],
        "overlay": {"kind": str(rng.choice(OVERLAYS)), "brokers": BROKERS},
        "workload": {"kind": "zipf", "subscriptions": SUBSCRIPTIONS, "events": EVENTS},
        "arrivals": {"kind": str(rng.choice(["static", "churn"]))},
        "links": {"jitter": float(rng.choice([0.0, 2.0]))},
    }
    if rng.random() < 0.5:
        data["faults"] = {"crash_fraction": 0.2, "cut_fraction": 0.2, "downtime": 50.0}
    for section, keys in _using(kind, name).items():
        data[section] = {**data.get(section, {}), **keys}
    if kind == "workloads":
        data["workload"] = {"kind": name, "subscriptions": SUBSCRIPTIONS, "events": EVENTS}
    if data.get("matching", {}).get("kind") == "places":
        data["workload"]["kind"], data["matching"]["semantics"] = "located", "relaxed"
    strategy = STRATEGIES[data.get("routing", {}).get("strategy", "covering")]
    if strategy.searches or kind == "routing":
        modes = [mode for mode in strategy.modes if strategy.searches or mode == "lazy"]
        data["routing"] = {**data.get("routing", {"strategy": strategy.name}), "mode": str(rng.choice(modes))}
    if strategy.searches and covering.METHODS[data.get("covering", {}).get("method", "auto")].takes_epsilon:
        data["covering"]["epsilon"] = float(rng.choice([0.0, 0.2]))
    return data


def network(kind: str) -> Check:
    """The oracle finds nothing that must not be in drawn networks with churn, cuts and crashes."""

    def check(name: str, case: int) -> None:
        data = _experiment(kind, name, case)
        with plugins.explained():
            tables, _ = simulate(plan(data).runs[0])
        record = tables["run"].to_pylist()[0]
        wrong = {count.replace("_", " "): record[count] for count in MUST_BE_ZERO if record[count]}
        if wrong:
            said = ", ".join(f"{what}: {count}" for what, count in wrong.items())
            raise Broken(f"the oracle counts what must be 0: {said}", to_toml(data).splitlines())

    return check


def _hash(made: Plan, out: Path) -> str:
    run = made.runs[0]
    plugins.ensure(run.plugins, out)
    return str(simulate(run)[0]["run"].to_pylist()[0]["trace_hash"])


def workers(kind: str) -> Check:
    """The same trace in this process, in another one that starts anew, and in a Spark task."""

    def check(name: str, case: int) -> None:
        used = plugins.of_name(kind, name)
        made = plan({**_experiment(kind, name, case), **({"plugins": [used]} if used else {})})
        with TemporaryDirectory() as folder, plugins.explained():
            out = Path(folder)
            plugins.keep(made.plugins, out)
            found = {"this process": _hash(made, out)}
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                found["another process"] = pool.submit(_hash, made, out).result()
            with suppress(CoverlayError):
                find_java()
                from analysis.spark.session import session

                spark = session(quick=True).sparkContext
                found["a Spark task"] = spark.parallelize([made], 1).map(lambda p: _hash(p, out)).collect()[0]
        if len(set(found.values())) > 1:
            raise Broken(f"traces differ: {json.dumps(found)}")

    return check


# ── workloads, overlays and service models by themselves ───────────────────────────────────────────────────


def rows(name: str, case: int) -> None:
    """The same seed gives the same rows; more rows change no earlier one; the columns fit together."""
    size = {"attributes": 2, "subscriptions": 30, "events": 20}
    one, again, more = (
        generate(name, streams(case), **{**size, **other}) for other in ({}, {}, {"subscriptions": 50, "events": 33})
    )
    one.check()
    for column in ("lo", "hi", "events", "scores"):
        first, second, longer = (getattr(made, column) for made in (one, again, more))
        if not np.array_equal(first, second, equal_nan=True):
            raise Broken(f"seed {case} gives other {column} the second time; draw from stream(name) only")
        if not np.array_equal(first, longer[: len(first)], equal_nan=True):
            raise Broken(f"more rows change earlier {column}; give each concern a stream of its own")


def brokers(name: str, case: int) -> None:
    """A connected graph of exactly so many brokers, the same for the same seed."""
    count = SIZES[case % len(SIZES)]
    made, again = (build_overlay(name, count, np.random.default_rng(case)) for _ in range(2))
    made.check()
    if made.brokers != count:
        raise Broken(f"made {made.brokers} brokers, not {count}")
    if sorted(made.graph.edges(data="latency")) != sorted(again.graph.edges(data="latency")):
        raise Broken(f"seed {case} gives another graph the second time; draw from rng only")


def times(name: str, case: int) -> None:
    """Milliseconds, 0 or more, and the same for the same seed."""
    rng = np.random.default_rng(case)
    served = [
        Work("event" if rng.random() < 0.5 else "request", int(rng.integers(20, 500)), float(step), lambda: case)
        for step in range(20)
    ]
    both = []
    for _ in range(2):
        takes = service_model({"kind": name, **_options(name)}, np.random.default_rng(case))
        assert takes is not None
        both.append([takes(work) for work in served])
    for took in both[0]:
        if isinstance(took, bool) or not isinstance(took, int | float) or not 0 <= took < math.inf:
            raise Broken(f"a service takes {took!r}; it must take a number of milliseconds, 0 or more")
    if both[0] != both[1]:
        raise Broken(f"seed {case} gives other times the second time; draw from rng only")


# ── metrics ────────────────────────────────────────────────────────────────────────────────────────────────


def values(name: str, case: int) -> None:
    """One number per run at most, also of a run in which nothing happened, however the tables are divided."""
    runs = {"seeds": [1, 2], "overlay": {"brokers": BROKERS}, "sweep": {"workload.events": [0, EVENTS]}}
    made = plan({"name": f"check {name}", "workload": {"subscriptions": SUBSCRIPTIONS}, **runs})
    find_java()  # a sentence where there is none
    from analysis.spark.frames import Frames
    from analysis.spark.session import session
    from analysis.spark.traces import find_runs

    metric = CATALOGUE[name]
    compute = metric.compute
    assert compute is not None
    otherwise = replace(metric, compute=lambda trace: compute(lambda table: trace(table).repartition(7)))
    with TemporaryDirectory() as folder:
        run_sweep(made, Path(folder))
        frames = Frames(session(quick=True), find_runs(Path(folder)))
        found, divided = frames.values_of(metric), frames.values_of(otherwise)
    for run, value in found.items():
        other = divided[run]
        if value is None or other is None:
            alike = value is other
        elif not math.isfinite(value):
            raise Broken(f"run {run} has the value {value}; it must be a number, or no row")
        else:
            alike = math.isclose(value, other, rel_tol=1e-9)
        if not alike:
            raise Broken(f"run {run} has the value {value}, or {other}: it depends on how Spark divides tables")
        if value is not None and value < 0 and not metric.signed:
            raise Broken(f"run {run} has the value {value}, but the metric does not say signed = True")


OF_KIND: dict[str, dict[str, tuple[int, Check]]] = {
    "workloads": {"rows": (20, rows)},
    "overlays": {"brokers": (30, brokers)},
    "services": {"times": (20, times)},
    "metrics": {"values": (1, values)},
}


def of_kind(kind: str) -> dict[str, tuple[int, Check]]:
    """The checks for methods of a kind (a group of plug-ins) that only a simulator can do."""
    if kind == "metrics":
        return OF_KIND[kind]  # networks do not know them
    return {**OF_KIND.get(kind, {}), "network": (30, network(kind)), "workers": (1, workers(kind))}
