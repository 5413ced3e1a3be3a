"""Hostile and mistaken input: one sentence that names the value, exit status 2, no traceback."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest

from coverlay import CoverlayError
from sim.cli import looking
from sim.cli.main import main

# A tiny experiment; every case below spoils one thing in it.
TINY = """
name = "tiny"
[overlay]
kind = "line"
brokers = 3
[workload]
kind = "uniform"
attributes = 2
subscriptions = 5
events = 3
[covering]
method = "zorder"
"""

# (what is spoilt, text added or --set given, what the sentence must mention)
BAD_SETTINGS = [
    ("negative ε", "covering.epsilon=-0.1", "-0.1"),
    ("ε of one", "covering.epsilon=1.0", "1.0"),
    ("ε that is no number", "covering.epsilon=nan", "nan"),
    ("ε that is a word", "covering.epsilon=small", "small"),
    ("ε for an exact method", ["covering.method=scan", "covering.epsilon=0.1"], "scan"),
    ("unknown covering method", "covering.method=magic", "magic"),
    ("unknown covering option", "covering.colour=3", "colour"),
    ("unknown strategy", "routing.strategy=telepathy", "telepathy"),
    ("unknown mode", "routing.mode=eager", "eager"),
    ("unknown matcher", "matching.method=oracle", "oracle"),
    ("unknown semantics", "matching.semantics=fuzzy", "fuzzy"),
    ("k of zero", "matching.k=0", "0"),
    ("negative k", "matching.k=-3", "-3"),
    ("unknown overlay kind", "overlay.kind=moebius", "moebius"),
    ("option of another overlay kind", "overlay.branching=3", "branching"),
    ("no brokers", "overlay.brokers=0", "0"),
    ("a fraction of a broker", "overlay.brokers=2.5", "2.5"),
    ("unknown latency model", "overlay.latency={kind='teleport'}", "teleport"),
    ("latency option of another model", "overlay.latency={kind='constant', low=1.0}", "low"),
    ("latency low above high", "overlay.latency={kind='uniform', low=5.0, high=1.0}", "5"),
    ("negative latency", "overlay.latency={kind='constant', value=-1.0}", "-1"),
    ("overlay file that is not there", "overlay.file=nowhere.graphml", "nowhere.graphml"),
    ("unknown workload", "workload.kind=fractal", "fractal"),
    ("unknown workload option", "workload.flavour=1", "flavour"),
    ("negative number of subscriptions", "workload.subscriptions=-1", "-1"),
    ("no attributes", "workload.attributes=0", "0"),
    ("subscriptions file that is not there", "workload.subscriptions_file=nowhere.csv", "nowhere.csv"),
    ("unknown arrival process", "arrivals.kind=rush-hour", "rush-hour"),
    ("unknown section", "colours.red=1", "colours"),
    ("unknown key", "routing.speed=1", "speed"),
    ("more brokers than fit", f"overlay.brokers={10**20}", "overlay.brokers"),
    ("more subscriptions than fit", f"workload.subscriptions={10**20}", "workload.subscriptions"),
    ("more attributes than fit", f"workload.attributes={10**20}", "workload.attributes"),
    ("a seed beyond 64 bits", f"seeds=[{10**30}]", "seeds.0"),
    ("a third of a million seeds", f"seeds={list(range(300_000))}", "300,000 runs; at most 100,000"),
    ("a number of thousands of digits", f"overlay.latency={{kind='constant', value=1{'0' * 400}}}", "0…; it must be"),
    ("a bracket three thousand times", f"seeds={'[' * 3000}", "seeds"),
    ("k that is no whole number", "matching.k=2.5", "2.5"),
    ("k that is a text", "matching.k='3'", "'3'"),
    ("a misspelt key beside options", "overlay.broker=3", "did you mean 'brokers'?"),
    ("a misspelt key", "routing.strateg=simple", "did you mean 'strategy'?"),
    ("a misspelt section", "overlays.kind=line", "did you mean 'overlay'?"),
    ("a number beyond all numbers", "links.jitter=1e309", "inf"),
    ("no seeds", "seeds=[]", "seeds"),
    ("repeated seeds", "seeds=[1, 1]", "[1, 1]"),
    ("negative seed", "seeds=[-1]", "-1"),
    ("seed that is a word", "seeds=['a']", "seeds"),
    ("unknown engine", "run.engine=warp", "warp"),
    ("negative bandwidth", "links.bandwidth=-1.0", "-1"),
    ("infinite jitter", "links.jitter=inf", "inf"),
    ("queue without service time", "broker.queue=5", "service"),
    ("unknown service model", "broker.service={kind='psychic'}", "psychic"),
    ("sweep that is no list", "sweep.covering.epsilon=0.1", "sweep"),
    ("sweep of an unknown key", "sweep.routing.speed=[1]", "speed"),
    ("sweep of a bad value", "sweep.covering.epsilon=[0.1, -0.1]", "-0.1"),
    ("sweep of the name", "sweep.name=['a']", "name"),
    ("a latency that is no table", "overlay.latency=5", "overlay.latency = 5: it should be a table of keys"),
    ("a list that is none", "seeds=1", "seeds = 1: it should be a list"),
    ("a name of no letters", "name=''", "name = '': it should not be empty"),
    (
        "a profile that is not there",
        "broker.service={kind='work', profile='mine'}",
        "tiny.toml: unknown profile 'mine'",
    ),
    ("setting without a value", "covering.epsilon", "key=value"),
    ("setting inside a value", "overlay.kind.deep=1", "kind"),
]


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def assert_one_sentence(status, capsys, mentions):
    captured = capsys.readouterr()
    assert status == 2
    assert "Traceback" not in captured.err
    assert captured.err.startswith("coverlay: ") or "run failed" in captured.err
    assert mentions in captured.err, captured.err


@pytest.mark.parametrize(("setting", "mentions"), [case[1:] for case in BAD_SETTINGS], ids=[c[0] for c in BAD_SETTINGS])
def test_bad_settings(setting, mentions, tiny, tmp_path, capsys):
    settings = [setting] if isinstance(setting, str) else setting
    arguments = [word for one in settings for word in ("--set", one)]
    status = main(["run", str(tiny), "--out", str(tmp_path / "out"), "--jobs", "1", *arguments])
    assert_one_sentence(status, capsys, mentions)


def test_all_mistakes_are_reported_at_once(tiny, tmp_path, capsys):
    settings = ["covering.epsilon=-1", "routing.strategy=telepathy", "overlay.brokers=0"]
    arguments = [word for one in settings for word in ("--set", one)]
    assert main(["run", str(tiny), "--out", str(tmp_path / "out"), *arguments]) == 2
    error = capsys.readouterr().err
    assert all(part in error for part in ("covering", "-1", "routing.strategy", "telepathy", "overlay.brokers"))


@pytest.mark.parametrize(
    ("content", "mentions"),
    [
        (b"name = ", "not a TOML file"),
        (b"\xff\xfe\x00", "not a TOML file: it is not UTF-8 text"),
        (b"name = 3", "name"),
        (b'name = "a"\n[overlay]\nkind = 4', "overlay.kind"),
        (b'name = "a"\noverlay = 3', "overlay"),
        (b"a = " + b"[" * 3000 + b"]" * 3000, "nested too deeply"),
        (b"seeds = [1" + b"0" * 5000 + b"]", "not a TOML file"),
        (b'name = "a"\n[sweep]\n"covering.epsilon" = []', "sweep"),
    ],
)
def test_bad_files(content, mentions, tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    assert_one_sentence(main(["run", str(path), "--out", str(tmp_path / "out")]), capsys, mentions)


@pytest.mark.parametrize(
    ("arguments", "mentions"),
    [
        (["run", "no-such-experiment"], "no-such-experiment"),
        (["analyze", "no-such-folder"], "no-such-folder"),
        (["report", "no-such-folder"], "there is no folder no-such-folder"),
        (["explain", "no-such-folder", "--event", "1"], "no-such-folder"),
        (["reproduce", "--compare", "none.json"], "none.json cannot be read: No such file or directory"),
        (["calibrate", "--out", "here"], "--out 'here' must end with .toml"),
        (["calibrate", "--out", "/dev/null/here.toml"], "cannot be written: File exists; nothing was measured"),
    ],
)
def test_things_that_are_not_there(arguments, mentions, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_one_sentence(main(arguments), capsys, mentions)


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["run"],
        ["run", "demo", "--jobs", "0"],
        ["run", "demo", "--jobs", "x"],
        ["list", "planets"],
        ["explain", "somewhere", "--event", "x"],
        ["bench", "everything"],
        ["reproduce", "nature24"],
    ],
)
def test_bad_command_lines(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


LONG = "x" * 100_000


@pytest.mark.parametrize(
    "arguments",
    [
        [LONG],
        ["list", LONG],
        ["run", LONG],
        ["analyze", LONG],
        ["init", "--out", LONG],
        ["run", "demo", "--jobs", LONG],
        ["run", "demo", "--set", f"{LONG}=1"],
        ["run", "demo", "--set", f"overlay.file={LONG}"],
        ["run", "demo", "--set", f"matching.{LONG}=1"],
        ["run", "demo", "--set", f"sweep.{LONG}=[1]"],
        ["run", "demo", "--set", f"covering.epsilon_per_link={{ '{LONG}' = 0.1 }}"],
        ["reproduce", "vldb08", "--figures", LONG],
    ],
    ids=lambda arguments: " ".join(word[:20] for word in arguments),
)
def test_a_name_of_any_length_gets_a_short_message(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with suppress(SystemExit):
        assert main(arguments) == 2
    told = capsys.readouterr()
    assert 30 < len(told.err + told.out) < 2000
    assert "Traceback" not in told.err


def test_a_message_of_many_words_is_cut_too():
    said = str(CoverlayError("names " * 100_000))
    assert len(said) < 6000
    assert str(CoverlayError(f"{LONG}.gml; it must end in .csv")).endswith("xxx.gml; it must end in .csv")


def test_the_installed_command_prints_no_traceback(tiny, tmp_path):
    """The same through a real process, where a forgotten traceback would show."""
    command = [sys.executable, "-m", "sim.cli.main", "run", str(tiny), "--set", "covering.epsilon=-1"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_command_that_is_stopped_says_what_is_left(tiny, tmp_path, monkeypatch, capsys):
    def stop(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sim.cli.verbs._begin", stop)
    out = tmp_path / "out"
    for finished, said in ((False, "nothing was finished"), (True, "finished runs are kept, --resume goes on")):
        if finished:
            (out / "runs" / "run=s1-0").mkdir(parents=True)
        assert main(["run", str(tiny), "--out", str(out)]) == 130
        assert f"coverlay: stopped; {said}" in capsys.readouterr().err


def test_an_interrupt_that_meets_a_kernel_is_an_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def called_at_this_moment(options: Any) -> int:
        raise SystemError("CPUDispatcher returned a result with an exception set") from cause

    monkeypatch.setattr(looking, "verify", called_at_this_moment)
    cause: BaseException = KeyboardInterrupt()
    assert main(["verify", "out"]) == 130
    assert capsys.readouterr().err == "coverlay: stopped; nothing was changed\n"
    cause = ValueError()
    with pytest.raises(SystemError):
        main(["verify", "out"])
