"""Student's t quantile for a 95 % interval, exactly, without a statistics library.

For a whole number of degrees of freedom the distribution has a finite closed form in θ = atan(t/√ν)
(Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4); we bisect it. Cost: ν/2
multiplications per step, 60 steps, once per process.
"""

from __future__ import annotations

import math
from functools import cache

LEVEL = 0.95
# Beyond this many seeds the interval uses the largest tabulated value, which is 0.3 % wider than the limit.
MOST_DEGREES = 300


def two_sided(t: float, degrees: int) -> float:
    """P(|T| ≤ t) for T with `degrees` degrees of freedom."""
    theta = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(theta), math.cos(theta)
    if degrees == 1:
        return 2 * theta / math.pi
    odd = degrees % 2
    term = cosine if odd else 1.0
    total = term
    for k in range(2 + odd, degrees - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2 / math.pi * (theta + sine * total) if odd else sine * total


@cache
def quantile(degrees: int) -> float:
    """The t with P(|T| ≤ t) = 95 %."""
    low, high = 1.0, 13.0  # 12.706 is the largest, at one degree of freedom
    for _ in range(60):
        middle = (low + high) / 2
        if two_sided(middle, degrees) < LEVEL:
            low = middle
        else:
            high = middle
    return (low + high) / 2
