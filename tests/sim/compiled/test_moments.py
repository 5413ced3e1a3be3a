"""The rule of one moment (docs/design.md): repairs, failures, requests, then messages in the order of scheduling."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from tests.sim.compiled.both_engines import assert_same, with_engine

SERVICES = (
    {},
    {"service": {"kind": "constant", "value": 1}},
    {"service": {"kind": "constant", "value": 0}, "queue": 1},
)


def recording(
    folder: str, latency: float, subscriptions: str, events: str, faults: str = "", **sections: Any
) -> dict[str, Any]:
    files = {"subscriptions": f"x_lo,x_hi,broker,time,until\n{subscriptions}", "events": f"x,broker,time\n{events}"}
    if faults:
        files["faults"] = f"time,kind,broker,neighbour,until,state\n{faults}"
    for name, text in files.items():
        (Path(folder) / f"{name}.csv").write_text(text)
    return {
        "name": "moments",
        "overlay": {"kind": "line", "brokers": 3, "latency": {"kind": "constant", "value": latency}},
        "workload": {f"{name}_file": f"{folder}/{name}.csv" for name in ("subscriptions", "events")},
        "run": {"samples": 3},
        **({"faults": {"file": f"{folder}/faults.csv"}} if faults else {}),
        **sections,
    }


def test_a_request_precedes_a_message_that_arrives_at_the_same_moment(tmp_path: Path) -> None:
    """Line 0–1–2: the subscription of 2 reaches 0 at 2, when the event is published there: it is on its way."""
    tables = assert_same(plan(recording(str(tmp_path), 1.0, "0,9,2,0,\n", "5,0,2\n")).runs[0])
    publications, control = tables["publications"].to_pylist(), tables["control"].to_pylist()
    assert [row["forwarded"] for row in publications] == [0]
    last = control[-1]
    assert (last["target"], last["time"]) == (0, publications[0]["time"]) == (0, 2.0)
    assert publications[0]["step"] < last["step"]


def test_repairs_precede_failures_and_failures_precede_requests(tmp_path: Path) -> None:
    """At 50, broker 1 is back and the link 1–2 is cut, then an event is published; so is one at 60, when it heals."""
    faults = "40,crash,1,,50,kept\n50,cut,1,2,60,\n"
    data = recording(str(tmp_path), 1.0, "0,9,1,0,\n0,9,2,0,\n", "5,1,50\n6,1,60\n", faults)
    tables, _ = simulate(with_engine(plan(data).runs[0], "simpy"))
    kinds = [(row["time"], row["kind"]) for row in tables["faults"].to_pylist() if row["time"] == 50.0]
    assert kinds == [(50.0, "restart"), (50.0, "cut"), (50.0, "link-down")]
    delivered = {(row["event"], row["subscription"]) for row in tables["deliveries"].to_pylist()}
    assert delivered == {(0, 0), (1, 0), (1, 1)}


def test_a_failure_precedes_the_requests_of_its_moment(tmp_path: Path) -> None:
    data = recording(str(tmp_path), 1.0, "0,9,2,0,\n", "5,1,50\n", "50,crash,1,,60,kept\n")
    tables, _ = simulate(with_engine(plan(data).runs[0], "simpy"))
    assert [row["kind"] for row in tables["faults"].to_pylist()][:2] == ["crash", "publisher-down"]


def test_faults_of_one_moment_keep_the_order_of_the_file(tmp_path: Path) -> None:
    faults = "50,cut,1,2,60,\n50,cut,0,1,60,\n50,crash,0,,60,kept\n"
    tables, _ = simulate(
        with_engine(plan(recording(str(tmp_path), 1.0, "0,9,1,0,\n", "5,1,99\n", faults)).runs[0], "simpy")
    )
    kinds = [(row["kind"], row["broker"], row["neighbour"]) for row in tables["faults"].to_pylist()]
    assert kinds[:3] == [("cut", 1, 2), ("cut", 0, 1), ("crash", 0, -1)]
    assert kinds[3:6] == [("heal", 1, 2), ("heal", 0, 1), ("restart", 0, -1)]


MOMENT = st.integers(0, 6)
SUBSCRIPTIONS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), MOMENT, st.none() | st.integers(1, 4)),
    max_size=8,
)
EVENTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2), MOMENT), max_size=8)


@settings(max_examples=40)
@given(
    SUBSCRIPTIONS,
    EVENTS,
    st.sampled_from([0.0, 1.0, 2.0]),
    st.sampled_from(SERVICES),
    st.sampled_from(["lazy", "active", "prune"]),
)
def test_recordings_in_whole_milliseconds_leave_the_same_trace(
    asked: Any, published: Any, latency: float, broker: Any, mode: str
) -> None:
    rows = [
        f"{low},{low + width},{at},{time},{'' if stays is None else time + stays}\n"
        for low, width, at, time, stays in asked
    ]
    events = [f"{x},{at},{time}\n" for x, at, time in published]
    with TemporaryDirectory() as folder:
        data = recording(
            folder,
            latency,
            "0,9,0,0,\n" + "".join(rows),
            "0,0,0\n" + "".join(events),
            broker=broker,
            routing={"mode": mode},
        )
        assert_same(plan(data).runs[0])


@pytest.mark.parametrize("latency", [0.0, 1.0])
def test_a_sample_is_taken_after_requests_and_before_messages_of_its_moment(tmp_path: Path, latency: float) -> None:
    tables = assert_same(plan(recording(str(tmp_path), latency, "0,9,0,3,\n", "5,2,9\n")).runs[0])
    sizes = {(r["time"], r["broker"], r["neighbour"]): r["entries"] for r in tables["tables"].to_pylist()}
    assert sizes[3.0, 0, -1] == 1
    assert sizes[3.0, 1, 0] == 0
