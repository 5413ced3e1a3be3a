"""`coverlay init`: what it writes runs as it is, says what every key means, and replaces nothing unasked."""

from __future__ import annotations

import re

import pytest

import covering
from sim.cli.main import main
from sim.experiment import start
from sim.experiment.plan import load
from sim.experiment.sweep import run_sweep

SMALL = ["--brokers", "4", "--subscriptions", "30", "--events", "10"]
SUBSCRIPTIONS = 'text,broker\n"price <= 20 and issue = ""MSFT""",hub\nprice <= 50,leaf\n'
EVENTS = "price,issue\n12.5,MSFT\n70,IBM\n"
OVERLAY = 'graph [ node [ id 0 label "hub" ] node [ id 1 label "leaf" ] edge [ source 0 target 1 ] ]'


def uncommented(text):
    """The file with every default that is shown as a comment taken into use."""
    return re.sub(r"^# (\w[\w.]* = (?!…))", r"\1", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--overlay", "star", "--strategy", "merging"],
        ["--overlay", "waxman", "--epsilon", "0.2"],
        ["--workload", "stocks", "--set", "arrivals.kind=churn", "--set", "matching.k=3"],
        ["--set", 'broker.service={kind="constant", value=0.1}', "--set", "broker.queue=50"],
        ["--set", 'sweep."routing.strategy"=["simple", "covering"]'],
    ],
)
def test_what_it_writes_runs_and_every_shown_default_can_be_taken_into_use(flags, tmp_path):
    file = tmp_path / "mine.toml"
    assert main(["init", *SMALL, *flags, "--out", str(file)]) == 0
    made = load(str(file), {"seeds": [1]})
    assert (made.name, made.notes) == ("mine", ())
    result = run_sweep(made, tmp_path / "out")
    assert result.outcomes
    assert not result.failures
    assert not result.wrong
    whole = tmp_path / "whole.toml"
    whole.write_text(uncommented(file.read_text()))
    assert whole.read_text() != file.read_text()
    assert load(str(whole)).notes == ()


def test_own_files_are_named_as_seen_from_the_experiment_and_give_a_schema(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "experiments").mkdir()
    for name, text in (("subs.csv", SUBSCRIPTIONS), ("events.csv", EVENTS), ("net.gml", OVERLAY)):
        (tmp_path / "data" / name).write_text(text)
    monkeypatch.chdir(tmp_path / "data")
    flags = ["--overlay", "net.gml", "--subscriptions", "subs.csv", "--events", "events.csv"]
    assert main(["init", *flags, "--out", "../experiments/mine.toml"]) == 0
    monkeypatch.chdir(tmp_path)
    made = load("experiments/mine.toml")
    schema = made.runs[0].experiment.schema_
    assert schema["price"] == {"kind": "continuous", "low": 12.5, "high": 70.0}
    assert schema["issue"] == {"kind": "categorical", "categories": ["IBM", "MSFT"]}
    result = run_sweep(made, tmp_path / "out")
    assert [outcome.record["deliveries"] for outcome in result.outcomes] == [2, 2, 2]
    text = (tmp_path / "experiments" / "mine.toml").read_text()
    assert "brokers =" not in text, "has no effect beside a file"
    assert "# width =" not in text, "nor have options of workloads that are generated"


def test_what_was_asked_for_is_written_although_the_first_run_does_not_use_it(tmp_path):
    swept = 'sweep."routing.strategy"=["simple", "covering"]'
    assert main(["init", "--epsilon", "0.1", "--set", swept, "--out", str(tmp_path / "mine.toml")]) == 0
    assert {run.experiment.covering.epsilon for run in load(str(tmp_path / "mine.toml")).runs} == {0.0, 0.1}


def test_a_file_that_is_there_stays_unless_forced(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text("precious")
    assert main(["init", *SMALL, "--out", str(file)]) == 2
    assert "exists already; --force" in capsys.readouterr().err
    assert file.read_text() == "precious"
    assert main(["init", *SMALL, "--out", str(file), "--force"]) == 0
    assert load(str(file)).name == "mine"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--overlay", "starr"], "--overlay 'starr' is not a file or one of the kinds "),
        (["--brokers", "five"], "--brokers is 'five'; it must be a whole number"),
        (["--events", "none.csv"], "--events 'none.csv' is not a file or a whole number"),
        (["--strategy", "covring"], "unknown routing strategy 'covring'"),
        (["--epsilon", "2"], "covering.epsilon"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(flags, said, tmp_path, capsys):
    assert main(["init", *flags, "--out", str(tmp_path / "mine.toml")]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_questions_are_asked_for_what_was_not_given_and_an_empty_answer_takes_the_default():
    heard = []

    def answer(question, default):
        heard.append(default)
        return "net.gml" if question.startswith("overlay") else ""

    assert start.asked({"events": "7"}, answer)["events"] == "7"
    assert heard == ["random-tree", "1000", "covering"], "a file has its own brokers"
    assert covering.METHODS[start.SEARCHES_WITH_EPSILON].takes_epsilon
