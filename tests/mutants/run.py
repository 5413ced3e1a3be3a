"""`make mutants`: plant each fault in a copy of the tree and see the test that is named for it fail.

First all named tests run without a fault: they must pass. A fault is caught only where its test fails, not where the
program no longer starts. Ends with a table, and with status 1 if any fault survived.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from tests.mutants.faults import MODULES, PACKAGES, ROOT, Fault, functions, load, planted, test_files

LONGEST = 600.0  # seconds for one fault, compilation included: beyond that the test is not a quick one
_FAILED = 1  # pytest's status where a test failed; others mean that none ran


@dataclass(frozen=True)
class Outcome:
    fault: Fault
    what: str
    seconds: float


def copy_of_tree(folder: Path) -> Path:
    for part in (*PACKAGES, "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
    for file in (*MODULES, "pyproject.toml", "README.md", "Makefile"):
        shutil.copy(ROOT / file, folder)
    if (ROOT / "docs").is_dir():
        shutil.copytree(ROOT / "docs", folder / "docs")
    return folder


def pytest(tree: Path, tests: list[str], longest: float) -> int | None:
    """The status of a run of these tests in a tree; None where it took too long."""
    options = ["-x", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-seed=1"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        return subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=longest).returncode
    except subprocess.TimeoutExpired:
        return None


def trial(fault: Fault, tests: dict[str, str]) -> Outcome:
    begin = time.monotonic()
    with TemporaryDirectory(prefix="coverlay-mutant-") as folder:
        tree = copy_of_tree(Path(folder))
        file, text = planted(fault, functions(tree))
        file.write_text(text)
        status = pytest(tree, [tests[fault.test]], LONGEST)
    words = {_FAILED: "caught", 0: "SURVIVED", None: f"no answer in {LONGEST:.0f} s"}
    return Outcome(fault, words.get(status, f"pytest ended with status {status}"), time.monotonic() - begin)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="plant only faults whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults tried at the same time")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True)
    faults = [fault for fault in load() if arguments.only in fault.name]
    if not faults:
        console.print(f"no fault has {arguments.only!r} in its name")
        return 2
    files = test_files()
    tests = {fault.test: f"{files[fault.test][0].relative_to(ROOT)}::{fault.test}" for fault in faults}
    begin = time.monotonic()
    with TemporaryDirectory(prefix="coverlay-mutant-") as folder:
        tree = copy_of_tree(Path(folder))
        status = pytest(tree, sorted(tests.values()), len(tests) * LONGEST)
    if status != 0:
        console.print(f"The tests named for faults do not pass without one (status {status}); run them by hand:")
        console.print(" ".join(sorted(tests.values())))
        return 1
    console.print(f"{len(tests)} tests pass without a fault ({time.monotonic() - begin:.0f} s)")
    outcomes = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for outcome in pool.map(lambda fault: trial(fault, tests), faults):
            console.print(f"{outcome.what:9} {outcome.seconds:5.0f} s  {outcome.fault.name}")
            outcomes.append(outcome)
    table = Table("fault", "in", "test", "outcome")
    for outcome in outcomes:
        table.add_row(outcome.fault.name, outcome.fault.function, outcome.fault.test, outcome.what)
    console.print(table)
    caught = sum(outcome.what == "caught" for outcome in outcomes)
    console.print(f"{caught} of {len(outcomes)} faults caught in {(time.monotonic() - begin) / 60:.1f} minutes")
    return 0 if caught == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
