"""How tables, sentences and pages write a number, a duration, a value of an experiment file, and a list of names."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

UNKNOWN = "–"
LARGE = 1e9  # from here on powers of ten: nobody reads 17,709,270,733,157
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def value_text(value: Any) -> str:
    """A value from an experiment file as a table shows it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNKNOWN
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return value if isinstance(value, str) else json.dumps(value)


def number_text(number: Any, unit: str) -> str:
    if not known(number):
        return UNKNOWN
    if unit == "share":
        return f"{100 * number:.1f} %"
    if abs(number) >= LARGE:
        digits, _, exponent = f"{number:.2e}".partition("e")
        return f"{digits}×10{str(int(exponent)).translate(_RAISED)}"
    if abs(number) >= 100 or number == round(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def duration_text(milliseconds: Any) -> str:
    """In the usual unit for its size: 0.27 µs, 91.5 ms, 2.1 hours."""
    if not known(milliseconds):
        return UNKNOWN
    for size, unit in ((3.6e6, "hours"), (6e4, "minutes"), (1e3, "s"), (1.0, "ms")):  # the largest first
        if milliseconds >= size:
            return f"{milliseconds / size:{',.3g' if milliseconds < 1000 * size else ',.0f'}} {unit}"
    return f"{1000 * milliseconds:.3g} µs"


def per_second(rate: float) -> str:
    """A rate as people write it, also beyond a million."""
    return f"{float(f'{rate:.4g}'):,.0f}" if rate >= 1000 else f"{rate:.4g}"


def known(number: Any) -> bool:
    return number is not None and not math.isnan(number)


def and_all(names: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])
