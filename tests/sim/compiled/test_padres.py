"""Both engines against what a real broker, PADRES, counted: every link, table and delivery (docs/validated.md)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from sim.experiment.plan import plan
from tests.sim.compiled.both_engines import assert_same

FACTS = Path(__file__).parents[2] / "golden" / "padres"
ROUTING = {
    "off": {"strategy": "simple"},
    "lazy": {"strategy": "covering", "mode": "lazy"},
    "active": {"strategy": "covering", "mode": "active"},
}
ENDS = {"phase1": 16_600.0, "phase2": 22_600.0, "end": float("inf")}


def facts(name: str) -> pd.DataFrame:
    return pd.read_csv(FACTS / f"{name}.csv")


def replayed(covering: str) -> dict[str, pa.Table]:
    files = {f"{name}_file": str(FACTS / f"{name}.csv") for name in ("subscriptions", "events")}
    data: dict[str, Any] = {
        "name": "padres",
        "overlay": {"file": str(FACTS / "overlay.edgelist")},
        "workload": files,
        "routing": ROUTING[covering],
    }
    return assert_same(plan(data).runs[0])


def over_links(tables: dict[str, pa.Table]) -> pd.DataFrame:
    """Every message over a link: time, kind, source and target by name."""
    control, events = (tables[name].to_pandas() for name in ("control", "publications"))
    rows = pd.concat([control[["time", "kind", "source", "target"]].astype({"kind": str}), events.assign(kind="event")])
    names = tables["brokers"].to_pandas().set_index("broker").name
    rows = rows[rows.source >= 0]
    return rows.assign(source=rows.source.map(names), target=rows.target.map(names))


@pytest.mark.parametrize("covering", ROUTING)
def test_messages_tables_and_deliveries_are_those_of_padres(covering: str) -> None:
    tables = replayed(covering)
    rows, counted, kept = over_links(tables), facts("messages"), facts("tables")
    for phase, end in ENDS.items():
        seen = rows[rows.time <= end]
        theirs = counted[(counted.covering == covering) & (counted.phase == phase)]
        expected = {(row.kind, row.source, row.target): row.messages for row in theirs.itertuples() if row.messages}
        assert dict(Counter(zip(seen.kind, seen.source, seen.target, strict=True))) == expected, phase
        change = seen.kind.map({"subscribe": 1, "unsubscribe": -1, "event": 0})
        entries = change.groupby([seen.target, seen.source]).sum().to_dict()
        for row in kept[(kept.covering == covering) & (kept.phase == phase)].itertuples():
            assert entries[row.broker, row.neighbour] == row.entries, (phase, row.broker, row.neighbour)
    delivered = tables["deliveries"].to_pandas()
    ours = [(f"s{s}", f"e{e}") for s, e in zip(delivered.subscription, delivered.event, strict=True)]
    assert sorted(ours) == sorted(facts("deliveries").itertuples(index=False, name=None))


def test_an_open_bound_stays_open_also_where_values_are_not_whole(tmp_path: Path) -> None:
    """PADRES stores x > 10 as x ≥ 11 and loses the second event."""
    (tmp_path / "subscriptions.csv").write_text("text,broker,time\nx > 10,1,0\n")
    (tmp_path / "events.csv").write_text("x,broker,time\n10,0,100\n10.2,0,101\n11,0,102\n")
    data: dict[str, Any] = {
        "name": "open",
        "overlay": {"kind": "line", "brokers": 2},
        "schema": {"x": {"kind": "continuous", "low": 0, "high": 100}},
        "workload": {f"{name}_file": str(tmp_path / f"{name}.csv") for name in ("subscriptions", "events")},
    }
    assert assert_same(plan(data).runs[0])["deliveries"].column("event").to_pylist() == [1, 2]
