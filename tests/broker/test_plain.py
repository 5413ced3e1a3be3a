"""The reference is plain Python: no kernels, and of SimPy only what its documentation shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(file for package in ("broker", "routing") for file in (ROOT / package).rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[str]:
    """Every imported name with its module, as in `coverlay.kernel`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_numba_no_kernel_and_no_inside_of_simpy(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for name in imported(tree):
        assert name.split(".")[0] not in ("numba", "llvmlite", "numba_hooks", "compiled_code"), name
        assert name not in ("coverlay.kernel", "coverlay"), "a kernel belongs into covering, topk or sim/compiled"
        assert name == "simpy" or not name.startswith("simpy."), f"{name} is inside of SimPy"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute | ast.Name):
            called = node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id
            private = node.attr.startswith("_") or node.attr == "schedule"
            assert not (called.lstrip("_") == "env" and private), f"env.{node.attr} is inside of SimPy"
