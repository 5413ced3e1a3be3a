"""Recorded traces of the user's own: times, departures, changed scores and named brokers are those of the files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coverlay import CoverlayError
from sim.experiment.build import check_files
from sim.experiment.plan import load
from sim.experiment.runner import simulate
from sim.experiment.sweep import SEEDS_ALIKE, run_sweep
from sim.workloads import load_workload

EDGES = "Berlin Prague 2\nPrague Wien 3\n"
SUBSCRIPTIONS = """id,time,until,broker,price_lo,price_hi,score
ann,0,,Wien,0,50,1
bob,0,400,Wien,0,90,2
ann,200,,,,,3
"""
EVENTS = "time,broker,price\n100,Berlin,20\n300,Berlin,20\n500,0,20\n"
FAULTS = "time,kind,broker,neighbour,until\n450,cut,Prague,Wien,600\n"
EXPERIMENT = """
[overlay]
file = "net.edgelist"
[workload]
subscriptions_file = "subs.{ending}"
events_file = "events.{ending}"
[matching]
k = 1
[run]
engine = "{engine}"
"""


def write(folder: Path, engine: str = "simpy", ending: str = "csv") -> Path:
    (folder / "net.edgelist").write_text(EDGES)
    for name, text in (("subs", SUBSCRIPTIONS), ("events", EVENTS)):
        header, *rows = (line.split(",") for line in text.splitlines())
        if ending == "jsonl":
            objects = ({key: cell for key, cell in zip(header, row, strict=True) if cell} for row in rows)
            text = "".join(json.dumps(one) + "\n" for one in objects)
        (folder / f"{name}.{ending}").write_text(text)
    file = folder / "mine.toml"
    file.write_text(EXPERIMENT.format(engine=engine, ending=ending))
    return file


def run(file: Path, **settings):
    plan = load(str(file), settings)
    check_files(plan.runs)
    tables, notes = simulate(plan.runs[0])
    return {name: table.to_pandas() for name, table in tables.items()}, notes


def made(tables) -> list:
    return tables["operations"][["time", "kind", "subscription", "broker"]].to_numpy().tolist()


def served(tables) -> list:
    return tables["deliveries"][["event", "subscription", "score"]].to_numpy().tolist()


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_recorded_trace_is_replayed(tmp_path, engine, ending):
    tables, notes = run(write(tmp_path, engine, ending))
    assert made(tables) == [
        [0.0, "subscribe", 0, 2],
        [0.0, "subscribe", 1, 2],
        [200.0, "subscribe", 2, 2],
        [200.0, "unsubscribe", 0, 2],
        [400.0, "unsubscribe", 1, 2],
    ]
    assert tables["run"].at[0, "attributes"] == 1, "of the file, not the default of what is generated"
    assert served(tables) == [[0, 1, 2.0], [1, 2, 3.0], [2, 2, 3.0]], (
        "bob is better until ann's score rises; then he leaves"
    )
    assert tables["deliveries"]["time"].tolist() == [105.0, 305.0, 505.0]
    assert tables["run"]["missed"][0] == 0
    assert any("1 row changes" in note and "under the same id" in note for note in notes)


def test_faults_call_brokers_by_name(tmp_path):
    (tmp_path / "faults.csv").write_text(FAULTS)
    tables, _ = run(write(tmp_path), **{"faults.file": str(tmp_path / "faults.csv")})
    failed = tables["faults"].query("kind == 'cut'").iloc[0]
    assert (failed.broker, failed.neighbour) == (1, 2)
    assert tables["run"]["missed_fault"][0] == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "subs.csv",
            "bob,0,400,Wien",
            "bob,0,400,Vienna",
            "subs.csv, line 3, column broker: there is no broker 'Vienna'",
        ),
        ("subs.csv", "bob,0,400", "bob,500,400", "subs.csv, line 3, column until: 400 is not after time, 500"),
        ("subs.csv", "bob,0,400", "bob,soon,400", "subs.csv, line 3, column time: 'soon' is not a number"),
        ("subs.csv", "bob,0", "ann,0", "subs.csv, line 3, column id: 'ann' is the id of line 2 already, at that time"),
        ("subs.csv", "id,time,", "id,tempo,", "until"),
        ("events.csv", "300,Berlin", "300,Bern", "events.csv, line 3, column broker: there is no broker 'Bern'"),
        ("events.csv", "300,Berlin", "-1,Berlin", "events.csv, line 3, column time: '-1' must not be negative"),
    ],
)
def test_bad_rows_are_named_by_file_line_and_value(tmp_path, file, old, new, message):
    mine = write(tmp_path)
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new))
    with pytest.raises(CoverlayError) as caught:
        run(mine)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"price_lo": 1}\n[1]\n', "line 2: '[1]' is not a JSON object"),
        ('{"price_lo": 1}\n\n{"price_lo": [2]}\n', "line 3: price_lo is [2]; it must be a number, a text or null"),
        ('{"price_lo": 1}\n{"price_lo": "x"}\n', "line 2, column price_lo: 'x' is not a number"),
        ("", "is empty; every line is a JSON object"),
    ],
)
def test_bad_json_lines_are_named(tmp_path, text, message):
    (tmp_path / "subs.jsonl").write_text(text)
    with pytest.raises(CoverlayError) as caught:
        load_workload(str(tmp_path / "subs.jsonl"), None)
    assert message in str(caught.value)


def test_settings_that_times_in_files_make_idle_are_refused(tmp_path):
    with pytest.raises(CoverlayError, match=r"has no effect: .*subs.csv has a column 'time'"):
        load(str(write(tmp_path)), {"arrivals.kind": "churn"})
    with pytest.raises(CoverlayError, match=r"arrivals.settle .* has no effect"):
        load(str(write(tmp_path)), {"arrivals.settle": 5.0})
    (tmp_path / "events.csv").write_text("price\n20\n")
    plan = load(str(write(tmp_path)), {"arrivals.attach": "random"})
    assert len(plan.runs) == 1


def test_events_without_times_follow_when_all_have_come(tmp_path):
    mine = write(tmp_path)
    (tmp_path / "events.csv").write_text("price\n20\n")
    tables, _ = run(mine, **{"arrivals.settle": 50.0})
    assert tables["publications"]["published"].min() > 450.0


@pytest.mark.parametrize("rank", ["none", "cover", "skyband"])
def test_a_changed_score_is_one_request_where_the_network_ranks(tmp_path, rank):
    tables, notes = run(write(tmp_path), **{"matching.scope": "network", "routing.rank": rank})
    assert made(tables) == [
        [0.0, "subscribe", 0, 2],
        [0.0, "subscribe", 1, 2],
        [200.0, "rerank", 0, 2],
        [400.0, "unsubscribe", 1, 2],
    ]
    assert served(tables) == [[0, 1, 2.0], [1, 0, 3.0], [2, 0, 3.0]]
    assert tables["run"][["missed", "spurious", "duplicates"]].to_numpy().tolist() == [[0, 0, 0]]
    assert any("only the rank, which is a single request" in note for note in notes)


def test_one_that_asks_for_more_or_moves_joins_and_leaves_there_too(tmp_path):
    mine = write(tmp_path)
    changes = "ann,200,,Berlin,,,3\nann,300,,,0,60,3\n"
    (tmp_path / "subs.csv").write_text(SUBSCRIPTIONS.replace("ann,200,,,,,3\n", changes))
    tables, _ = run(mine, **{"matching.scope": "network"})
    assert "rerank" not in set(tables["operations"]["kind"])
    assert tables["run"]["missed"][0] == 0


def test_seeds_that_change_nothing_are_told(tmp_path):
    mine = write(tmp_path)
    seeds = {"seeds": [1, 2], "sweep": {"matching.k": [1, 2]}}
    assert SEEDS_ALIKE in run_sweep(load(str(mine), seeds), tmp_path / "recorded").warnings
    (tmp_path / "events.csv").write_text("price,broker\n20,Berlin\n20,Berlin\n")
    assert SEEDS_ALIKE not in run_sweep(load(str(mine), seeds), tmp_path / "drawn").warnings


def test_recorded_events_that_wait_for_untimed_subscriptions_are_told(tmp_path):
    """Times of a file of faults, say, are not those of the file of events then."""
    path = write(tmp_path)
    for subscriptions, told in ((SUBSCRIPTIONS, False), ("price_lo,broker\n0,Wien\n", True)):
        (tmp_path / "subs.csv").write_text(subscriptions)
        _, notes = simulate(load(str(path)).runs[0])
        assert any("not from 0: subscriptions have no times" in note for note in notes) is told
