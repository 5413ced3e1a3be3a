"""What the options of several methods must be."""

from __future__ import annotations

from coverlay import CoverlayError


def check_limit(option: str, value: object) -> None:
    """A limit on the work of a search."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise CoverlayError(f"{option} {value!r} must be a whole number of at least 1")
