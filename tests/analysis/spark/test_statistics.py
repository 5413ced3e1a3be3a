"""Intervals over seeds and paired differences, against numbers from a table of Student's t."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pyspark.testing import assertDataFrameEqual

from analysis.spark import statistics, t_quantile


@pytest.mark.parametrize(
    ("degrees", "t"), [(1, 12.70620), (2, 4.30265), (3, 3.18245), (9, 2.26216), (30, 2.04227), (120, 1.97993)]
)
def test_quantiles_agree_with_the_printed_table(degrees: int, t: float) -> None:
    assert t_quantile.quantile(degrees) == pytest.approx(t, abs=6e-6)


@pytest.mark.parametrize("degrees", [1, 2, 5, 8])
def test_the_distribution_agrees_with_integrating_its_density(degrees: int) -> None:
    scale = math.gamma((degrees + 1) / 2) / (math.sqrt(degrees * math.pi) * math.gamma(degrees / 2))
    steps, t = 20_000, 1.7
    xs = [(i + 0.5) * t / steps for i in range(steps)]
    area = 2 * scale * t / steps * sum((1 + x * x / degrees) ** (-(degrees + 1) / 2) for x in xs)
    assert t_quantile.two_sided(t, degrees) == pytest.approx(area, abs=1e-8)


VALUES = "run string, point string, seed bigint, metric string, value double"


@pytest.mark.spark
def test_mean_and_interval_over_seeds(spark: Any) -> None:
    rows = [("", "p", seed, "m", value) for seed, value in ((1, 1.0), (2, 2.0), (3, 6.0))]
    rows += [("", "q", 1, "m", 5.0), ("", "q", 2, "m", None)]  # one value known: a mean, no interval
    found = statistics.over_seeds(spark.createDataFrame(rows, VALUES))
    half = 4.302652729911275 * math.sqrt(7) / math.sqrt(3)
    doubles = ", ".join(f"{name} double" for name in ("mean", "sd", "low", "high", "min", "max"))
    schema = f"point string, metric string, n bigint, {doubles}"
    expected = [("p", "m", 3, 3.0, math.sqrt(7), 3 - half, 3 + half, 1.0, 6.0)]
    expected += [("q", "m", 1, 5.0, None, None, None, 5.0, 5.0)]  # type: ignore[list-item]
    assertDataFrameEqual(found, spark.createDataFrame(expected, schema))


@pytest.mark.spark
def test_pairing_finds_a_difference_that_separate_intervals_hide(spark: Any) -> None:
    # Seeds differ by tens, settings by one: the means' intervals overlap, the paired one leaves out 0.
    base = {1: 10.0, 2: 50.0, 3: 90.0}
    rows = [("", "base", seed, "m", value) for seed, value in base.items()]
    rows += [("", "up", seed, "m", value + 1 + 0.1 * (seed - 2)) for seed, value in base.items()]
    rows += [("", "same", seed, "m", value + (seed - 2)) for seed, value in base.items()]
    values = spark.createDataFrame(rows, VALUES)
    baselines = spark.createDataFrame(
        [("base", "base"), ("up", "base"), ("same", "base")], "point string, baseline string"
    )
    alone = {row["point"]: row for row in statistics.over_seeds(values).collect()}
    assert alone["up"]["low"] < alone["base"]["mean"]
    found = {row["point"]: row for row in statistics.paired(values, baselines).collect()}
    assert set(found) == {"up", "same"}, "the baseline is not compared with itself"
    assert found["up"]["mean"] == pytest.approx(1.0)
    assert found["up"]["differs"] is True
    assert found["up"]["effect"] == pytest.approx(10.0)
    assert found["same"]["differs"] is False


@pytest.mark.spark
def test_one_seed_shows_no_difference(spark: Any) -> None:
    rows = [("", "base", 1, "m", 1.0), ("", "up", 1, "m", 9.0)]
    baselines = spark.createDataFrame([("up", "base")], "point string, baseline string")
    found = statistics.paired(spark.createDataFrame(rows, VALUES), baselines).first()
    assert found["mean"] == 8.0
    assert found["differs"] is None
