"""What we set on our own dispatchers works with this version of numba, and only with versions that were tested."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import numba
import numpy as np
import pytest

import coverlay
from coverlay import CoverlayError, kernel

ROOT = Path(coverlay.__file__).parent


@kernel(inner=True)
def twice(x):
    return 2.0 * x


@kernel(inner=True)
def total(values, least):
    found = 0.0
    for value in values:
        if value < least:
            raise ValueError("too small")
        found += twice(value)
    return found


@kernel
def both(values, least):
    return total(values, least) + twice(1.0)


def test_an_inner_kernel_is_called_by_kernels_only():
    """Without the refusal Python would jump to an address that was never compiled, and crash."""
    for values in (np.ones(3), np.ones(3, np.float32)):
        assert both(values, 0.0) == 8.0
        with pytest.raises(ValueError, match="too small"):
            both(values, 2.0)
        with pytest.raises(TypeError, match="total is an inner kernel: only kernels can call it"):
            total(values, 0.0)


def test_an_inner_kernel_has_no_code_for_calls_from_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @kernel
    def outer(x):
        return twice(x)

    assert outer(1.5) == 3.0
    assert "cpython" in "".join(outer.inspect_llvm().values())
    assert "cpython" not in "".join(twice.inspect_llvm().values())
    assert [file.name.partition("-")[0].rpartition(".")[2] for file in (tmp_path / "coverlay").iterdir()] == ["outer"]


@pytest.fixture
def tested(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Pretends that other versions were tested."""

    def pretend(*versions: str) -> None:
        monkeypatch.setattr(coverlay, "NUMBA", versions)
        coverlay._numba_is_tested.cache_clear()

    yield pretend
    monkeypatch.undo()
    coverlay._numba_is_tested.cache_clear()


def test_a_version_that_is_too_old_gets_a_sentence(tested: Callable[[str, str], None]):
    tested("999.1", "999.3")
    with pytest.raises(CoverlayError) as refused:
        kernel(lambda x: x)
    said = f"numba {numba.__version__} is too old: Coverlay is tested with numba 999.1 to below 999.3"
    assert str(refused.value) == said


def test_a_version_that_is_too_new_gets_a_sentence_and_plain_njit(tested: Callable[[str, str], None]):
    tested("0.1", "0.2")
    with pytest.warns(UserWarning, match="is too new: Coverlay is tested with numba 0.1 to below 0.2") as said:
        inner = kernel(inner=True)(lambda x: x + 1.0)
    outer = kernel(lambda x: inner(x))
    assert len(said) == 1
    assert outer(1.0) == inner(1.0) == 2.0, "Python can call an inner kernel: our hooks were not tested, so not set"


def test_the_tested_versions_are_those_of_the_installation():
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    oldest, beyond = coverlay.NUMBA
    assert f"numba>={oldest},<{beyond}" in required


def test_without_a_compiler_kernels_are_the_functions_themselves():
    """As for a debugger: numba's own setting NUMBA_DISABLE_JIT."""
    program = "from coverlay import kernel; print(kernel(inner=True)(lambda x: 2 * x)(21))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout == "42\n", done.stderr
