"""The defaults of matchers' options, and whether a value has the type of one."""

from __future__ import annotations

import inspect
from functools import cache
from numbers import Integral, Real
from typing import Any, get_type_hints

import numpy as np

from coverlay import CoverlayError, Key, quoted


def declared(cls: type) -> dict[str, str]:
    """The options that a class declares as keyword-only parameters, with their meanings."""
    hints = get_type_hints(cls.__init__, include_extras=True)  # type: ignore[misc]
    names = [p.name for p in inspect.signature(cls).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    keys = {
        name: next((k for k in getattr(hints.get(name), "__metadata__", ()) if isinstance(k, Key)), None)
        for name in names
    }
    return {name: key.meaning if key else "" for name, key in keys.items()}


@cache
def default_of(option: str, built: tuple[Any, ...]) -> Any:
    """The default of a parameter, from the first of these classes, or of their bases, that has one."""
    for cls in (base for one in built if one for base in one.__mro__):
        parameter = inspect.signature(cls.__init__).parameters.get(option)
        if parameter is not None and parameter.default is not inspect.Parameter.empty:
            return parameter.default
    return None


def check_type(option: str, value: Any, default: Any) -> None:
    """Check early: a static structure receives its options when the first run is built, which may be never."""
    if isinstance(default, bool):
        fits, wanted = isinstance(value, bool | np.bool_), "true or false"
    elif isinstance(default, int):
        fits, wanted = isinstance(value, Integral) and not isinstance(value, bool), "a whole number"
    elif isinstance(default, float):
        fits, wanted = isinstance(value, Real) and not isinstance(value, bool), "a number"
    elif default is None:
        fits, wanted = value is None or (isinstance(value, Real) and not isinstance(value, bool)), "a number"
    else:
        return  # a name or a function: the class checks it
    if not fits:
        raise CoverlayError(f"{option} is {quoted(value)}; it must be {wanted}")
