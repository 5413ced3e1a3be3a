"""What we import changes nothing for other code: nothing of a dependency is set, and private names are in one place."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mutants.faults import MODULES, PACKAGES, ROOT

OURS = {*PACKAGES, *(module.removesuffix(".py") for module in MODULES), "tests"}
SOURCES = [ROOT / module for module in MODULES] + [
    file for package in (*PACKAGES, "tests") for file in sorted((ROOT / package).rglob("*.py"))
]
DOCUMENTED = {"numba", "numba.extending", "numba.experimental", "numba.core.errors", "numba.core.event"}
PRIVATE_NAMES_OF_NUMBA = {
    "numba_hooks.py": "the dispatchers of our own kernels",
}

CHANGES_OF_DEPENDENCIES = {
    "analysis/spark/session.py": "pyspark keeps a Java process that has died and has no public way to start another"
}


def of_dependencies(tree: ast.AST) -> set[str]:
    """Names that are a dependency's module, class or function: imported, or another name for one of those."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names if foreign(alias.name)}
        elif isinstance(node, ast.ImportFrom) and foreign(node.module or ""):
            names |= {alias.asname or alias.name for alias in node.names}
    for _ in range(2):  # a name for a name for one
        for node in ast.walk(tree):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if isinstance(node, ast.Assign | ast.AnnAssign) and rooted(node.value, names):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def foreign(module: str) -> bool:
    top = module.partition(".")[0]
    return bool(top) and top not in OURS and top not in sys.stdlib_module_names


def rooted(node: ast.AST | None, names: set[str]) -> bool:
    """Whether an expression is one of the names, or an attribute or item of one."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id in names


def changes(tree: ast.AST) -> Iterator[int]:
    """Lines where something of a dependency is set or deleted."""
    names = of_dependencies(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            if rooted(node, names):
                yield node.lineno
        elif isinstance(node, ast.Call) and node.args and rooted(node.args[0], names):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("setattr", "delattr"):
                yield node.lineno


def test_nothing_of_a_dependency_is_set():
    found = {str(file.relative_to(ROOT)): list(changes(ast.parse(file.read_text()))) for file in SOURCES}
    assert {file: lines for file, lines in found.items() if lines and file not in CHANGES_OF_DEPENDENCIES} == {}
    assert all(found[file] for file in CHANGES_OF_DEPENDENCIES), "an exception that is no longer needed"


@pytest.mark.parametrize(
    "program",
    [
        "import numba\nnumba.config.OPT = 0",
        "from numba.core.types.functions import BaseFunction\nf: Any = BaseFunction\nf.get_call_type = None",
        "import matplotlib as m\nm.rcParams['font.size'] = 9",
        "import simpy\nsetattr(simpy.Environment, 'step', None)",
        "from pyspark.sql import DataFrame\nmonkeypatch.setattr(DataFrame, 'count', None)",
        "import numpy as np\ndel np.float128",
    ],
)
def test_whatever_sets_something_of_a_dependency_is_found(program: str):
    assert list(changes(ast.parse(program)))


def test_what_is_ours_may_be_set():
    program = "import sim.cli.main\nimport numpy as np\nsim.cli.main.X = 1\na = np.empty(3)\na[0] = np.pi\nself.n = np"
    assert not list(changes(ast.parse(program)))


def test_private_names_of_numba_are_in_one_place():
    users = set()
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom) and node.module == "numba.core":
                modules = [f"numba.core.{alias.name}" for alias in node.names]
            if any(module.startswith(("numba.", "llvmlite.")) and module not in DOCUMENTED for module in modules):
                users.add(str(file.relative_to(ROOT)))
    assert users == set(PRIVATE_NAMES_OF_NUMBA)


def test_private_names_of_dispatchers_are_in_one_place():
    private = {"_cache", "_compiler", "_compile_for_args", "add_overload", "overloads", "targetctx", "targetoptions"}
    users = {
        str(file.relative_to(ROOT))
        for file in SOURCES
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in private
    }
    assert users == {"numba_hooks.py"}


def test_private_names_of_pyspark_are_in_one_place_and_rdds_only_where_runs_are_simulated():
    private, rdds = (
        {"_gateway", "_jvm", "_jsc", "_jdf", "_jsparkSession", "_sc"},
        {"parallelize", "rdd", "toLocalIterator"},
    )
    used: dict[str, set[str]] = {"private": set(), "rdds": set(), "modules": set()}
    for file in SOURCES:
        name = str(file.relative_to(ROOT))
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                used["private"] |= {name} if node.attr in private else set()
                used["rdds"] |= {name} if node.attr in rdds else set()
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyspark."):
                used["modules"] |= {name} if node.module not in {"pyspark.sql", "pyspark.errors"} else set()
    assert used == {
        "private": {"analysis/spark/session.py"},
        "rdds": {"sim/experiment/sweep.py", "sim/conformance.py"},
        "modules": {"analysis/spark/session.py"},
    }


OTHERS = """
import numpy as np
from numba import guvectorize

@guvectorize("void(float64[:], float64[:], float64[:])", "(n),(n)->()")
def product(a, b, out):
    out[0] = 0.0
    for i in range(a.shape[0]):
        out[0] += a[i] * b[i]

@guvectorize("(n)->(n)")
def doubled(a, out):
    for i in range(a.shape[0]):
        out[i] = 2 * a[i]

def of_others():
    assert product(np.ones((2, 3)), np.arange(3.0)).tolist() == [3.0, 3.0]
    given = np.ones((2, 3))
    out = np.empty_like(given)
    doubled(given, out)
    assert out.tolist() == [[2.0] * 3] * 2
"""
NUMBAGG = """
import numbagg, numpy as np
def of_numbagg():
    rows = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]])
    assert numbagg.nanmean(rows, axis=1).tolist() == [2.0, 5.0]
    assert numbagg.move_sum(rows[1], window=2, min_count=1).tolist() == [4.0, 9.0, 11.0]
"""
LIBRARIES = """
import covering, topk, numpy as np
def ours():
    index = covering.create("scan", np.array([[0.0, 9.0]]))
    index.add(7, np.array([[0.0, 5.0]]))
    assert index.find_cover(np.array([[1.0, 2.0]])) == 7
    catalogue = topk.Catalogue.from_boxes(np.zeros((3, 1)), np.ones((3, 1)), np.arange(3.0))
    assert topk.create("scan", catalogue).top(np.array([0.5]), 1) == [(2, 2.0)]
"""


@pytest.mark.parametrize("others", [OTHERS, NUMBAGG], ids=["guvectorize", "numbagg"])
def test_functions_of_others_work_beside_ours_in_both_orders(others: str, tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    theirs = "of_others" if others is OTHERS else "of_numbagg"
    for first, second in ((others, LIBRARIES), (LIBRARIES, others)):
        for calls in (f"ours(); {theirs}()", f"{theirs}(); ours()"):
            (tmp_path / "program.py").write_text(f"{first}\n{second}\n{calls}\n")
            done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True)
            assert done.returncode == 0, done.stderr.decode()
