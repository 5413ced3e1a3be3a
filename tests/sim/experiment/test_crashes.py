"""Crashes at awkward moments: while links are held, and while the k best of the whole network are collected."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.experiment.plan import plan
from sim.experiment.runner import simulate

FAULTS = "time,kind,broker,neighbour,until,state\n"


def simulated(folder: Path | str, subscriptions: str, events: str, faults: str, **sections: Any) -> dict[str, Any]:
    texts = {
        "subscriptions": f"x_lo,x_hi,score,broker,time\n{subscriptions}",
        "events": f"x,broker,time\n{events}",
        "faults": f"{FAULTS}{faults}",
    }
    for name, text in texts.items():
        (Path(folder) / f"{name}.csv").write_text(text)
    data = {
        "name": "crashes",
        "overlay": {"kind": "line", "brokers": 3, "latency": {"kind": "constant", "value": 1.0}},
        "workload": {f"{name}_file": f"{folder}/{name}.csv" for name in ("subscriptions", "events")},
        "faults": {"file": f"{folder}/faults.csv"},
        **sections,
    }
    tables, _ = simulate(plan(data).runs[0])
    return tables


def wrong(tables: dict[str, Any]) -> dict[str, int]:
    (run,) = tables["run"].to_pylist()
    return {name: run[name] for name in ("missed", "duplicates", "spurious", "strays", "wrong_times") if run[name]}


def test_a_broker_that_crashes_serves_nothing_that_was_held_on_its_link(tmp_path: Path) -> None:
    """Event 0 is held on the link while event 1 is served; at 105 both are lost, with the link and the broker."""
    tables = simulated(
        tmp_path,
        "0,9,1,1,0\n",
        "5,0,90\n5,1,100\n",
        "105,crash,1,,200,lost\n",
        overlay={"kind": "line", "brokers": 2, "latency": {"kind": "constant", "value": 1.0}},
        broker={"service": {"kind": "constant", "value": 10}, "queue": 1, "overflow": "hold"},
    )
    assert wrong(tables) == {}
    served = [(r["event"], r["time"]) for r in tables["publications"].to_pylist() if r["target"] == 1]
    assert served == [(1, 100.0)]
    assert tables["deliveries"].num_rows == 0
    lost = sorted((r["event"], r["kind"]) for r in tables["faults"].to_pylist() if r["event"] >= 0)
    assert lost == [(0, "link-down"), (1, "crashed")]


def test_an_event_is_closed_only_when_all_links_of_a_crashed_broker_are_down(tmp_path: Path) -> None:
    """Broker 2 waits for an answer over one link of broker 1 while the other one goes down."""
    tables = simulated(
        tmp_path,
        "0,9,1,0,0\n",
        "5,2,100\n",
        "102.5,crash,1,,,lost\n",
        matching={"scope": "network", "k": 1},
        routing={"rank": "none"},
    )
    assert wrong(tables) == {}


NUMBERS = st.integers(0, 4)
QUARTERS = st.integers(0, 40).map(lambda n: 100 + n / 4)


@pytest.mark.parametrize("rank", ["none", "cover", "skyband"])
@settings(max_examples=25)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(1, 3), NUMBERS), min_size=1, max_size=8),
    st.lists(st.tuples(NUMBERS, NUMBERS, QUARTERS), min_size=1, max_size=5),
    st.lists(
        st.tuples(NUMBERS, QUARTERS, st.sampled_from(["lost", "kept"])),
        min_size=1,
        max_size=3,
        unique_by=lambda f: f[0],
    ),
    st.sampled_from(["line", "star", "random-tree"]),
    st.sampled_from([{}, {"service": {"kind": "constant", "value": 0.5}}]),
    st.booleans(),
)
def test_crashes_while_the_best_of_the_network_are_collected(
    rank: str, asked: Any, published: Any, faults: Any, overlay: str, broker: Any, hold: bool
) -> None:
    if broker and hold:
        broker = {**broker, "queue": 1, "overflow": "hold"}
    with TemporaryDirectory() as folder:
        tables = simulated(
            folder,
            "".join(f"{low},{low + width},{score},{at},0\n" for low, width, score, at in asked),
            "".join(f"{x},{at},{time}\n" for x, at, time in published),
            "".join(f"{time},crash,{at},,{time + 7},{state}\n" for at, time, state in faults),
            overlay={"kind": overlay, "brokers": 5, "latency": {"kind": "constant", "value": 1.0}},
            matching={"scope": "network", "k": 2},
            routing={"rank": rank},
            broker=broker,
        )
    assert wrong(tables) == {}
