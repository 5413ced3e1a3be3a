"""What all packages share: the version and the one error type that reaches a user as a sentence."""

__version__ = "0.1.0"


class CoverlayError(ValueError):
    """A mistake in what the user gave us.

    The message is one sentence that shows the offending value and says what is allowed. The command
    line prints it without a traceback and exits with status 2.
    """


def unknown_name(what: str, name: object, known: object) -> CoverlayError:
    """The error for a name that is not in a registry; `known` is any iterable of the valid names."""
    listed = ", ".join(sorted(str(k) for k in known))  # type: ignore[attr-defined]
    return CoverlayError(f"unknown {what} {name!r}; there are: {listed}")
