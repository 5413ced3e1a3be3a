"""What all packages share: the version, the error that reaches a user as a sentence, `Key`, `kernel` and `Registry`."""

from __future__ import annotations

import inspect
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

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

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the sentence; with COVERLAY_TRACEBACK=1 where it came from, too."""
        whole = os.environ.get("COVERLAY_TRACEBACK") == "1"
        return traceback.format_exception(self) if whole else [f"CoverlayError: {self}"]


class BrokenGuarantee(RuntimeError):
    """Something happened that must never happen, whatever the user gave: a mistake of ours, or of a plug-in."""


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


# ── registries, and what plug-ins add to them ──────────────────────────────────────────────────────────────

T = TypeVar("T")
S = TypeVar("S")
OUR_FILES = Path(__file__).resolve().parent


class Registry(dict[str, T]):
    """What there is of one kind, by name: ours, and what plug-ins register beside it.

    `facts`: what a registered class must say of itself, with what it may say. Nobody else knows names.
    """

    def __init__(self, what: str, ours: Mapping[str, T], facts: Mapping[str, Iterable[object]] | None = None) -> None:
        super().__init__(ours)
        self.what, self.facts = what, dict(facts or {})
        self.written: dict[str, Any] = {}  # name → the class or function that a plug-in registered under it

    def add(self, name: str, entry: T, written: Any = None) -> None:
        """Add an entry under a new name; `written`: what the plug-in wrote, if the entry is made from that."""
        written = entry if written is None else written
        where = place_of(written)
        if not isinstance(name, str) or not name:
            raise CoverlayError(f'{where}: {_called(written)} has no name; give it one: name = "…"')
        if name in self and not is_same(written, self.written.get(name)):
            owner = self.written.get(name, self[name])
            taken = f"there is a {self.what} {name!r} already, in {place_of(owner)}"
            raise CoverlayError(f"{where}: {taken}; choose another name")
        self[name], self.written[name] = entry, written

    def add_class(self, cls: Any, base: Any) -> None:
        """Add a class under the name that it gives itself."""
        if not (isinstance(cls, type) and issubclass(cls, base)):
            raise CoverlayError(f"{place_of(cls)}: a {self.what} is a subclass of {base.__name__}, not {_called(cls)}")
        for fact, allowed in self.facts.items():
            own = (vars(parent)[fact] for parent in cls.__mro__ if parent is not base and fact in vars(parent))
            said, allowed = next(own, None), tuple(allowed)
            may_be = f"it is one of: {', '.join(map(str, allowed))}" if allowed else "every plug-in has its own"
            if said is None or (fact == "name" and "name" not in vars(cls)):
                raise CoverlayError(f"{place_of(cls)}: {cls.__name__} does not say its {fact!r}; {may_be}")
            if allowed and said not in allowed:
                raise CoverlayError(f"{place_of(cls)}: {cls.__name__} says {fact} = {quoted(said)}; {may_be}")
        made: Any = cls
        self.add(made.name, made)

    def add_function(self, function: Any, entry: T | None = None) -> None:
        """Add a function under its own name, with - for _."""
        if not callable(function) or isinstance(function, type):
            raise CoverlayError(f"{place_of(function)}: a {self.what} is a function, not {_called(function)}")
        made: Any = function if entry is None else entry
        self.add(function.__name__.replace("_", "-"), made, function)

    def check_options(self, section: str, name: str, options: Mapping[str, Any]) -> None:
        """Refuse a value that is not of the type that a plug-in declares for its option."""
        written = self.written.get(name)
        if written is None:
            return  # ours check more than the type themselves
        takes = vars(written).get("__init__", written) if isinstance(written, type) else written
        hints = get_type_hints(takes)
        for option, value in options.items():
            wanted = hints.get(option)
            fits, allowed = _of_type(value, wanted)
            if not fits:
                raise CoverlayError(f"{section}.{option} is {quoted(value)}; it must be {allowed}")


_IN_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _of_type(value: Any, wanted: Any) -> tuple[bool, str]:
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool), _IN_WORDS[float]
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool), _IN_WORDS[int]
    return (isinstance(value, wanted), _IN_WORDS[wanted]) if wanted in _IN_WORDS else (True, "")


def _called(thing: Any) -> str:
    return getattr(thing, "__name__", None) or quoted(thing)


def is_same(new: Any, old: Any) -> bool:
    """The same class of an edited file, or of a cell that was run again."""
    return old is not None and (new.__qualname__, file_of(new).name) == (old.__qualname__, file_of(old).name)


def file_of(thing: Any) -> Path:
    """The file that a class or function was written in."""
    found = sys.modules.get(getattr(thing, "__module__", ""), None)
    code = getattr(thing, "__code__", None)
    return Path(code.co_filename if code is not None else getattr(found, "__file__", None) or "this session")


def place_of(thing: Any) -> str:
    """Where a class or function is written: `mine.py, line 3`."""
    if not callable(thing):
        return "Coverlay"
    file = file_of(thing)
    named = str(file.relative_to(OUR_FILES)) if OUR_FILES in file.parents else file.name
    try:
        line = inspect.getsourcelines(thing)[1]
    except (OSError, TypeError):
        return named
    return f"{named}, line {line}"


class Broken(AssertionError):
    """A method does not do what all of its kind do; `example`: the lines of code that show it."""

    def __init__(self, what: str, example: Iterable[str] = ()) -> None:
        super().__init__(what)
        self.what, self.example = what, tuple(example)


def smallest(steps: Sequence[S], broken: Callable[[Sequence[S]], bool]) -> list[S]:
    """As few of these steps as still break something: any of them is left out that is not needed."""
    kept, at = list(steps), 0
    while at < len(kept):
        without = kept[:at] + kept[at + 1 :]
        if broken(without):
            kept = without
        else:
            at += 1
    return kept
