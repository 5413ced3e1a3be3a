"""The compiled code of kernels, kept in files for later processes. `numba_hooks` asks here before numba compiles.

A file holds the code for one signature and is named by a digest of all that the code is made from. So an edit of a
kernel, or of one that it calls, is seen by the next process, and nothing has to be deleted by hand.

A file is written in one step and begins with a checksum of its name and content: processes that work at the same time
cannot mix up their files, and what is damaged or foreign is compiled again and replaced. To load code is to run it, so
the folder must be ours, and nobody else may write to it.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any
from uuid import uuid4

from coverlay import user_cache

KEPT_VERSIONS = 24  # of a kernel: enough for its signatures and a few branches or clones side by side
_CHECKSUM = 32  # bytes at the beginning of a file
_DEEPEST = 3  # attributes of modules in modules that are looked at, as in `numpy.random.mtrand`
_unusable: set[Path] = set()  # folders that a warning was given for


class CompiledCode:
    """The files of one kernel. `processor` is whatever tells apart what machine code is compiled for."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._name = re.sub(r"[^\w.]", "", f"{function.__module__}.{function.__qualname__}")

    def load(self, signature: Any, processor: Any, rebuilt: Callable[[bytes], Any]) -> Any:
        """What `rebuilt` makes of the code that was kept; None if there is none or it cannot be used."""
        try:
            file = self._file(signature, processor)
            kept = file.read_bytes() if file else b""
        except FileNotFoundError:
            return None
        except OSError as problem:
            return _warn_once(problem)
        if file is None or kept[:_CHECKSUM] != _checksum(file, kept[_CHECKSUM:]):
            return None
        try:
            return rebuilt(kept[_CHECKSUM:])
        except Exception:  # whatever is wrong with it: it is compiled again
            return None

    def save(self, signature: Any, processor: Any, code: bytes) -> None:
        try:
            file = self._file(signature, processor)
            if file is None:
                return
            part = file.with_name(f"{file.name}.{uuid4().hex}")
            part.write_bytes(_checksum(file, code) + code)
            part.replace(file)
            for old in sorted(file.parent.glob(f"{self._name}-*"), key=_when_written)[:-KEPT_VERSIONS]:
                old.unlink(missing_ok=True)
        except OSError as problem:
            _warn_once(problem)

    def _file(self, signature: Any, processor: Any) -> Path | None:
        """Where the code for a signature is kept; None if there is no source file or no folder that can be used."""
        import llvmlite
        from numba import __version__, config

        folder, arguments = folder_of_code(), repr(signature)
        typed_at_a_prompt = not Path(self._function.__code__.co_filename).is_file()
        if folder in _unusable or typed_at_a_prompt or " at 0x" in arguments:  # an address, of this process only
            return None
        _make_private(folder)
        versions = __version__, llvmlite.__version__, sys.version_info
        settings = config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT
        key = repr((versions, processor, settings, arguments, made_of(self._function)))
        return folder / f"{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def made_of(function: Any) -> str:
    """Digest of the bytecode of a kernel and of all kernels it calls, of their options, and of what they name.

    Constants are part of it wherever they come from. Of other things, an intrinsic for example, it is the file that
    defines them.
    """
    digest, todo, seen = hashlib.sha256(), [function], {function}
    while todo:
        one = todo.pop()
        digest.update(repr(getattr(one, "kernel_options", None)).encode())
        for code in _codes(one.__code__):
            constants = [_written(value) for value in code.co_consts]
            parts = code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames, constants
            digest.update(repr(parts).encode())
        for name, value in _named(one):
            called = getattr(value, "py_func", None)
            if not isinstance(called, FunctionType):
                digest.update(f"{name} = {_written(value)}\n".encode())
            elif called not in seen:
                seen.add(called)
                todo.append(called)
    return digest.hexdigest()


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions and comprehensions in it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from _codes(value)


def _named(function: Any) -> list[tuple[str, Any]]:
    """What the names in a function mean: variables around it, global ones, attributes of modules and classes."""
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found |= {name: cell.cell_contents for name, cell in cells}
    todo = list(found.items())
    while todo:
        owner, value = todo.pop()
        if isinstance(value, ModuleType | type) and owner.count(".") < _DEEPEST:
            inside = {f"{owner}.{name}": getattr(value, name) for name in names if hasattr(value, name)}
            found |= inside
            todo += inside.items()
    return sorted(found.items(), key=lambda item: item[0])


def _written(value: Any) -> str:
    """A value as text that is the same in every process, and another if the compiled code would be."""
    import numpy as np

    if isinstance(value, CodeType | ModuleType):
        return ""  # `_codes` and `_named` look into them
    if isinstance(value, np.ndarray):
        return f"{value.dtype!r} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple | list | frozenset):
        parts = [_written(part) for part in value]
        return f"{type(value).__name__}{sorted(parts) if isinstance(value, frozenset) else parts}"
    if value is None or isinstance(value, int | float | complex | str | bytes | np.generic | np.dtype):
        return repr(value)
    module = sys.modules.get(getattr(value, "__module__", None) or type(value).__module__)
    return re.sub(" at 0x[0-9a-f]+", "", repr(value)) + _digest_of_file(getattr(module, "__file__", None))


@cache
def _digest_of_file(file: str | None) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else ""


def _checksum(file: Path, code: bytes) -> bytes:
    return hashlib.sha256(file.name.encode() + code).digest()


def _when_written(file: Path) -> float:
    return file.stat().st_mtime if file.exists() else 0.0


def folder_of_code() -> Path:
    """In $NUMBA_CACHE_DIR, else beside the user's cache, which all clones share."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) / "coverlay" if chosen else user_cache().with_name(f"{user_cache().name}-compiled")


def _make_private(folder: Path) -> None:
    """Make the folder if there is none; an OSError unless it is ours and nobody else can write to it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    for owner in (found.st_uid, folder.lstat().st_uid):  # who made a link decides where it points to
        if owner != os.geteuid():
            raise PermissionError(None, f"it belongs to user {owner}")
    if found.st_mode & 0o022:
        raise PermissionError(None, f"others can write to it (mode {found.st_mode & 0o777:o}; chmod go-w)")


def _warn_once(problem: OSError) -> None:
    """Say that compiled code cannot be kept, and do not try again in this process."""
    folder = folder_of_code()
    if folder not in _unusable:
        _unusable.add(folder)
        again = "so every process compiles it again (NUMBA_CACHE_DIR names another folder)"
        warnings.warn(f"compiled code cannot be kept in {folder}, {again}: {problem.strerror}", stacklevel=2)
