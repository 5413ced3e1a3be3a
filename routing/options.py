"""Checks of what a user wrote in an option: each returns the value, or raises one sentence about it.

Numbers arrive from TOML files, `--set key=value` and Python, so a number may be an int, a float, a NumPy
scalar or a mistake; booleans are refused as numbers although Python counts them as such.
"""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from coverlay import CoverlayError, did_you_mean, quoted


def whole(what: str, value: object, least: int, most: int | None = None) -> int:
    """`value` as an int in [least, most], or an error that says what is allowed."""
    allowed = "a whole number " + (f"of at least {least}" if most is None else f"from {least} to {most}")
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise CoverlayError(f"{what} is {quoted(value)}; it must be {allowed}")
    result = int(value)
    if result < least or (most is not None and result > most):
        raise CoverlayError(f"{what} is {quoted(result)}; it must be {allowed}")
    return result


def number(what: str, value: object, least: float = -math.inf, most: float = math.inf, *, above: bool = False) -> float:
    """`value` as a finite float in [least, most]; `above` leaves `least` itself out."""
    if math.isinf(least) and math.isinf(most):
        allowed = "a finite number"
    elif math.isinf(most):
        allowed = f"a finite number {'above' if above else 'of at least'} {least:g}"
    elif above:
        allowed = f"a number above {least:g} and at most {most:g}"
    else:
        allowed = f"a number from {least:g} to {most:g}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise CoverlayError(f"{what} is {quoted(value)}; it must be {allowed}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result) or result < least or result > most or (above and result == least):
        raise CoverlayError(f"{what} is {quoted(value)}; it must be {allowed}")
    return result


def accepted(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the keyword-only parameters of `function`: its options."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)


def reject_unknown(what: str, given: Mapping[str, object], known: tuple[str, ...], beside: Iterable[str] = ()) -> None:
    """Refuse the first option that nobody would read: an ignored option makes a wrong experiment.

    `beside`: other keys of the same section, which the user may have misspelt.
    """
    for name in given:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            hint = did_you_mean(name, (*known, *beside))
            raise CoverlayError(f"{what} has no option {quoted(name)}; its options are: {listed}{hint}")
