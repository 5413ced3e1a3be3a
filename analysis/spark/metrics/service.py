"""Service: how busy brokers are, how long messages wait for them, and what the time goes into.

Only where `broker.service` takes time. The shares are known where it is `work` (see broker/work.py): searching covers,
holding events against neighbours' tables, matching a broker's own subscriptions; what is left is messages and bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.spark.metrics import counts
from analysis.spark.metrics.definition import Job, Metric
from broker.trace.buckets import TIME_UNIT, WORK_UNIT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def service(control: DataFrame, publications: DataFrame, run: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    def total(name: str, unit: float) -> Column:
        return F.coalesce(F.sum(counts.in_units(name, unit)), F.lit(0)).alias(name)

    broker, none = F.col("target").alias("broker"), F.lit(0)
    parts = [total("waited", TIME_UNIT), total("service", WORK_UNIT), F.count("*").alias("count")]
    requests = control.groupBy("run", broker).agg(*parts, total("on_covering", WORK_UNIT))
    events = publications.groupBy("run", broker).agg(
        *parts, total("on_tables", WORK_UNIT), total("on_matching", WORK_UNIT)
    )
    both = requests.select("*", none.alias("on_tables"), none.alias("on_matching")).union(
        events.select("run", "broker", "waited", "service", "count", none, "on_tables", "on_matching")
    )
    sums = [
        F.sum(name).alias(name) for name in ("waited", "service", "count", "on_covering", "on_tables", "on_matching")
    ]
    each = both.groupBy("run", "broker").agg(*sums).join(F.broadcast(run.select("run", "finished", "brokers")), "run")
    busy = F.sum("service")
    shares = [
        F.try_divide(F.sum(f"on_{what}"), busy).alias(f"share_{what}") for what in ("covering", "tables", "matching")
    ]
    return each.groupBy("run").agg(
        F.try_divide(F.max("service") * F.lit(WORK_UNIT), F.first("finished")).alias("utilisation_max"),
        F.try_divide(busy * F.lit(WORK_UNIT), F.first("finished") * F.first("brokers")).alias("utilisation_mean"),
        counts.mean(F.sum("waited"), F.sum("count"), TIME_UNIT).alias("queueing_delay"),
        *shares,
    )


_SERVICE = ("control.service", "publications.service")
_SHARE = "share"


def _share(name: str, what: str, column: str) -> Metric:
    formula = f"Σ {column.split('.')[1]} ÷ Σ service over all messages"
    told = f"Part of the brokers' time that goes into {what}."
    return Metric(f"share_{name}", f"time on {name}", _SHARE, told, formula, (column, *_SERVICE), "neither")


JOB = Job(
    "service",
    ("control", "publications", "run"),
    service,
    (
        Metric(
            "utilisation_max",
            "utilisation, busiest broker",
            _SHARE,
            "Part of the run that the busiest broker spent serving messages; 1 and more means that it cannot keep up.",
            "max over brokers of Σ service ÷ duration of the run",
            (*_SERVICE, "run.finished"),
        ),
        Metric(
            "utilisation_mean",
            "utilisation, mean",
            _SHARE,
            "Part of the run that an average broker spent serving messages.",
            "Σ service ÷ (brokers · duration of the run)",
            (*_SERVICE, "run.finished", "run.brokers"),
        ),
        Metric(
            "queueing_delay",
            "queueing delay",
            "ms",
            "Time that an average message waits before its service begins, transmission included.",
            "mean of waited over control messages and publications",
            ("control.waited", "publications.waited"),
        ),
        _share("covering", "searching covers", "control.on_covering"),
        _share("tables", "holding events against the tables of neighbours", "publications.on_tables"),
        _share("matching", "finding the best of a broker's own subscriptions", "publications.on_matching"),
    ),
)
