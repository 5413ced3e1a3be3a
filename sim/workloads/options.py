"""What an option may be, declared with its type: `spread: NotNegative = 0.05`, checked before a generator is called."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

from coverlay import CoverlayError, Key, quoted
from routing.options import number, whole


class Range(NamedTuple):
    """From `least` (not included if `above`) to `most`."""

    least: float = 0
    most: float = math.inf
    above: bool = False


NotNegative = Annotated[float, Range()]
Positive = Annotated[float, Range(above=True)]
Share = Annotated[float, Range(0, 1)]
Count = Annotated[int, Range(1)]
Several = Annotated[int, Range(2)]


def parts_of(hint: Any) -> Iterator[Any]:
    """A type and, where it is a union, its members: a range may be declared with any of them."""
    yield hint
    for part in get_args(hint):
        if get_args(part):
            yield from parts_of(part)


def checked(section: str, takes: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, checked against what `takes`, a function or dataclass with keyword-only parameters, declares."""
    hints = get_type_hints(takes, include_extras=True)
    return {name: _checked(f"{section}.{name}", hints[name], value) for name, value in options.items()}


def _checked(key: str, hint: Any, value: Any) -> Any:
    for part in parts_of(hint):
        for allowed in getattr(part, "__metadata__", ()):
            if isinstance(allowed, Key):
                continue
            if part.__origin__ is int:
                return whole(key, value, allowed.least, None if math.isinf(allowed.most) else allowed.most)
            if part.__origin__ is float:
                return number(key, value, allowed.least, allowed.most, above=allowed.above)
            if value not in allowed:  # names
                raise CoverlayError(f"{key} is {quoted(value)}; it must be one of: {', '.join(allowed)}")
    return value  # the generator checks it itself
