"""What README and docs print works: scripts run, the command line knows the commands, links lead somewhere."""

from __future__ import annotations

import doctest
import os
import re
import shlex
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from broker.trace.schema import ALL
from sim.api_reference import PUBLIC, as_markdown
from sim.cli.main import parser
from sim.experiment.plan import load, shipped
from tests.docs.columns import comments, page

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
DESIGN = ROOT / "docs" / "design.md"
MOST_LINES = 16  # of a script, with the blank lines around a function: people read them
MOST_BYTES = 8 * 1024  # of the README
MOST_FILES, MOST_RETURNS = 35, 6  # of the walk of a subscription: to a package already left


def _blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


SCRIPTS = [(f"{page.name} {i + 1}", script) for page in PAGES for i, script in enumerate(_blocks(page))]


def _commands(page: Path) -> list[str]:
    """`coverlay …` as a line of a block or between backticks; examples with NAME, DIR, | or … are patterns."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^    (coverlay [^\n#]*)", text, re.MULTILINE) + re.findall(r"`(coverlay [^`\n]*)`", text)
    patterns = re.compile(r"\b[A-Z]{3,}|[|…]|^coverlay (run|reproduce|bench|analyze|report|explain|verify)$")
    return [command.strip() for command in found if not patterns.search(command.strip())]


COMMANDS = sorted({command for page in PAGES for command in _commands(page)})


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= MOST_BYTES
    assert all(len(script.splitlines()) <= MOST_LINES for _, script in SCRIPTS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_printed_command_is_one_that_the_command_line_knows(command: str) -> None:
    options = parser().parse_args(shlex.split(command)[1:])
    if options.verb == "run" and options.experiment in shipped():
        load(options.experiment, options.settings)


def test_the_python_reference_is_up_to_date() -> None:
    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == as_markdown()


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in PUBLIC.items() for n in names])
def test_the_examples_of_the_python_reference_run(module: str, name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    thing = getattr(import_module(module), name)
    for example in doctest.DocTestFinder(recurse=False).find(thing, name, module=False):
        assert doctest.DocTestRunner().run(example).failed == 0


def test_the_makefile_names_tests_that_exist() -> None:
    paths = re.findall(r"\btests/[\w/.]+", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    paths = re.findall(r"`((?:broker|routing|covering|topk|sim|analysis|tests|docs)/[\w/]+(?:\.\w+)?)`", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing + [path for path in paths if not (ROOT / path).exists()] == []


def test_the_page_of_columns_is_what_the_program_declares() -> None:
    said = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert said == page(), "write it again: python -m tests.docs.columns > docs/results.md"
    assert {(table, column.name) for table, schema in ALL.items() for column in schema} <= comments().keys()


def test_the_walk_of_a_subscription_has_the_files_and_returns_that_it_states() -> None:
    """And few of both: people are to read them. Another test sees that the files exist."""
    said = re.search(
        r"A subscription \((\d+) files; (\d+) returns.*?\):\n(.*?)\n\nAn event", DESIGN.read_text(), re.DOTALL
    )
    assert said is not None
    files = re.findall(r"`([\w/]+\.py)`", said[3])
    packages = [package for package, _ in groupby(file.split("/")[0] for file in files)]
    returns = len(packages) - len(set(packages))
    assert (len(files), returns) == (int(said[1]), int(said[2]))
    assert len(files) == len(set(files)) <= MOST_FILES
    assert returns <= MOST_RETURNS


@pytest.mark.spark
@pytest.mark.parametrize("script", [script for _, script in SCRIPTS], ids=[name for name, _ in SCRIPTS])
def test_a_printed_script_runs(
    script: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # runs are made here: every other process would import everything
    exec(compile(script, "script", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert printed.strip()
    if "sim.run" in script:
        assert list(tmp_path.glob("out/*/results/summary.parquet"))
