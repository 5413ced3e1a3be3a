"""Every command that README, docs, CONTRIBUTING and `--help` print is run, and every shipped experiment, all small.

A command that none of the functions here knows how to run fails: whoever writes it down says how it is tested.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sim.bench.engine_speed  # noqa: F401  before `_reader` cuts what is loaded: it is measured as it is
from sim.bench import BENCHMARKS
from sim.cli.main import main, parser
from sim.experiment import plan as plans
from sim.experiment.plan import Plan, parse_setting, shipped
from sim.reproduce import DOCUMENTS
from sim.reproduce.ledger import import_module
from sim.reproduce.sheet import Sheet
from tests.docs.test_docs import COMMANDS, ROOT

MOST_RUNS = 3  # of a sweep, spread over its points
SMALL = {"overlay.brokers": 8, "workload.subscriptions": 50, "workload.events": 40, "seeds": [1]}
GIVEN = re.compile(r"`([\w-]+\.(?:gml|toml|csv))`[^\n]*:\n\n((?: {4}[^\n]*\n|\n(?= {4}))+)")  # a file and its lines
SERVICE = '[broker]\nservice = { kind = "constant", value = 0.5 }\n'  # without it there is no capacity to find


def _examples() -> list[str]:
    """The examples of `coverlay VERB --help`."""
    (verbs,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    printed = "\n".join(verb.epilog for verb in verbs.choices.values())
    return [line.strip() for line in printed.splitlines() if line.startswith("  coverlay")]


EVERY = {*COMMANDS, *_examples(), *(f"coverlay run {name}" for name in shipped())}
LONG = {"coverlay run epsilon-full"}  # its plan of 3,534 runs alone takes a minute to check
LISTED = [pytest.param(command, marks=pytest.mark.slow) if command in LONG else command for command in sorted(EVERY)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a reader of the documents would be: with the files that they print."""
    place = tmp_path_factory.mktemp("reader")
    for page in (ROOT / "README.md", ROOT / "docs" / "questions.md"):
        for name, lines in GIVEN.findall(page.read_text(encoding="utf-8")):
            if not lines.startswith("    coverlay"):  # what to do with it
                (place / name).write_text(re.sub("^ {4}", "", lines, flags=re.MULTILINE))
    with (place / "mine.toml").open("a") as mine:
        mine.write(SERVICE)
    shutil.copytree(ROOT / "docs", place / "docs")
    return place


def small(
    load: Callable[..., Plan],
    name: str,
    settings: Iterable[str] | Mapping[str, Any] = (),
    plugins: Sequence[str] = (),
) -> Plan:
    """A plan with a few of its runs, each small; sizes that come from files stay."""
    given = dict(settings) if isinstance(settings, Mapping) else dict(map(parse_setting, settings))
    first = load(name, given, plugins).runs[0].experiment
    cut = {key: value for key, value in SMALL.items() if key != "overlay.brokers" or first.overlay.file is None}
    made = load(name, {**given, **cut}, plugins)
    return replace(made, runs=made.runs[:: -(-len(made.runs) // MOST_RUNS)])


@pytest.fixture(autouse=True)
def _reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # runs are made here: other processes would import everything
    load = plans.load
    monkeypatch.setattr(plans, "load", lambda *given: small(load, *given))


def _run(words: list[str]) -> None:
    assert main(words) == 0


def _simulate(words: list[str]) -> None:
    """Into a folder of its own, unless it is to be resumed: other settings make another experiment."""
    options = parser().parse_args(words)
    out = options.out or Path("out") / f"{Path(options.experiment).stem}{'-capacity' * (options.verb == 'capacity')}"
    if not options.resume:
        shutil.rmtree(out, ignore_errors=True)
    _run(words)
    assert (out / "report.html").exists()


def _look(words: list[str]) -> None:
    """Into the folder of an experiment, which is run first."""
    out = Path(words[1])
    if not out.exists():
        own = f"{out.name}.toml"
        _simulate(["run", own if Path(own).exists() else out.name])
    _run(words)


def _init(words: list[str]) -> None:
    """Among the reader's files, in a folder in which nothing was written before."""
    place = Path("init")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    os.chdir(place)
    edge = '<node id="a"/><node id="b"/><edge source="a" target="b"/>'
    Path("net.graphml").write_text(f'<graphml><graph edgedefault="undirected">{edge}</graph></graphml>')
    Path("subs.csv").write_text("price_lo,price_hi\n0,50\n")
    Path("events.csv").write_text("price\n20\n")
    _run(words)


def _reproduce(words: list[str]) -> None:
    """Figures are run in tests/sim/reproduce/test_documents.py; here, that those asked for exist."""
    options = parser().parse_args(words)
    if options.document is None:
        _run([*words, "--out", "reproduced"])
        return
    for document in DOCUMENTS if options.document == "all" else [options.document]:
        steps = import_module(DOCUMENTS[document]).steps(Sheet(document, Path("reproduced"), print, quick=True))
        assert set((options.figures or next(iter(steps))).split(",")) <= set(steps)


def _bench(words: list[str]) -> None:
    """Measuring takes minutes (test_bench_and_calibrate_measure); here, that there is something to measure."""
    family = parser().parse_args(words).family
    assert family == "all" or callable(import_module(BENCHMARKS[family]).run)


def _calibrate(words: list[str]) -> None:
    assert parser().parse_args(words).verb == "calibrate"


def _parse(words: list[str]) -> None:
    parser().parse_args(words)


# What cannot run here: it needs a cluster, a file of a script or the reader, or more runs than are made here.
# sim/experiment/test_cluster.py, sim/test_plugins.py, sim/network and analysis/report have tests of these.
ELSEWHERE = ("spark://", "--plugin", "mine/experiment.toml", "report out/epsilon", "--by")


def _compare(words: list[str]) -> None:
    """Of folders with results: those of shipped experiments that have none are of the demo."""
    options = parser().parse_args(words)
    folders = [Path(name.rpartition("=")[2]) for name in options.results]
    for folder in folders:
        if not folder.exists():
            _simulate(["run", "demo", "--out", str(folder)])
    assert main(words) in ((0, 1) if options.expect_equal else (0,))


HOW: dict[str, Callable[[list[str]], None]] = {
    **dict.fromkeys(("demo", "list", "keys"), _run),
    **dict.fromkeys(("run", "capacity"), _simulate),
    **dict.fromkeys(("explain", "tables", "verify", "analyze", "report", "figures"), _look),
    "compare": _compare,
    "check-plugin": _parse,  # it takes minutes: tests/sim/test_plugins.py
    "init": _init,
    "reproduce": _reproduce,
    "bench": _bench,
    "calibrate": _calibrate,
}


@pytest.mark.spark
@pytest.mark.parametrize("command", LISTED)
def test_a_printed_command_runs(command: str, spark: Any) -> None:
    words = shlex.split(command)[1:]
    assert words[0] in HOW, f"say in HOW how `coverlay {words[0]}` is tested"
    (_parse if any(part in command for part in ELSEWHERE) else HOW[words[0]])(words)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["bench", "all", "--quick"], ["calibrate", "--out", "here.toml"]])
def test_bench_and_calibrate_measure(words: list[str]) -> None:
    assert main(words) == 0
