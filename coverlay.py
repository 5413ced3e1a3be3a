"""What all packages share: the version, the one error type that reaches a user as a sentence, `Key` and `kernel`."""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

EARTH_RADIUS_KM = 6371.0
# Finds imports in a source file; a parser takes 100 times as long: a second for all that the engine imports.
_IMPORTS = re.compile(r"^[ \t]*(?:from ([\w.]+) )?import (\([^)]*\)|.*)", re.MULTILINE)
LONGEST_WAIT = 120.0  # seconds for another process to compile a kernel; after that it is compiled here too
KEPT_VERSIONS = 12  # of a module's compiled code: enough for a few branches or clones side by side


SYSTEMS = {"linux": "Linux", "darwin": "macOS"}  # that have what we need of the system: locks of files, processes


class CoverlayError(ValueError):
    """A mistake in what the user gave us.

    The message is one sentence that shows the offending value and says what is allowed. The command
    line prints it without a traceback and exits with status 2.
    """


QUOTED = 60  # characters of a value that a message shows; a file or command line may hold millions


def quoted(value: object) -> str:
    """A value as messages show it, cut if it is long."""
    try:
        return shortened(repr(value))
    except ValueError:  # Python refuses to write integers of more than 4300 digits
        return "a number of thousands of digits"


def shortened(text: str) -> str:
    """A user's text as messages show it, without quotes."""
    return text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"


def unknown_name(what: str, name: object, known: object) -> CoverlayError:
    """The error for a name that is not in a registry; `known` is any iterable of the valid names."""
    names = sorted(str(k) for k in known)  # type: ignore[attr-defined]
    return CoverlayError(f"unknown {what} {quoted(name)}; there are: {', '.join(names)}{did_you_mean(name, names)}")


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """The end of a sentence that suggests the known name closest to a misspelt one; empty if none is close."""
    close = get_close_matches(name, names, 1) if isinstance(name, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def refuse_other_systems() -> None:
    """Say in a sentence that this system is not supported, before a module that it does not have is imported."""
    if sys.platform not in SYSTEMS:
        names = " and ".join(SYSTEMS.values())
        raise CoverlayError(f"Coverlay runs on {names}, not on {sys.platform!r}; on Windows, use it in WSL")


@dataclass(frozen=True)
class Key:
    """What a setting means, in one line, declared with its type: `Annotated[float, Key("mean lifetime", "ms")]`.

    `coverlay keys`, the reference page and the comments of `coverlay init` come from these.
    """

    meaning: str
    unit: str = ""


def kernel(function: Any = None, /, *, inner: bool = False, **options: Any) -> Any:
    """The one decorator of every compiled function: numba's `njit` that releases the GIL, with a cache of our own.

    numba's own cache looks only at the function's file. A kernel contains the kernels it calls, so an edit of a called
    kernel would have no effect. Here the key holds a digest of every source file of this repository that a kernel can
    contain. `options` are those of `njit`.

    Kernels pass signed integers to each other as int64, be it a constant or an element of a narrow column: numba would
    otherwise compile the called kernel again for each type.

    For the kernels that call it, a kernel is compiled without what a call from Python needs, in half the time, and kept
    only as part of its callers. `inner=True` says that Python never calls it.
    """
    if function is None:
        return partial(kernel, inner=inner, **options)
    refuse_other_systems()
    from numba import njit  # not at the top: `coverlay --help` needs no compiler

    from lean_numba import KernelFlags, only_for_kernels

    options["nogil"] = True
    called = only_for_kernels(njit(**options)(function))
    called.get_call_template = partial(_with_plain_integers, called.get_call_template)
    if inner:
        return called
    compiled = njit(no_cfunc_wrapper=True, **options)(function)
    compiled._cache, compiled._compiler._customize_flags = _KernelCache(function), KernelFlags
    compiled.compile = partial(_compile, compiled.compile, compiled._cache)
    compiled.get_call_template, compiled.get_overload = called.get_call_template, called.get_overload
    return compiled


def _with_plain_integers(get_call_template: Any, args: Any, kws: Any) -> Any:
    """Type a call from one kernel to another as numba does, but with constants and narrow integers as int64."""
    from numba.core import types

    def plain(given: Any) -> Any:
        kind: Any = types.unliteral(given)  # type: ignore[attr-defined]
        return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind  # type: ignore[attr-defined]

    return get_call_template(tuple(plain(arg) for arg in args), {name: plain(arg) for name, arg in kws.items()})


def _compile(compile: Any, cache: _KernelCache, signature: Any) -> Any:
    """Compile without garbage collection: among the compiler's millions of linked objects it takes a twentieth of the
    time, and the garbage can wait until the end.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return compile(signature)
    finally:
        cache.end_turn()
        if was_on:
            gc.enable()


class _KernelCache:
    """The cache that numba asks before it compiles (the interface of `numba.core.caching._Cache`).

    A file per signature, in a folder per module and digest. Nothing is ever rewritten, so processes that compile at
    the same time cannot mix up each other's files, as they can with numba's numbered files behind one index. A process
    waits for its turn while another compiles the same kernel. If a process is killed, the system ends its turn.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._enabled = True
        self._turn: Any = None

    @cached_property
    def _folder(self) -> Path:
        file = Path(self._function.__code__.co_filename)
        module = _folder_of_kernels() / self._function.__module__
        folder = module / _digest_of_sources(file)
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        versions = sorted(module.iterdir(), key=lambda version: version.stat().st_mtime, reverse=True)
        for old in versions[KEPT_VERSIONS:]:
            shutil.rmtree(old, ignore_errors=True)
        return folder

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def _file(self, signature: Any, codegen: Any) -> Path:
        import numba
        from numba.core.serialize import dumps

        code, cells = self._function.__code__, self._function.__closure__ or ()
        closure = dumps([cell.cell_contents for cell in cells]) if cells else b""
        checks = numba.config.BOUNDSCHECK, numba.config.OPT, numba.config.DEBUGINFO_DEFAULT
        key = (numba.__version__, sys.version_info, codegen.magic_tuple(), checks, code.co_firstlineno, signature)
        digest = hashlib.sha256(repr(key).encode() + closure).hexdigest()[:24]
        return self._folder / f"{self._function.__qualname__.replace('<locals>', '')}-{digest}"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        from numba.core.compiler import CompileResult

        target_context.refresh()
        if not self._enabled:
            return None
        try:
            file = self._file(signature, target_context.codegen())
            if not file.exists():
                self._begin_turn(file)
            kept = file.read_bytes()
            parts = pickle.loads(kept)
        except OSError:  # not compiled yet, or no folder to keep it in, or one without locks
            return None
        except (pickle.UnpicklingError, EOFError):  # a file cut short when the machine stopped: it is written again
            return None
        return CompileResult._rebuild(target_context, *parts)

    def _begin_turn(self, file: Path) -> None:
        """Wait while another process compiles the same kernel, at most LONGEST_WAIT."""
        import fcntl  # not at the top: systems without it get a sentence

        turn = file.with_name(f"{file.name}.turn").open("w")
        until = time.monotonic() + LONGEST_WAIT
        while time.monotonic() < until:
            try:
                fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
        self._turn = turn

    def end_turn(self) -> None:
        turn, self._turn = self._turn, None  # another thread may end it at the same time: both may close it
        if turn is not None:
            Path(turn.name).unlink(missing_ok=True)  # waiting processes have it open and look for the result first
            turn.close()

    def save_overload(self, signature: Any, compiled: Any) -> None:
        from numba.core.serialize import dumps

        if not self._enabled or compiled.library.has_dynamic_globals:
            return
        try:
            file = self._file(signature, compiled.codegen)
            file.parent.mkdir(parents=True, exist_ok=True)  # another process may have cleared old versions
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(dumps(compiled._reduce()))
            part.replace(file)
        except OSError as problem:
            _tell_not_kept(problem.strerror)
            self._enabled = False

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


@cache
def _tell_not_kept(why: str) -> None:
    """Once in a process, not once per kernel."""
    again = "so every process compiles it again (NUMBA_CACHE_DIR names another folder)"
    warnings.warn(f"compiled code cannot be kept in {_folder_of_kernels()}, {again}: {why}", stacklevel=2)


def _folder_of_kernels() -> Path:
    """Where compiled code is kept: $NUMBA_CACHE_DIR, else the user's cache, which all clones share."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / "coverlay"
    return user_cache() / "kernels"


def user_cache() -> Path:
    """The folder for files that can be made again, shared by all clones."""
    chosen = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # unchanged where no home is known
    return Path(tempfile.gettempdir() if chosen.startswith("~") else chosen) / "coverlay"


@cache
def _digest_of_sources(file: Path) -> str:
    """Digest of a source file and all files of this repository that it imports, directly or not."""
    seen: set[Path] = set()
    todo = {file}
    while todo:
        seen |= todo
        todo = {source for one in todo for source in _imported(one)} - seen
    texts = hashlib.sha256()
    for source in sorted(seen):
        texts.update(f"{source.name}\n".encode() + source.read_bytes())
    return texts.hexdigest()[:16]


@cache
def _imported(file: Path) -> frozenset[Path]:
    """The files of this repository that a source file imports, at its top or inside functions."""
    names: set[str] = set()
    for module, listed in _IMPORTS.findall(file.read_text()):
        named = re.findall(r"[\w.]+", listed)
        names.update(f"{module}.{name}" for name in named) if module else names.update(named)
    return frozenset(found for name in names if (found := _source(name)))


def _source(name: str) -> Path | None:
    """The file that a dotted name is taken from: a module, or the module or package that holds it."""
    path = Path(__file__).parent.joinpath(*name.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    parent = name.rpartition(".")[0]
    return _source(parent) if parent else None
