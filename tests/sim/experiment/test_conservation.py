"""The law of conservation: due = delivered as due + every cause of loss, whatever is full, down or at one moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.language.schema import Schema
from broker.trace.schema import LOSSES, MUST_BE_ZERO
from sim.experiment import oracle
from sim.experiment.build import inputs_of, overlay_of, rules_of
from sim.experiment.config import parse
from sim.experiment.engines import ENGINES
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from sim.random_streams import streams
from sim.workloads import Workload

CAUSES = ("missed", *LOSSES)
PAIR: dict[str, Any] = {
    "name": "two brokers, all match everything",
    "overlay": {"kind": "line", "brokers": 2, "latency": {"kind": "constant", "value": 1.0}},
    "workload": {"kind": "uniform", "attributes": 1, "width": [1.0, 1.0], "subscriptions": 20, "events": 200},
    "arrivals": {"kind": "static", "publish_rate": 2.0},
    "broker": {"service": {"kind": "constant", "value": 2.0}},
}


def record_of(data: dict[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = simulate(plan(data).runs[0])[0]["run"].to_pylist()[0]
    assert not any(record[name] for name in MUST_BE_ZERO), record
    assert record["due"] == record["due_delivered"] + sum(record[name] for name in CAUSES)
    assert record["due_delivered"] + record["undue"] == record["deliveries"]
    return record


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_events_that_their_own_broker_has_no_room_for_are_due_and_lost(engine: str) -> None:
    run = {"run": {"engine": engine}}
    whole, full = record_of({**PAIR, **run}), record_of({**PAIR, **run, "broker": {**PAIR["broker"], "queue": 2}})
    assert whole["due"] == whole["due_delivered"] == full["due"] == 200 * 20
    assert full["missed_refused"] > 0.2 * full["due"]
    assert full["missed_dropped"] > 0
    assert full["missed_refused"] + full["missed_dropped"] == 4000 - full["deliveries"]


def test_events_whose_broker_is_down_are_due_and_lost(tmp_path: Path) -> None:
    faults = tmp_path / "faults.csv"
    faults.write_text("time,kind,broker,until\n0.5,crash,0,1e6\n")
    events = tmp_path / "events.csv"
    events.write_text("a,broker,time\n" + "".join(f"0.5,{number % 2},{number + 1}\n" for number in range(40)))
    subscriptions = tmp_path / "subscriptions.csv"
    subscriptions.write_text("a_lo,a_hi,broker,time\n" + "0,1,1,0\n" * 5)
    files = {"subscriptions_file": str(subscriptions), "events_file": str(events)}
    found = record_of({"name": "down", "overlay": PAIR["overlay"], "workload": files, "faults": {"file": str(faults)}})
    assert (found["due"], found["missed_unpublished"], found["due_delivered"]) == (200, 100, 100)


def test_of_the_whole_network_the_k_best_are_due() -> None:
    found = record_of({**PAIR, "matching": {"k": 3, "scope": "network"}, "broker": {**PAIR["broker"], "queue": 2}})
    assert found["due"] == 3 * 200
    assert found["missed_refused"] > 0


def recorded(
    came: list[float], left: list[float], homes: list[int], times: list[float], publishers: list[int]
) -> Workload:
    """Subscriptions to everything, scored 1, 2, 3, …, and events, at given times and brokers."""
    shape = (len(came), 1)
    return Workload(
        Schema.uniform(1),
        np.zeros(shape),
        np.ones(shape),
        np.ones(shape, bool),
        np.arange(1.0, 1.0 + len(came)),
        np.ones(shape),
        np.full((len(times), 1), 0.5),
        homes=np.array(homes),
        publishers=np.array(publishers),
        times=np.array(times),
        came=np.array(came),
        left=np.array(left),
    )


def judged(workload: Workload, data: dict[str, Any], engine: str) -> tuple[oracle.Verdict, dict[str, pa.Table]]:
    parsed, stream = parse(data, "it"), streams(1)
    inputs = inputs_of(parsed, overlay_of(parsed, stream), workload, stream)
    tables = ENGINES[engine](inputs).tables
    return oracle.judge(workload, tables, rules_of(inputs.settings)), tables


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_what_settles_at_the_moment_of_publication_may_be_too_late(engine: str) -> None:
    """Line 0–1–2 with links of 1 ms: a subscription of 2 at 0 reaches broker 0 at 2, when it publishes."""
    line = {"name": "tied", "overlay": {**PAIR["overlay"], "brokers": 3}}
    verdict, tables = judged(recorded([0.0], [np.inf], [2], [2.0], [0]), line, engine)
    assert tables["deliveries"].num_rows + verdict.missed_transient == verdict.due == 1
    assert (verdict.missed, verdict.unaccounted) == (0, 0)
    later, _ = judged(recorded([0.0], [np.inf], [2], [2.5], [0]), line, engine)
    assert later == oracle.Verdict(due=1, due_delivered=1)


def test_what_the_trace_says_of_an_event_that_nobody_published_is_unaccounted() -> None:
    line = {"name": "few", "overlay": PAIR["overlay"]}
    workload = recorded([0.0], [np.inf], [1], [5.0, 6.0], [0, 0])
    parsed = parse(line, "it")
    inputs = inputs_of(parsed, overlay_of(parsed, streams(1)), workload, streams(1))
    tables, rules = ENGINES["simpy"](inputs).tables, rules_of(inputs.settings)
    assert oracle.judge(workload, tables, rules).unaccounted == 0
    for rows in (tables["published"].slice(1), pa.concat_tables([tables["published"], tables["published"].slice(1)])):
        assert oracle.judge(workload, {**tables, "published": rows}, rules).unaccounted == 1


# ── drawn recordings in whole milliseconds ─────────────────────────────────────────────────────────────────

WHOLE = st.integers(0, 8).map(float)
SUBSCRIPTION = st.tuples(WHOLE, st.one_of(st.just(np.inf), st.integers(1, 6).map(float)), st.integers(0, 3))
ROUTING = [
    {"strategy": "covering", "mode": "lazy"},
    {"strategy": "covering", "mode": "active"},
    {"strategy": "simple"},
    {"strategy": "flooding"},
]


@st.composite
def recordings(draw: Any) -> Workload:
    lives = draw(st.lists(SUBSCRIPTION, min_size=1, max_size=6))
    events = sorted(draw(st.lists(st.tuples(WHOLE, st.integers(0, 3)), min_size=1, max_size=8)))
    came, lasts, homes = zip(*lives, strict=True)
    left = [a + b for a, b in zip(came, lasts, strict=True)]
    times, publishers = zip(*events, strict=True)
    return recorded(list(came), left, list(homes), list(times), list(publishers))


@st.composite
def networks(draw: Any) -> dict[str, Any]:
    broker = {"service": draw(st.sampled_from([{"kind": "none"}, {"kind": "constant", "value": 1.0}]))}
    if broker["service"]["kind"] == "constant" and draw(st.booleans()):
        broker["queue"] = draw(st.integers(1, 2))
    return {
        "name": "drawn",
        "overlay": {
            "kind": draw(st.sampled_from(["line", "star"])),
            "brokers": 4,
            "latency": {"kind": "constant", "value": draw(st.sampled_from([0.0, 1.0, 2.0]))},
        },
        "routing": draw(st.sampled_from(ROUTING)),
        "matching": draw(st.sampled_from([{}, {"k": 1}, {"k": 2}])),
        "broker": broker,
    }


def balanced(verdict: oracle.Verdict) -> None:
    assert {name: getattr(verdict, name) for name in MUST_BE_ZERO} == dict.fromkeys(MUST_BE_ZERO, 0)
    assert verdict.due == verdict.due_delivered + sum(getattr(verdict, name) for name in CAUSES)


def both_engines_agree(workload: Workload, network: dict[str, Any]) -> None:
    found = [judged(workload, network, engine) for engine in ENGINES]
    for verdict, tables in found:
        balanced(verdict)
        assert verdict.due_delivered == tables["deliveries"].num_rows
    (one, reference), (other, compiled) = found
    assert one == other
    assert reference["published"].equals(compiled["published"])


def others_are_balanced(data: Any, workload: Workload, network: dict[str, Any], folder: Path) -> None:
    """What only the reference engine has: crashes, cuts, other rules for full queues, the k best of the network."""
    if "queue" in network["broker"]:
        network["broker"]["overflow"] = data.draw(st.sampled_from(["drop", "shed", "hold"]))
    if network["matching"]:
        network["matching"]["scope"] = data.draw(st.sampled_from(["broker", "network"]))
    down = st.tuples(st.integers(0, 8), st.integers(1, 4), st.integers(0, 3), st.sampled_from(["lost", "kept"]))
    crashes = data.draw(st.lists(down, max_size=2, unique_by=lambda fault: fault[2]))
    if crashes:
        rows = [f"{time},crash,{broker},{time + lasts},{state}" for time, lasts, broker, state in crashes]
        (folder / "faults.csv").write_text("\n".join(["time,kind,broker,until,state", *rows]))
        network["faults"] = {"file": str(folder / "faults.csv")}
    verdict, tables = judged(workload, network, "simpy")
    balanced(verdict)
    assert verdict.due_delivered + verdict.undue + verdict.duplicates == tables["deliveries"].num_rows


@settings(max_examples=30)
@given(recordings(), networks())
def test_the_law_holds_in_both_engines(workload: Workload, network: dict[str, Any]) -> None:
    both_engines_agree(workload, network)


@settings(max_examples=60)
@given(st.data())
def test_the_law_holds_whatever_is_full_or_down(tmp_path_factory: Any, data: Any) -> None:
    others_are_balanced(data, data.draw(recordings()), data.draw(networks()), tmp_path_factory.mktemp("drawn"))


@pytest.mark.slow
@settings(max_examples=2000)
@given(recordings(), networks())
def test_the_law_holds_in_both_engines_at_length(workload: Workload, network: dict[str, Any]) -> None:
    both_engines_agree(workload, network)


@pytest.mark.slow
@settings(max_examples=4000)
@given(st.data())
def test_the_law_holds_whatever_is_full_or_down_at_length(tmp_path_factory: Any, data: Any) -> None:
    others_are_balanced(data, data.draw(recordings()), data.draw(networks()), tmp_path_factory.mktemp("drawn"))
