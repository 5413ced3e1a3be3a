"""What compiling a kernel costs: numba does nothing twice, and makes no machine code that nobody calls."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import analysis, event
from numba.core.base import BaseContext
from numba.core.cpu import CPUContext
from numba.core.typing.templates import ConcreteTemplate

from coverlay import kernel


@pytest.fixture(autouse=True)
def nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled now, not taken from an earlier run."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))


def calls_of(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arguments of every call of a method from now on."""
    seen: list[Any] = []
    method = getattr(owner, name)

    def counted(*args: Any) -> Any:
        seen.append(args)
        return method(*args)

    monkeypatch.setattr(owner, name, counted)
    return seen


def test_what_a_call_means_is_looked_up_once(monkeypatch: pytest.MonkeyPatch):
    def length(a, b):
        return a * a + b * b

    def area(a, b):
        return a * b + a * b

    tried = calls_of(ConcreteTemplate, "apply", monkeypatch)
    assert kernel(length)(3.0, 4.0) == 25.0
    assert kernel(area)(3.0, 4.0) == 24.0
    # not even once if another kernel multiplied before
    assert [template.key for template, _, _ in tried].count(operator.mul) <= 1, tried


def test_an_inlined_kernel_is_analysed_once():
    @kernel(inner=True, inline="always")
    def twice(x):
        return 2.0 * x

    @kernel(inner=True, inline="always")
    def four_times(x):
        return twice(twice(x))

    @kernel
    def both(x):
        return four_times(x) + twice(x) + four_times(x)

    with event.install_recorder("numba:run_pass") as recorder:
        assert both(1.0) == 10.0
    analysed = [entry.data["name"] for _, entry in recorder.buffer if entry.is_start]
    of_twice = [name for name in analysed if name.startswith("translate_bytecode") and name.endswith("twice]")]
    assert len(of_twice) == 1, analysed


def test_what_numba_has_in_python_gets_no_machine_code_of_its_own(monkeypatch: pytest.MonkeyPatch):
    @kernel
    def largest(n, x):
        values = np.empty(n)
        values[:] = x
        return max(values[0], x)

    made = calls_of(CPUContext, "get_executable", monkeypatch)
    assert largest(3, 2.5) == 2.5
    names = " ".join(function.qualname for _, _, function, _ in made)
    assert "largest" in names
    assert "ol_np_empty" not in names
    assert "ol_max" not in names


def test_arrays_make_numba_search_nothing(monkeypatch: pytest.MonkeyPatch):
    def one(a, i):
        return a[i]

    def many(a, b, c, i):
        return a[i] + b[i] + c[i] + a[i] + b[i] + c[i]

    searched = calls_of(BaseContext, "refresh", monkeypatch)
    numbers = np.arange(3.0)
    assert kernel(one)(numbers, 1) == 1.0
    searched.clear()  # the first kernel of a process loads all that there is
    assert kernel(many)(numbers, numbers, numbers, 1) == 6.0
    assert len(searched) <= 3  # when it begins, not for each of the six


def test_lifetimes_are_worked_out_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    def smallest(a):
        found = a[0]
        for i in range(1, len(a)):
            found = min(found, a[i])
        return found

    def generated(n):
        for i in range(n):
            yield 2 * i

    worked_out = calls_of(analysis, "compute_live_variables", monkeypatch)
    assert kernel(smallest)(np.array([3.0, 1.0])) == 1.0
    assert not worked_out
    assert list(kernel(generated)(3)) == [0, 2, 4]
    assert worked_out, "a generator keeps what lives across its yields"
