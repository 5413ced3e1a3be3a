"""Processes that need the same kernel compile it once; nothing that happens to one of them stops the others."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import coverlay

# Both are there before either compiles, and compiling takes so long that they would both do it on a busy machine too.
PROGRAM = """
import sys, time
from pathlib import Path
from coverlay import _KernelCache, kernel

save = _KernelCache.save_overload
_KernelCache.save_overload = lambda self, *compiled: (time.sleep(1.0), save(self, *compiled))

@kernel
def half(x):
    return x / 2.0

here = Path(__file__).parent
(here / sys.argv[1]).touch()
while not ((here / "first").exists() and (here / "second").exists()):
    time.sleep(0.01)
assert half(3.0) == 1.5
print(sum(half.stats.cache_misses.values()))
"""


def new_kernel() -> Any:
    @coverlay.kernel
    def half(x: float) -> float:
        return x / 2.0

    return half


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def kept(cache: Path) -> list[Path]:
    return [file for file in cache.rglob("*half-*") if file.suffix != ".turn"]


def test_two_processes_compile_a_kernel_once(tmp_path: Path, cache: Path):
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(Path(coverlay.__file__).parent)}
    command = [sys.executable, str(tmp_path / "program.py")]
    started = [
        subprocess.Popen([*command, name], env=environment, stdout=subprocess.PIPE, text=True)
        for name in ("first", "second")
    ]
    assert sorted(int(process.communicate()[0]) for process in started) == [0, 1]
    assert not list(cache.rglob("*.turn"))


def test_the_turn_of_a_process_that_was_killed_is_over(cache: Path):
    assert new_kernel()(3.0) == 1.5
    (file,) = kept(cache)
    file.unlink()
    turn = file.with_name(f"{file.name}.turn")
    hold = f"import fcntl, os; fcntl.flock(open({str(turn)!r}, 'w'), fcntl.LOCK_EX); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", hold]).returncode == -9
    assert turn.exists()
    assert new_kernel()(3.0) == 1.5
    assert kept(cache) == [file]


def test_a_turn_that_never_ends_is_not_waited_for(cache: Path, monkeypatch: pytest.MonkeyPatch):
    assert new_kernel()(3.0) == 1.5
    (file,) = kept(cache)
    file.unlink()
    monkeypatch.setattr(coverlay, "LONGEST_WAIT", 0.1)
    with file.with_name(f"{file.name}.turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        assert new_kernel()(3.0) == 1.5


def test_a_cache_that_was_removed_is_made_again(cache: Path):
    half = new_kernel()
    assert half(3.0) == 1.5
    shutil.rmtree(cache)
    assert half(3) == 1.5
    assert len(kept(cache)) == 1


def test_a_file_that_was_cut_short_is_written_again(cache: Path):
    assert new_kernel()(3.0) == 1.5
    (file,) = kept(cache)
    whole = file.read_bytes()
    for size in (0, len(whole) // 2):
        file.write_bytes(whole[:size])
        assert new_kernel()(3.0) == 1.5
        assert len(file.read_bytes()) > size, "the next process need not compile it"


def test_a_kernel_that_does_not_compile_ends_its_turn(cache: Path):
    half = new_kernel()
    with pytest.raises(Exception, match="No implementation of function"):
        half("three")
    assert not list(cache.rglob("*.turn"))


def test_threads_may_end_a_turn_at_the_same_time(cache: Path, monkeypatch: pytest.MonkeyPatch):
    turns = new_kernel()._cache
    turns._begin_turn(turns._folder / "half-1")
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: turns.end_turn())  # the other thread, in the middle
    turns.end_turn()
    assert turns._turn is None
