"""Values that break number code, drawn the same way for every index: few per case, so that they meet each other.

A case is drawn from a palette of a handful of values and their neighbours: ties, equal bounds and bounds one float
apart are then common. `DRAWS` is how many cases a test compares: seconds of them in `make test`, thousands in
`make test-slow`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

LARGEST, LEAST = sys.float_info.max, 5e-324
NANOSECONDS = 1_700_000_000_000_000_000.0  # a timestamp of today; floats are 256 apart there
FINITE = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    7.0,
    100.0,
    LEAST,
    -LEAST,
    2.2e-308,
    1e-300,
    -1e-300,
    1e300,
    -1e300,
    LARGEST,
    -LARGEST,
    2.0**52,
    2.0**53 - 1,
    2.0**53,
    2.0**53 + 2,
    -(2.0**53) - 2,
    NANOSECONDS,
    NANOSECONDS + 256,
    NANOSECONDS + 1e6,
)
IDS = (-(2**63), -(2**63) + 1, -(2**53) - 1, -1, 0, 1, 7, 2**31, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1)

QUICK, MANY = 20, 2000
DRAWS = pytest.mark.parametrize("draws", [QUICK, pytest.param(MANY, marks=pytest.mark.slow)])


def cases(count: int, family: int) -> Iterator[tuple[int, np.random.Generator]]:
    """The number of each case and the chance it is drawn with; every family of methods has its own."""
    return ((draw, np.random.default_rng([draw, family])) for draw in range(count))


def palette(rng: np.random.Generator) -> list[float]:
    """A few values, some of them neighbours."""
    chosen = rng.choice(FINITE, rng.integers(2, 6)).tolist()
    near = [math.nextafter(v, rng.choice([-math.inf, math.inf])) for v in chosen if rng.random() < 0.4]
    return [v for v in (*chosen, *near) if math.isfinite(v)]


def interval(rng: np.random.Generator, values: Sequence[float]) -> tuple[float, float]:
    """Closed bounds: equal ones, ±inf on either side, and now and then only an infinity."""
    kind = rng.random()
    if kind < 0.2:
        return (one(rng, values),) * 2
    if kind < 0.25:
        return (rng.choice([-math.inf, math.inf]).item(),) * 2
    low, high = sorted((one(rng, values), one(rng, values)))
    return (-math.inf if rng.random() < 0.15 else low, math.inf if rng.random() < 0.15 else high)


def one(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def distinct_ids(rng: np.random.Generator, count: int) -> list[int]:
    """From both ends of int64 and between them."""
    more = (int(rng.integers(-(2**63), 2**63 - 1)) for _ in range(count))
    return list(dict.fromkeys([*rng.permutation(np.array(IDS)).tolist(), *more]))[:count]


def tell(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Say what was compared, whether or not pytest shows output."""
    with capsys.disabled():
        sys.stdout.write(f"\n{text}\n")
