"""What compiling a kernel costs: numba does nothing twice, and makes no machine code that nobody calls."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import analysis, event
from numba.core.base import BaseContext
from numba.core.codegen import CPUCodeLibrary
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


def written_for(function: Any, *args: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """What numba writes for LLVM for a kernel with these arguments, without what a call from Python needs."""
    written = calls_of(CPUCodeLibrary, "add_ir_module", monkeypatch)
    kernel(function)(*args)
    return next(str(module) for _, module in written if f"{function.__name__}$" in module.name)


def test_an_element_is_reached_in_few_instructions(monkeypatch: pytest.MonkeyPatch):
    def nothing(a, i, j):
        return i

    def copy(a, i, j):
        a[i, j] = a[j, i]
        return i

    args = np.ones((2, 2)), 0, 1
    less, more = (written_for(f, *args, monkeypatch=monkeypatch) for f in (nothing, copy))
    assert more.count(" = ") - less.count(" = ") <= 40, more  # 33; numba on its own: 100
    assert more.count("alloca") == less.count("alloca"), more


def test_an_array_is_passed_and_counted_as_one_value(monkeypatch: pytest.MonkeyPatch):
    @kernel(inner=True)
    def first(a):
        return a[0]

    def call(a):
        b = a
        return first(b)

    text = written_for(call, np.ones(2), monkeypatch=monkeypatch)
    assert "NRT_decref" in text, text
    assert text.count("extractvalue") == text.count('call void @"NRT_'), text  # one per reference that is counted


def test_plain_variables_are_not_deleted(monkeypatch: pytest.MonkeyPatch):
    def total(n):
        found = 0.0
        for i in range(n):
            found += i * 0.5
        return found

    text = written_for(total, 3, monkeypatch=monkeypatch)
    assert "extracted.count" not in text, text  # of a loop's iterator, which numba takes apart to look for references


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.bool_, np.uint8])
def test_elements_are_numpys(dtype: Any):
    def swapped(a, i, j):
        a[i, j], a[j, i] = a[j, i], a[i, j]
        return a[i, j]

    for array in (np.arange(9).reshape(3, 3).astype(dtype), np.arange(18).reshape(3, 6).astype(dtype)[:, ::2]):
        for i, j in ((0, 1), (-1, 0), (np.uint64(2), -3), (np.int8(-2), np.uint16(2))):
            expected = array.copy()
            value = swapped(expected, i, j)
            assert kernel(swapped)(array, i, j) == value
            assert array.tolist() == expected.tolist()


def test_elements_of_records_and_of_parts_of_arrays():
    rows = np.zeros(3, [("count", np.int64), ("weight", np.float64, 2)])

    def change(rows, table, i):
        rows[i].count += 5
        rows[i - 1] = rows[i]
        table[i] = table[i - 1]  # a row, not an element
        table[:, 0] = 9.0
        return table[i].sum()

    table = np.arange(6.0).reshape(3, 2)
    assert kernel(change)(rows, table, -1) == 9.0 + 3.0
    assert rows["count"].tolist() == [0, 5, 5]
    assert table.tolist() == [[9.0, 1.0], [9.0, 3.0], [9.0, 3.0]]


def test_accesses_are_checked_where_that_is_asked_for():
    @kernel(boundscheck=True)
    def beyond(a, i):
        a[i] = a[i] + 1.0

    with pytest.raises(IndexError):
        beyond(np.ones(3), 3)


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "a file"))

    def twice(x):
        return 2 * x

    def half(x):
        return x / 2

    with pytest.warns(UserWarning, match="cannot be kept") as told:
        assert (kernel(twice)(3), kernel(half)(3)) == (6, 1.5)
    (said,) = told
    assert str(said.message).startswith(f"compiled code cannot be kept in {tmp_path / 'a file'}")
    assert "Not a directory" in str(said.message)
