"""What all packages share: the version, the one error type that reaches a user as a sentence, `Key` and `kernel`."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

EARTH_RADIUS_KM = 6371.0
NUMBA = "0.61", "0.69"  # the tested versions: from the first to below the second, as in pyproject.toml
SYSTEMS = {"linux": "Linux", "darwin": "macOS"}  # that have what we need of the system: locks of files, processes


class CoverlayError(ValueError):
    """A mistake in what the user gave us.

    The message is one sentence that shows the offending value and says what is allowed. The command
    line prints it without a traceback and exits with status 2.
    """

    def __init__(self, message: str) -> None:
        super().__init__(brief(message))


QUOTED = 60  # characters of a value that a message shows; a file or command line may hold millions
LONGEST_WORD, LONGEST_MESSAGE = 500, 5000  # a path may be long, and a message may list many mistakes


def brief(message: str) -> str:
    """A message with the middle of names left out that nobody could read, whoever wrote them into it."""
    if len(message) > LONGEST_WORD:
        half = QUOTED // 2
        message = re.sub(rf"\S{{{LONGEST_WORD},}}", lambda word: f"{word[0][:half]}…{word[0][-half:]}", message)
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"


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
    """The one decorator of every compiled function: numba's `njit` that releases the GIL and keeps what it compiled.

    numba's own cache looks only at the function's file. A kernel contains the kernels it calls, so an edit of a called
    kernel would have no effect; `compiled_code` sees it. `options` are those of `njit`. `inner=True` says that only
    kernels call it: it gets no machine code of its own, which takes half of the time, and is kept in its callers.
    """
    if function is None:
        return partial(kernel, inner=inner, **options)
    refuse_other_systems()
    from numba import njit  # not at the top: `coverlay --help` needs no compiler

    function.kernel_options = options
    compiled = njit(nogil=True, **options)(function)
    if compiled is not function and _numba_is_tested():  # it is the function itself where NUMBA_DISABLE_JIT is set
        import numba_hooks

        numba_hooks.only_for_kernels(compiled) if inner else numba_hooks.keep(compiled)
    return compiled


@cache
def _numba_is_tested() -> bool:
    """Whether this is a version that our hooks were tested with; an error where kernels themselves do not work."""
    from numba import __version__ as found

    version, (oldest, beyond) = _numbers(found), NUMBA
    tested = f"Coverlay is tested with numba {oldest} to below {beyond}"
    if version < _numbers(oldest):
        raise CoverlayError(f"numba {found} is too old: {tested}")
    if version >= _numbers(beyond):
        warnings.warn(f"numba {found} is too new: {tested}; every process compiles all it needs again", stacklevel=3)
        return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def user_cache() -> Path:
    """The folder for files that can be made again, shared by all clones."""
    chosen = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # unchanged where no home is known
    if chosen.startswith("~"):
        return Path(tempfile.gettempdir()) / f"coverlay-{os.geteuid()}"
    return Path(chosen) / "coverlay"
