"""Statistics over seeds: mean and 95 % t-interval per point, and paired differences.

Runs of one seed share their random numbers across the values of a swept parameter, so differences are taken
seed by seed first and averaged after: the seed's own luck cancels, and the interval of the difference is
much narrower than two separate intervals suggest. A difference counts as one only if its interval
leaves out 0.

The input is a value per run and metric, from Spark. Unknown values are ignored.

Student's t quantile is computed here, without a statistics library: for a whole number of degrees of freedom the
distribution has a finite closed form in θ = atan(t/√ν) (Abramowitz and Stegun, Handbook of Mathematical Functions,
26.7.3 and 26.7.4); we bisect it. Cost: ν/2 multiplications per step, 60 steps, once per process and ν.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

LEVEL = 0.95
# With more degrees of freedom the interval uses the quantile for this many, which is 0.4 % above the limit.
MOST_DEGREES = 300
# The interval of two seeds is ± 12.7 standard errors, of three ± 4.3, of five ± 2.8.
FEW_SEEDS = 3


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
        if two_sided(middle, min(degrees, MOST_DEGREES)) < LEVEL:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def over_seeds(values: pd.DataFrame) -> pd.DataFrame:
    """From (point, metric, value), with a row per seed: point, metric, n, mean, sd, low, high, min, max."""
    found = _intervals(values, ["point", "metric"])
    return found[["point", "metric", "n", "mean", "sd", "low", "high", "min", "max"]]


def paired(values: pd.DataFrame, baselines: Sequence[tuple[str, str, str]]) -> pd.DataFrame:
    """Differences to other points, seed by seed, from (point, seed, metric, value) and (point, factor, baseline).

    Gives point, factor, baseline, metric, n, mean (of the differences), sd, low, high, effect, differs. `effect` is
    the mean difference in standard deviations of the differences (Cohen's d for paired samples); `differs`
    is None where there is no interval.
    """
    pairs = values.merge(pd.DataFrame(baselines, columns=["point", "factor", "baseline"]), on="point")
    base = values.rename(columns={"point": "baseline", "value": "base"})[["baseline", "seed", "metric", "base"]]
    pairs = pairs.merge(base, on=["baseline", "seed", "metric"])
    pairs["value"] -= pairs["base"]
    found = _intervals(pairs, ["point", "factor", "baseline", "metric"])
    found["effect"] = (found["mean"] / found["sd"]).where(found["sd"] > 0)
    found["differs"] = [
        None if np.isnan(half) else abs(mean) > half for mean, half in zip(found["mean"], found["half"], strict=True)
    ]
    return found[["point", "factor", "baseline", "metric", "n", "mean", "sd", "low", "high", "effect", "differs"]]


def _intervals(values: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """n, mean, sd, min, max, and the 95 % interval with its half width (NaN for a single value)."""
    found = values.groupby(keys)["value"].agg(n="count", mean="mean", sd="std", min="min", max="max").reset_index()
    t = found["n"].map({n: quantile(n - 1) for n in set(found["n"]) if n > 1}).astype(float)
    half = t * found["sd"] / np.sqrt(found["n"])
    return found.assign(half=half, low=found["mean"] - half, high=found["mean"] + half)
