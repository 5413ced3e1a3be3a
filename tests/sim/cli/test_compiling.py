"""The command line says what it waits for while something compiles."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from sim.cli import compiling


def event_of(module: str) -> Any:
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


def compile_for(notice: compiling.Notice, module: str, seconds: float, nested: int = 0) -> None:
    notice.on_start(event_of(module))
    for _ in range(nested):
        compile_for(notice, "covering.packed_words", 0.0)
    time.sleep(seconds)
    notice.on_end(event_of(module))


def test_a_long_compilation_is_announced_once_per_part(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notice = compiling.Notice()
    monkeypatch.setattr(compiling, "PATIENCE", 60.0)
    compile_for(notice, "sim.compiled.advance", 0.0)
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(compiling, "PATIENCE", 0.05)
    compile_for(notice, "sim.compiled.advance", 1.0, nested=3)
    compile_for(notice, "sim.compiled.link_ledgers", 0.5)
    assert capfd.readouterr().err == "compiling the engine, once per installation\n"


def test_many_short_compilations_are_announced_too(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "PATIENCE", 0.3)
    notice = compiling.Notice()
    for _ in range(40):
        compile_for(notice, "topk.scan", 0.02)
    assert capfd.readouterr().err == "compiling matching, once per installation\n"
