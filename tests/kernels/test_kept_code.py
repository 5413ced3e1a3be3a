"""Compiled code is kept for later processes, and nothing that happens to its files changes an answer."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import compiled_code
import coverlay
from tests.kernels import outside

ROOT = Path(coverlay.__file__).parent


def new_kernel() -> Any:
    """As in a new process: nothing is compiled yet."""

    @coverlay.kernel
    def half(x):
        return x / outside.TWO

    return half


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    return tmp_path / "chosen" / "coverlay"


def was_kept(kernel: Any) -> bool:
    """Whether a kernel, called for the first time, is taken from a file."""
    assert kernel(3.0) == 1.5
    return bool(kernel.stats.cache_hits)


def test_compiled_code_is_kept_for_the_next_process(folder: Path):
    assert not was_kept(new_kernel())
    assert was_kept(new_kernel())
    assert folder.stat().st_mode & 0o777 == 0o700


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


class Foreign:
    """Its pickle does harm where it is loaded."""

    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('a foreign pickle was loaded')",)


@pytest.mark.parametrize(
    "damaged",
    [flipped, lambda content: content[: len(content) // 2], lambda _: b"", lambda _: pickle.dumps(Foreign())],
    ids=["a flipped bit", "cut short", "empty", "a foreign pickle"],
)
def test_a_damaged_file_is_compiled_again_and_replaced(folder: Path, damaged: Any):
    assert not was_kept(new_kernel())
    (file,) = folder.iterdir()
    file.write_bytes(damaged(file.read_bytes()))
    assert not was_kept(new_kernel())
    assert was_kept(new_kernel())


def test_code_that_loads_but_cannot_be_used_is_compiled_again(folder: Path):
    assert not was_kept(new_kernel())
    (file,) = folder.iterdir()
    code = pickle.dumps("not what numba can rebuild")
    file.write_bytes(compiled_code._checksum(file, code) + code)
    assert not was_kept(new_kernel())
    assert was_kept(new_kernel())


def test_the_code_for_another_signature_is_not_taken(folder: Path):
    half = new_kernel()
    assert half(3.0) == half(3) == 1.5
    one, other = folder.iterdir()
    other.write_bytes(one.read_bytes())
    one.unlink()
    again = new_kernel()
    assert again(3.0) == again(3) == 1.5
    assert not again.stats.cache_hits


def warned(kernel: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert not was_kept(kernel)
    return [str(warning.message) for warning in said]


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_nothing_is_loaded_from_a_folder_that_others_can_write(folder: Path, mode: int):
    assert not was_kept(new_kernel())
    folder.chmod(mode)
    (said,) = warned(new_kernel())
    assert said.startswith(f"compiled code cannot be kept in {folder}, ")
    assert said.endswith(f"others can write to it (mode {mode:o}; chmod go-w)")
    assert warned(new_kernel()) == [], "it is said once in a process"


def test_nothing_is_loaded_from_a_folder_of_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch):
    assert not was_kept(new_kernel())
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    (said,) = warned(new_kernel())
    assert said.endswith(f"it belongs to user {folder.stat().st_uid}")


def test_only_a_link_of_ours_is_followed(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Who made it can point it to any folder, and to another one after we have looked."""
    assert not was_kept(new_kernel())
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert was_kept(new_kernel())
    monkeypatch.setattr(Path, "lstat", lambda path: SimpleNamespace(st_uid=os.geteuid() + 1))
    (said,) = warned(new_kernel())
    assert said.endswith(f"it belongs to user {os.geteuid() + 1}")


def test_without_a_home_the_folder_is_one_of_each_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its name can be known in advance, so whoever made it must be asked, as for any other folder."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(coverlay.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = compiled_code.folder_of_code()
    assert folder == tmp_path / f"coverlay-{os.geteuid()}-compiled"
    folder.mkdir(0o777)
    folder.chmod(0o777)
    (said,) = warned(new_kernel())
    assert f"{folder}" in said
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "a file"))
    (said,) = warned(new_kernel())
    assert said.startswith(f"compiled code cannot be kept in {tmp_path / 'a file'}")
    assert said.endswith("Not a directory")
    assert warned(new_kernel()) == []


def test_a_folder_that_cannot_be_written_is_told_once(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: Any) -> int:
        raise OSError(30, "Read-only file system")  # root may write to a folder without permission to write

    monkeypatch.setattr(Path, "write_bytes", full)
    (said,) = warned(new_kernel())
    assert said.endswith("Read-only file system")
    assert warned(new_kernel()) == []


def test_a_folder_that_was_removed_is_made_again(folder: Path):
    half = new_kernel()
    assert half(3.0) == 1.5
    shutil.rmtree(folder)
    assert half(3) == 1.5
    assert len(list(folder.iterdir())) == 1


def test_a_constant_from_outside_is_part_of_the_name(folder: Path, monkeypatch: pytest.MonkeyPatch):
    assert not was_kept(new_kernel())
    monkeypatch.setattr(outside, "TWO", 4)
    assert new_kernel()(3.0) == 0.75


def test_options_of_a_called_kernel_are_part_of_the_name():
    def made(**options: Any) -> str:
        @coverlay.kernel(inner=True, **options)
        def called(a):
            return a[7]

        @coverlay.kernel
        def caller(a):
            return called(a)

        return compiled_code.made_of(caller.py_func)

    assert made() == made()
    assert made() != made(boundscheck=True)


def test_only_so_many_versions_of_a_kernel_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiled_code, "KEPT_VERSIONS", 2)
    for two in (5, 4, 3, 2):
        monkeypatch.setattr(outside, "TWO", two)
        assert new_kernel()(3.0) == 3.0 / two
    assert len(list(folder.iterdir())) == 2
    assert was_kept(new_kernel()), "the newest are kept"


PROGRAM = """
import sys, time
from pathlib import Path
from coverlay import kernel

@kernel
def half(x):
    return x / 2.0

here = Path(__file__).parent
(here / sys.argv[1]).touch()
while not ((here / "first").exists() and (here / "second").exists()):
    time.sleep(0.01)
print([half(x) for x in (3.0, 3, True)])
"""


def test_two_processes_may_compile_the_same_kernel_at_the_same_time(tmp_path: Path, folder: Path):
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", str(tmp_path / "program.py")]
    for _ in range(2):  # the second time from what both have written
        started = [
            subprocess.Popen([*command, name], env=environment, stdout=subprocess.PIPE, text=True)
            for name in ("first", "second")
        ]
        assert [process.communicate()[0] for process in started] == ["[1.5, 1.5, 0.5]\n"] * 2
    assert len(list(folder.iterdir())) == 3
