"""`make test-versions`: the kernels' tests and a small experiment with the oldest and newest versions that we support.

Each set of versions of numba, numpy, networkx and pyspark is installed into an environment of its own: the lower bounds
of pyproject.toml, and the newest that they allow. Everything else is as in requirements.lock. The versions of numba in
between get the tests of what we set on dispatchers. Ends with a table, and with status 1 if anything failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from coverlay import NUMBA
from tests.mutants.faults import ROOT

VARIED = ("numba", "numpy", "networkx", "pyspark")
TESTS = ("tests/kernels", "tests/covering/test_conformance.py", "tests/topk/test_conformance.py")
HOOKS = ("tests/kernels/test_hooks.py", "tests/kernels/test_kept_code.py")
SMALL = ("workload.subscriptions=50", "workload.events=20", "seeds=[1]", "run.engine=prefer-compiled")
EXPERIMENT = ("run", "strategies", *(word for setting in SMALL for word in ("--set", setting)))


def supported() -> dict[str, str]:
    """The bounds of the packages that are varied, as pyproject.toml has them: '>=0.61,<0.69'."""
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    named = {re.split("[<>=]", line)[0]: line for line in lines}
    return {name: named[name].removeprefix(name) for name in VARIED}


def wanted(which: str) -> list[str]:
    """What pip is to install: the varied packages as old or as new as they may be, the others as they are pinned."""
    pinned = (ROOT / "requirements.lock").read_text().splitlines()
    others = [line for line in pinned if line and line.partition("==")[0] not in (*VARIED, "llvmlite")]
    oldest = {name: bounds.split(",")[0].replace(">=", "==") for name, bounds in supported().items()}
    chosen = oldest if which == "oldest" else supported()
    return others + [f"{name}{version}" for name, version in chosen.items()]


def between() -> list[str]:
    """The versions of numba in between, as pip finds their newest releases."""
    (major, first), (_, beyond) = (map(int, version.split(".")) for version in NUMBA)
    return [f"numba=={major}.{minor}.*" for minor in range(first + 1, beyond - 1)]


class Environment:
    """A folder with a Python that has some versions of our dependencies."""

    def __init__(self, folder: Path, requirements: list[str]) -> None:
        self.python = folder / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "compiled")}
        self._pip(*requirements)

    def overlay(self, folder: Path, requirement: str) -> None:
        """Put other versions before those that are installed."""
        self._pip("--target", str(folder), "--upgrade", requirement)
        self.environment["PYTHONPATH"] = f"{folder}{os.pathsep}{ROOT}"

    def _pip(self, *what: str) -> None:
        quiet = ("--quiet", "--quiet", "--disable-pip-version-check")
        subprocess.run([str(self.python), "-m", "pip", "install", *quiet, *what], check=True)

    def versions(self) -> list[str]:
        show = f"from importlib.metadata import version\nprint(*(version(name) for name in {VARIED}))"
        done = subprocess.run([str(self.python), "-c", show], env=self.environment, capture_output=True, text=True)
        return done.stdout.split()

    def outcome(self, *command: str) -> str:
        """Of a module of Python that is run; what it printed is shown only where it failed."""
        run = [str(self.python), "-m", *command]
        done = subprocess.run(run, cwd=ROOT, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            sys.stderr.write(f"{' '.join(run)}\n{done.stdout}{done.stderr}\n")
        return "failed" if done.returncode else "passed"


def main() -> int:
    console = Console(soft_wrap=True)
    table = Table("versions", *VARIED, "tests", "experiment")
    outcomes = []
    pytest = ("pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider")
    with TemporaryDirectory(prefix="coverlay-versions-") as temporary:
        for which in ("oldest", "newest"):
            environment = Environment(Path(temporary) / which, wanted(which))
            found = environment.versions()
            console.print(f"{which}: {' '.join(found)}")
            tested = environment.outcome(*pytest, *TESTS)
            ran = environment.outcome("sim.cli.main", *EXPERIMENT, "--out", f"{temporary}/{which}-out")
            outcomes += [tested, ran]
            table.add_row(which, *found, tested, ran)
        for requirement in between():
            environment.overlay(Path(temporary) / requirement.replace("*", "x"), requirement)
            found = environment.versions()
            console.print(f"numba in between: {found[0]}")
            tested = environment.outcome(*pytest, *HOOKS)
            outcomes.append(tested)
            table.add_row("in between", *found, tested, "")
    console.print(table)
    return 1 if "failed" in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
