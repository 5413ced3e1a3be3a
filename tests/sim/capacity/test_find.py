"""`coverlay capacity` on small networks: the rate that theory says, rows per setting, resuming, and refusals."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.report.effects import Effects
from analysis.report.factors import factors_of
from analysis.report.rates import Compared, in_words, rate_sentences, titles
from analysis.report.told import Held, Rates
from analysis.spark.traces import open_run, run_folders
from broker.trace.buckets import WORK_UNIT
from broker.trace.schema import CLIENT, MUST_BE_ZERO
from coverlay import CoverlayError
from sim.capacity import find as finding
from sim.capacity.find import RATE, at_rates, find, prepare
from sim.capacity.load import Load, load_of
from sim.capacity.search import NARROW
from sim.capacity.sentences import rates, sentence
from sim.cli.main import main
from sim.experiment.plan import plan
from sim.experiment.runner import execute
from sim.experiment.sweep import SweepOptions
from sim.experiment.toml_text import to_toml
from tests.analysis.report.rates_checker import complaints, wrong_sentences

SERVED = 0.5  # ms per message
TINY: dict[str, Any] = {
    "name": "tiny",
    "overlay": {"kind": "line", "brokers": 3, "latency": {"kind": "constant", "value": 2.0}},
    "workload": {"kind": "uniform", "attributes": 1, "subscriptions": 20, "events": 300},
    "arrivals": {"kind": "preloaded"},
    "broker": {"service": {"kind": "constant", "value": SERVED}},
    "routing": {"strategy": "flooding"},  # every broker serves every event once
}
EVENTS = "workload.events=300"  # as given, not as many as people would need


def file(folder: Path, **sections: Any) -> str:
    path = folder / "mine.toml"
    path.write_text(to_toml({**TINY, **sections}))
    return str(path)


def search(folder: Path, limit: float = 500.0, resume: bool = False, settings: tuple[str, ...] = (), **sections: Any):
    return find(
        prepare(file(folder, **sections), [EVENTS, *settings]), limit, folder / "out", SweepOptions(resume=resume)
    )


@pytest.mark.spark
def test_every_rate_that_is_said_is_in_the_results(java: None, tmp_path: Path) -> None:
    """Four settings with two seeds, recomputed from the file that users read; wrong numbers and words are noticed."""
    from analysis.aggregate import analyze

    swept = {"broker.service.value": [0.5, 0.2], "routing.strategy": ["simple", "covering"]}
    found = search(tmp_path, limit=6.0, seeds=[1, 2], sweep=swept)
    held = Held(6.0, tuple(rates(found.searches)), 2)
    summary = analyze(tmp_path / "out", "local[2]")
    runs = pd.read_csv(tmp_path / "out" / "results" / "run_metrics.csv")
    assert len(held.found) == 4
    assert all(of.holds and of.fails for of in held.found)
    assert complaints(runs, held) == []
    for column in ("latency_p50", "latency_p99"):
        assert complaints(runs.assign(**{column: 1.3 * runs[column]}), held)
    said = held.found[0]
    other = next(of for of in held.found if of.text != said.text)
    for wrong in (replace(said, holds=said.fails), replace(said, fails=None), replace(said, text=other.text)):
        assert complaints(runs, replace(held, found=(wrong,)))
    effects = Effects(summary, factors_of(summary, apart=(RATE,)))
    sentences = rate_sentences(effects, held)
    assert wrong_sentences(runs, sentences, 6.0) == []
    assert titles(effects, held)[0].startswith("simple routing, ")
    assert str(sentences[0]).startswith("With simple routing, value 0.5 and covering, value 0.5, equally: ")
    assert "Covering against simple routing: highest rate held equal in 2 of 2." in map(str, sentences)
    assert "each of 2 seeds holds it" in str(sentences[-1])
    for right, mistaken in (("equal in 2", "equal in 1"), (" %", ".5 %"), ("of 2 seeds", "of 3 seeds")):
        changed = [replace(s, text=str(s).replace(right, mistaken)) for s in sentences]
        assert wrong_sentences(runs, changed, 6.0), right


def test_a_difference_that_the_search_leaves_open_is_not_told() -> None:
    """Both hold 100; one fails at 102, the other holds 101."""
    base, close, far = (
        Rates("", "{}", holds, fails, 1.02 * holds, ())
        for holds, fails in ((100.0, 102.0), (101.0, 103.0), (80.0, 82.0))
    )
    pairs = [Compared(base, level, where) for level, where in ((base, "star"), (close, "line"), (far, "tree"))]
    assert [(pair.equal, pair.open) for pair in pairs] == [(True, True), (False, True), (False, False)]
    assert [in_words([pair]) for pair in pairs] == [
        "equal, 102 events/s",
        "102 → 103 events/s, not told apart by the rates that were tried",
        "102 → 81.6 events/s (−20.0 %)",
    ]
    assert in_words(pairs) == "−20.0 % (tree), equal in 1 of 3, not told apart by the rates tried in 1 of 3"


def full_at(folder: Path) -> float:
    """The rate at which serving every event takes all the time; what was drawn comes a little faster or slower."""
    run = open_run(run_folders(folder / "out")[0])
    published = np.unique(run.read("publications").column("published").to_numpy())
    drawn = len(published) / np.ptp(published) / run.point[RATE]
    return float(1000 / SERVED / drawn)


def test_one_server_holds_what_its_service_time_allows(tmp_path: Path) -> None:
    found = search(tmp_path)
    (only,) = found.searches.values()
    assert only.rate is not None
    assert only.too_high is not None
    full = full_at(tmp_path)
    assert only.rate < full <= only.too_high
    assert only.too_high < only.rate * (1 + 2 * NARROW)
    assert (
        "of the time, so that its queue grows as long as events come. b0 saturates first, at 2,000 events/s"
        in sentence(only)
    )
    for folder in run_folders(tmp_path / "out"):
        record = open_run(folder).record
        assert not any(record[name] for name in MUST_BE_ZERO), "the oracle judges these runs as any other"
    lower = search(tmp_path, limit=9.0, resume=True)
    (strict,) = lower.searches.values()
    assert strict.rate is not None
    assert strict.rate < only.rate / 1.05, "a limit of the latency may be met before a queue is full"
    assert max(load.p99 for load in strict.found[strict.rate]) < 9.0
    assert lower.result.kept >= 5, "rates that were simulated are not simulated again"


def test_a_search_asks_the_same_rates_again_and_repeats_them_only_without_resume(tmp_path: Path) -> None:
    first = search(tmp_path)
    written = {path.name: path.stat().st_mtime_ns for path in run_folders(tmp_path / "out")}
    again = search(tmp_path, resume=True)
    assert not again.result.outcomes
    assert {path.name: path.stat().st_mtime_ns for path in run_folders(tmp_path / "out")} == written
    assert [s.found for s in again.searches.values()] == [s.found for s in first.searches.values()]
    anew = search(tmp_path)
    assert len(anew.result.outcomes) == len(written)
    with pytest.raises(CoverlayError, match="runs of another experiment"):
        search(tmp_path, settings=("overlay.brokers=4",))


def test_each_setting_of_a_sweep_has_its_own_rate(tmp_path: Path) -> None:
    services = [{"kind": "constant", "value": value} for value in (SERVED, 2 * SERVED)]
    found = search(tmp_path, sweep={"broker.service": services, RATE: [7.0]})
    assert any("the rates of the experiment do not count" in note for note in found.plan.notes)
    fast, slow = (search.rate for search in found.searches.values())
    assert fast == pytest.approx(2 * slow, rel=0.05)
    asked = {(json.dumps(run.point["broker.service"]), run.point[RATE]) for run in found.plan.runs}
    assert len(asked) == sum(len(search.found) for search in found.searches.values()), "no rate of the other setting"


@pytest.mark.parametrize("queue", [{"queue": 3, "overflow": "drop"}, {"queue": 3, "overflow": "hold"}])
def test_a_network_that_loses_events_does_not_hold_the_rate(tmp_path: Path, queue: dict[str, Any]) -> None:
    (only,) = search(tmp_path, broker={**TINY["broker"], **queue}).searches.values()
    assert only.rate is not None
    full = full_at(tmp_path)
    assert (only.rate < 0.9 * full) is (queue["overflow"] == "drop")
    assert ("find a queue full" in sentence(only)) is (queue["overflow"] == "drop")


def test_a_narrow_link_has_a_queue_too(tmp_path: Path) -> None:
    (only,) = search(tmp_path, links={"bandwidth": 50.0}, broker={"service": {"kind": "none"}}).searches.values()
    assert "the link from b" in sentence(only)
    assert only.rate == pytest.approx(50.0 / 40 * 1000 * 3 / 2, rel=0.2), "40 bytes each; two of three events cross it"


def storm(folder: Path, **sections: Any) -> tuple[Load, Any, list[Any], list[Any]]:
    """A run's load, its trace, the hops of its events, and the control messages that were sent meanwhile."""
    (run,) = plan({**TINY, "arrivals": {"kind": "storm", "publish_rate": 2.0}, **sections}).runs
    execute(run, folder)
    (own,) = run_folders(folder)
    trace = open_run(own)
    events = trace.read("publications").to_pylist()
    times = [row["published"] for row in events]
    control = [row for row in trace.read("control").to_pylist() if min(times) <= row["sent"] <= max(times)]
    assert control, "the storm comes while events are published"
    return load_of(own, 1), trace, events, control


def test_subscriptions_that_come_meanwhile_occupy_links_too(tmp_path: Path) -> None:
    spread = {"routing": {"strategy": "simple"}, "broker": {"service": {"kind": "none"}}}
    found, _, events, control = storm(tmp_path, links={"bandwidth": 20.0}, **spread)
    times = [row["published"] for row in events]
    occupied: Counter[tuple[int, int]] = Counter()
    for rows, size in ((events, lambda row: 32 + 8), (control, lambda row: 32 + 16 * (row["kind"] == "subscribe"))):
        for row in rows:
            if row["source"] != CLIENT:
                occupied[row["source"], row["target"]] += size(row)
    (link, most), *_ = occupied.most_common()
    assert found.load == pytest.approx(most / 20.0 / (max(times) - min(times)))
    assert found.where == f"the link from b{link[0]} to b{link[1]}"


@pytest.mark.parametrize("matching", [{}, {"k": 3, "scope": "network"}], ids=["broker", "network"])
def test_the_load_is_what_a_slow_count_says(tmp_path: Path, matching: dict[str, Any]) -> None:
    found, trace, events, control = storm(tmp_path, broker={"service": {"kind": "work"}}, matching=matching)
    times = [row["published"] for row in events]
    replies = [row for row in trace.read("ranked").to_pylist() if not row["carries"]]
    assert bool(replies) is bool(matching), "answers and awards take their time too"
    messages = [*events, *replies, *control]
    busy = [sum(row["service"] for row in messages if row["target"] == broker) for broker in range(3)]
    worst = busy.index(max(busy))
    # Every message counts in whole units, half a unit off at most.
    rounding = WORK_UNIT / 2 * len(messages)
    period = max(times) - min(times)
    assert found.load == pytest.approx(max(busy) / period, abs=rounding / period)
    assert found.where == f"b{worst}"
    on_tables = sum(row["on_tables"] for row in events if row["target"] == worst)
    assert found.shares["tables"] == pytest.approx(on_tables / max(busy), rel=1e-3)
    assert sum(found.shares.values()) == pytest.approx(1.0)
    ordered = sorted(row["latency"] for row in trace.read("deliveries").to_pylist())
    assert found.p99 == pytest.approx(ordered[-(-99 * len(ordered) // 100) - 1], rel=0.004)


@pytest.mark.spark
def test_the_page_has_the_curve_and_spark_the_same_numbers(tmp_path: Path, spark: Any, capsys: Any) -> None:
    import pandas as pd

    out = tmp_path / "out"
    assert main(["capacity", file(tmp_path), "--p99", "12", "--set", EVENTS, "--jobs", "1", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "events/s are held" in said
    frame = pd.read_parquet(out / "results" / "run_metrics.parquet").set_index("run")
    for folder in run_folders(out):
        load, row = load_of(folder, 1), frame.loc[folder.name.removeprefix("run=")]
        assert (load.p50, load.p99) == (row["latency_p50"], row["latency_p99"])
        assert load.load == row["event_load"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "How many events per second does the network hold with a 99th percentile below 12 ms?" in page
    assert '"kind":"curve"' in page


# ── refusals: one sentence, status 2 ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sections", "limit", "words"),
    [
        ({"broker": {}}, "100", 'set broker.service = { kind = "work" }'),
        ({}, "3", "--p99 3 is not above the latency of this network when it has nothing to do: at 1 event/s"),
        ({"broker": {"service": {"kind": "constant", "value": 3e3}}}, "100", "no rate is held: even at 1 event/s b0"),
        ({"broker": {"service": {"kind": "constant", "value": 0.0}}}, "100", "no limit was found up to"),
        ({}, "nan", "--p99 is nan; it must be a number of milliseconds above 0"),
        ({}, "-5", "--p99 is -5"),
        ({}, "0", "--p99 is 0"),
        ({}, "inf", "--p99 is inf"),
        ({"arrivals": {"kind": "churn"}}, "100", "arrivals.kind = 'churn' publishes while subscriptions come and go"),
        ({"workload": {**TINY["workload"], "subscriptions": 0}}, "100", "no event was delivered to anybody"),
        ({"case": [{"sweep": {"arrivals.publish_rate": [1.0]}}]}, "100", "a [[case]] sets arrivals.publish_rate"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    tmp_path: Path, sections: Any, limit: str, words: str, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("analysis.spark.session.start_early", lambda master: None)  # none of these gets that far
    command = ["capacity", file(tmp_path, **sections), f"--p99={limit}", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert main([*command, "--set", EVENTS]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_two_events_at_one_time_are_no_rate(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("a_lo,a_hi\n0,9\n")
    (tmp_path / "e.csv").write_text("a,time\n3,5\n4,5\n")
    files = {"subscriptions_file": "s.csv", "events_file": "e.csv"}
    prepared = prepare(file(tmp_path, workload=files), [])
    with pytest.raises(CoverlayError, match="needs events at different times"):
        find(prepared, 100.0, tmp_path / "out")


def test_what_the_search_changes_is_noted(tmp_path: Path) -> None:
    made = prepare(file(tmp_path), [])
    assert f"{finding.ENOUGH_EVENTS:,} events instead of 300, to see queues grow" in " ".join(made.notes)
    assert {run.experiment.workload.events for run in made.runs} == {finding.ENOUGH_EVENTS}
    (tmp_path / "s.csv").write_text("a_lo,a_hi\n0,9\n")
    (tmp_path / "e.csv").write_text("a,time\n3,5\n4,6\n5,9\n")
    files = {"subscriptions_file": "s.csv", "events_file": "e.csv"}
    made = prepare(file(tmp_path, workload=files), [])
    assert "the recorded times of the events are scaled to each rate" in " ".join(made.notes)
    assert {run.experiment.arrivals.publishing for run in at_rates(made, {("{}", 5.0)}).runs} == {"scaled"}
