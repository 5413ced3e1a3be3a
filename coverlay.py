"""What all packages share: the version and the one error type that reaches a user as a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__version__ = "0.1.0"


class CoverlayError(ValueError):
    """A mistake in what the user gave us.

    The message is one sentence that shows the offending value and says what is allowed. The command
    line prints it without a traceback and exits with status 2.
    """


def unknown_name(what: str, name: object, known: object) -> CoverlayError:
    """The error for a name that is not in a registry; `known` is any iterable of the valid names."""
    names = sorted(str(k) for k in known)  # type: ignore[attr-defined]
    return CoverlayError(f"unknown {what} {name!r}; there are: {', '.join(names)}{did_you_mean(name, names)}")


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """A hint at the one name that looks like a misspelt one, to end a sentence with; nothing if there is none."""
    close = get_close_matches(str(name), names, 1)
    return f"; did you mean {close[0]!r}?" if close else ""
