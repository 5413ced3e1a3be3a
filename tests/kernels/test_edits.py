"""An edit of a kernel has an effect in the next process, also where the kernel is called from another module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.faults import MODULES, PACKAGES, ROOT

# Two packages in one process, which takes longest to start: neither imports what is edited in the other.
LIBRARIES = """
import numpy as np, covering, topk
index = covering.create("bigmin", np.array([[0.0, 100.0]]))
index.add(7, np.array([[0.0, 50.0]]))
print(index.find_cover(np.array([[1.0, 2.0]])))
catalogue = topk.Catalogue.from_boxes(np.zeros((3, 1)), np.ones((3, 1)), np.ones(3))
print([id for id, _ in topk.create("scan", catalogue).top(np.array([0.5]), 2)])
"""
COVERING_EDIT = ("covering/packed_words.py", "covers = True\n", "covers = False\n")
TOPK_EDIT = ("topk/kernels/heaps.py", "item_a > item_b", "item_a < item_b")

ENGINE = """
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
run = {"name": "small", "overlay": {"kind": "line", "brokers": 2}, "workload": {"subscriptions": 5, "events": 0}}
tables, _ = simulate(plan({**run, "routing": {"strategy": "simple"}, "run": {"engine": "compiled"}}).runs[0])
print(sum(tables["operations"].column("messages").to_pylist()))
"""


# A small part of it, called from a kernel as the engine's own kernels call it: quick to compile.
CALENDAR = """
import numpy as np
from coverlay import kernel
from sim.compiled.calendar import pop, push
from sim.compiled.records import CALL

@kernel
def order(keys, heap):
    found, size = np.empty(len(keys), np.int64), np.int64(0)
    for i in range(len(keys)):
        size = push(heap, size, keys[i], i, i)
    for i in range(len(keys)):
        found[i] = heap[0].what
        size = pop(heap, size)
    return found

print(list(map(int, order(np.array([3.0, 1.0, 1.0]), np.empty(4, CALL)))))
"""


def answer(tree: Path, program: str, compiled: Path) -> str:
    (tree / "program.py").write_text(program)  # a file: kernels of a command line are not kept
    environment = {**os.environ, "PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(compiled)}
    done = subprocess.run([sys.executable, "program.py"], cwd=tree, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CALENDAR_EDIT = ("sim/compiled/calendar.py", "above.order < order", "above.order > order")
LEDGER_EDIT = ("sim/compiled/link_ledgers.py", "request.messages += 1\n", "request.messages += 2\n")


@pytest.mark.parametrize(
    ("program", "edits", "before", "after"),
    [
        (LIBRARIES, [COVERING_EDIT, TOPK_EDIT], "7\n[0, 1]", "None\n[1, 2]"),
        (CALENDAR, [CALENDAR_EDIT], "[1, 2, 0]", "[2, 1, 0]"),
        pytest.param(ENGINE, [LEDGER_EDIT], "5", "10", marks=pytest.mark.slow),  # it compiles the whole engine twice
    ],
    ids=["covering and topk", "engine", "whole engine"],
)
def test_an_edit_of_a_called_kernel_is_seen(
    tmp_path: Path, program: str, edits: list[tuple[str, str, str]], before: str, after: str
) -> None:
    tree = tmp_path / "tree"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for module in MODULES:
        shutil.copy(ROOT / module, tree)
    assert answer(tree, program, tmp_path) == before
    for file, old, new in edits:
        source = tree / file
        text = source.read_text()
        assert text.count(old) == 1
        source.write_text(text.replace(old, new))
    assert answer(tree, program, tmp_path) == after
