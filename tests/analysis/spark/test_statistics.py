"""Intervals over seeds and paired differences, against numbers from a table of Student's t."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from analysis.spark import statistics


@pytest.mark.parametrize(
    ("degrees", "t"), [(1, 12.70620), (2, 4.30265), (3, 3.18245), (9, 2.26216), (30, 2.04227), (120, 1.97993)]
)
def test_quantiles_agree_with_the_printed_table(degrees: int, t: float) -> None:
    assert statistics.quantile(degrees) == pytest.approx(t, abs=6e-6)


@pytest.mark.parametrize("degrees", [1, 2, 5, 8])
def test_the_distribution_agrees_with_integrating_its_density(degrees: int) -> None:
    scale = math.gamma((degrees + 1) / 2) / (math.sqrt(degrees * math.pi) * math.gamma(degrees / 2))
    steps, t = 20_000, 1.7
    xs = [(i + 0.5) * t / steps for i in range(steps)]
    area = 2 * scale * t / steps * sum((1 + x * x / degrees) ** (-(degrees + 1) / 2) for x in xs)
    assert statistics.two_sided(t, degrees) == pytest.approx(area, abs=1e-8)


def values(*rows: tuple[str, int, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["point", "seed", "value"]).assign(run="", metric="m")


def by_point(found: pd.DataFrame) -> dict[str, Any]:
    return {row["point"]: row for row in found.to_dict("records")}


def test_mean_and_interval_over_seeds() -> None:
    # One value of q is known: a mean, no interval. None of r is.
    rows = [("p", 1, 1.0), ("p", 2, 2.0), ("p", 3, 6.0), ("q", 1, 5.0), ("q", 2, math.nan), ("r", 1, math.nan)]
    found = by_point(statistics.over_seeds(values(*rows)))
    half = 4.302652729911275 * math.sqrt(7) / math.sqrt(3)
    names = ("n", "mean", "sd", "low", "high", "min", "max")
    assert [found["p"][name] for name in names] == pytest.approx([3, 3, math.sqrt(7), 3 - half, 3 + half, 1, 6])
    assert [found["q"][name] for name in names] == pytest.approx([1, 5, *[math.nan] * 3, 5, 5], nan_ok=True)
    assert [found["r"][name] for name in names] == pytest.approx([0, *[math.nan] * 6], nan_ok=True)


def test_pairing_finds_a_difference_that_separate_intervals_hide() -> None:
    # Seeds differ by tens, settings by one: the means' intervals overlap, the paired one leaves out 0.
    base = {1: 10.0, 2: 50.0, 3: 90.0}
    rows = [("base", seed, value) for seed, value in base.items()]
    rows += [("up", seed, value + 1 + 0.1 * (seed - 2)) for seed, value in base.items()]
    rows += [("same", seed, value + (seed - 2)) for seed, value in base.items()]
    alone = by_point(statistics.over_seeds(values(*rows)))
    assert alone["up"]["low"] < alone["base"]["mean"]
    found = by_point(statistics.paired(values(*rows), [("up", "f", "base"), ("same", "f", "base")]))
    assert set(found) == {"up", "same"}
    assert found["up"]["mean"] == pytest.approx(1.0)
    assert found["up"]["differs"] is True
    assert found["up"]["effect"] == pytest.approx(10.0)
    assert found["same"]["differs"] is False


def test_one_seed_shows_no_difference() -> None:
    found = statistics.paired(values(("base", 1, 1.0), ("up", 1, 9.0)), [("up", "f", "base")])
    assert found["mean"].tolist() == [8.0]
    assert found["differs"].tolist() == [None]


def test_a_sweep_of_one_point_has_no_differences() -> None:
    assert len(statistics.paired(values(("base", 1, 1.0)), [])) == 0
