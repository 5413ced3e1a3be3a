"""What compiling a kernel costs: numba's own functions are looked up once per combination of types."""

from __future__ import annotations

import operator
from pathlib import Path

import pytest
from numba.core.typing.templates import ConcreteTemplate

from coverlay import kernel


def test_what_a_call_means_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # compiled now, not kept from an earlier run
    tried = []
    look_at = ConcreteTemplate.apply

    def counted(template, args, kws):
        tried.append((template.key, args))
        return look_at(template, args, kws)

    def length(a, b):
        return a * a + b * b

    def area(a, b):
        return a * b + a * b

    monkeypatch.setattr(ConcreteTemplate, "apply", counted)
    assert kernel(length)(3.0, 4.0) == 25.0
    assert kernel(area)(3.0, 4.0) == 24.0
    assert [key for key, _ in tried].count(operator.mul) <= 1, (
        tried
    )  # not even once if another kernel multiplied before
