"""Planted faults: small mistakes that a quick test must catch, one TOML table each, in the files beside this one.

A fault is anchored by the function it is in, not by a path, so it survives moves: `function` is the end of the dotted
name (`LinkLedger.withdraw`, or `scan.scan_top` where several modules have a `scan_top`), `old` occurs once in that
function and is replaced by `new`, and `test` is the name of a quick test function that then fails. A constant, such as
the SQL of a query, is as good a place as a function.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("broker", "routing", "covering", "topk", "sim", "analysis")
MODULES = ("coverlay.py", "compiled_code.py", "numba_hooks.py")


@dataclass(frozen=True)
class Fault:
    name: str
    function: str
    old: str
    new: str
    test: str


@dataclass(frozen=True)
class Place:
    """A function in a source file, by its lines (the first is 0)."""

    file: Path
    first: int
    last: int


def load() -> list[Fault]:
    files = sorted(Path(__file__).parent.glob("*.toml"))
    return [Fault(**table) for file in files for table in tomllib.loads(file.read_text())["fault"]]


def functions(root: Path = ROOT) -> dict[str, list[Place]]:
    """Every function, method and constant of the product by dotted name; one that is defined twice has two places."""
    found: dict[str, list[Place]] = {}
    files = [file for package in PACKAGES for file in sorted((root / package).rglob("*.py"))]
    for file in [*(root / module for module in MODULES), *files]:
        module = ".".join(file.relative_to(root).with_suffix("").parts)
        for name, node in _definitions(ast.parse(file.read_text()), module):
            assert node.end_lineno is not None
            found.setdefault(name, []).append(Place(file, node.lineno - 1, node.end_lineno))
    return found


def _definitions(node: ast.AST, name: str) -> Iterator[tuple[str, ast.stmt]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inner = f"{name}.{child.name}"
            if isinstance(child, ast.FunctionDef):
                yield inner, child
            yield from _definitions(child, inner)
        elif isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
            if child.targets[0].id.isupper():
                yield f"{name}.{child.targets[0].id}", child
        elif not isinstance(child, ast.expr):
            yield from _definitions(child, name)


def planted(fault: Fault, known: dict[str, list[Place]]) -> tuple[Path, str]:
    """The file that a fault changes and its text with the fault; AssertionError where the anchor does not fit."""
    places = [place for name, there in known.items() if f".{name}".endswith(f".{fault.function}") for place in there]
    assert len(places) == 1, f"{fault.name}: {len(places)} functions are called {fault.function!r}"
    place = places[0]
    lines = place.file.read_text().splitlines(keepends=True)
    body = "".join(lines[place.first : place.last])
    count = body.count(fault.old)
    assert count == 1, f"{fault.name}: {fault.old!r} occurs {count} times in {fault.function}"
    text = "".join(lines[: place.first]) + body.replace(fault.old, fault.new) + "".join(lines[place.last :])
    ast.parse(text)  # a fault is a wrong program, not a broken one
    return place.file, text


def test_files() -> dict[str, list[Path]]:
    """The files that define a test function of each name."""
    found: dict[str, list[Path]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.setdefault(node.name, []).append(file)
    return found


test_files.__test__ = False  # type: ignore[attr-defined]
