"""Statistics over seeds, on Spark: mean and 95 % t-interval per point, and paired differences.

Runs of one seed share their random numbers across the values of a swept parameter, so differences are taken
seed by seed first and averaged after: the seed's own luck cancels, and the interval of the difference is
much narrower than two separate intervals suggest. A difference is called one only when its interval leaves
out 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analysis.spark.t_quantile import MOST_DEGREES, quantiles

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# An interval from two seeds is 12.7 standard errors wide; from three 4.3, from five 2.8.
FEW_SEEDS = 3


def _interval(value: str) -> list[Column]:
    """n, mean, sd, and the half width of the 95 % interval, which one value alone does not have."""
    from pyspark.sql import functions as F

    n = F.count(value)
    table = F.array(*(F.lit(t) for t in quantiles()))
    t = F.get(table, F.least(n, F.lit(MOST_DEGREES + 1)).cast("int") - 2)
    sd = F.when(n > 1, F.stddev_samp(value))
    return [
        n.alias("n"),
        F.avg(value).alias("mean"),
        sd.alias("sd"),
        (t * sd / F.sqrt(n)).alias("half"),
        F.min(value).alias("min"),
        F.max(value).alias("max"),
    ]


def over_seeds(values: DataFrame) -> DataFrame:
    """From (point, metric, value), a value per seed: point, metric, n, mean, sd, low, high, min, max."""
    from pyspark.sql import functions as F

    grouped = values.groupBy("point", "metric").agg(*_interval("value"))
    return grouped.select("point", "metric", "n", "mean", "sd", *_bounds(F), "min", "max")


def paired(values: DataFrame, baselines: DataFrame) -> DataFrame:
    """Differences to another point, seed by seed, from (point, seed, metric, value) and (point, baseline).

    Gives point, baseline, metric, n, mean (of the differences), sd, low, high, effect, differs. `effect` is
    the mean difference in standard deviations of the differences (Cohen's d for paired samples); `differs`
    is null where there is no interval.
    """
    from pyspark.sql import functions as F

    base = values.select(F.col("point").alias("baseline"), "seed", "metric", F.col("value").alias("base"))
    pairs = (
        values.join(F.broadcast(baselines), "point")
        .where(F.col("point") != F.col("baseline"))
        .join(F.broadcast(base), ["baseline", "seed", "metric"])
        .withColumn("value", F.col("value") - F.col("base"))
    )
    grouped = pairs.groupBy("point", "baseline", "metric").agg(*_interval("value"))
    effect = F.try_divide("mean", "sd").alias("effect")
    differs = F.when(F.col("half").isNotNull(), F.abs("mean") > F.col("half")).alias("differs")
    return grouped.select("point", "baseline", "metric", "n", "mean", "sd", *_bounds(F), effect, differs)


def _bounds(functions: Any) -> list[Column]:
    mean, half = functions.col("mean"), functions.col("half")
    return [(mean - half).alias("low"), (mean + half).alias("high")]
