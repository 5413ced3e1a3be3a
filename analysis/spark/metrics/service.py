"""Service: how busy brokers are, how long messages wait for them, and what the time goes into.

Only where `broker.service` takes time. The shares are known where it is `work` (see broker/work.py): searching covers,
holding events against neighbours' tables, matching a broker's own subscriptions; what is left is messages and bytes.

The load is what events ask of a broker, whenever it gets to it: the time it served them, and what control messages were
sent meanwhile, against the time in which they were published. From 1 on it has more work than time, and its queue grows
for as long as events come at that rate. sim/capacity/load.py has the same for a search that cannot wait for Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.spark.metrics import counts
from analysis.spark.metrics.definition import Job, Metric
from broker.trace.buckets import TIME_UNIT, WORK_UNIT
from broker.trace.schema import CLIENT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SECOND = 1000.0  # in milliseconds


def service(control: DataFrame, publications: DataFrame, run: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    def total(name: str, unit: float) -> Column:
        return F.coalesce(F.sum(counts.in_units(name, unit)), F.lit(0)).alias(name)

    broker, none = F.col("target").alias("broker"), F.lit(0)
    parts = [total("waited", TIME_UNIT), total("service", WORK_UNIT), F.count("*").alias("count")]
    only_events = ("on_tables", "on_matching", "on_events", "published")
    first, last = F.min("published").alias("first"), F.max("published").alias("last")
    period = F.broadcast(publications.groupBy("run").agg(first, last))
    meanwhile = F.col("sent").between(F.col("first"), F.col("last"))
    asked = F.sum(F.when(meanwhile, counts.in_units("service", WORK_UNIT)).otherwise(0)).alias("asked")
    requests = (
        control.join(period, "run", "left").groupBy("run", broker).agg(*parts, total("on_covering", WORK_UNIT), asked)
    )
    events = publications.groupBy("run", broker).agg(
        *parts,
        none.alias("on_covering"),
        total("on_tables", WORK_UNIT),
        total("on_matching", WORK_UNIT),
        total("service", WORK_UNIT).alias("on_events"),
        F.count_if(F.col("source") == CLIENT).alias("published"),
    )
    both = requests.select("*", *(none.alias(name) for name in only_events)).unionByName(
        events.select("*", F.col("service").alias("asked"))
    )
    names = ("waited", "service", "count", "asked", "on_covering", *only_events)
    lengths = F.broadcast(run.select("run", "finished", "brokers"))
    each = both.groupBy("run", "broker").agg(*(F.sum(name).alias(name) for name in names)).join(lengths, "run")
    each = each.join(period, "run", "left")
    busy = F.sum("service")
    shares = [
        F.try_divide(F.sum(f"on_{what}"), busy).alias(f"share_{what}") for what in ("covering", "tables", "matching")
    ]
    return each.groupBy("run").agg(
        F.try_divide(F.max("service") * F.lit(WORK_UNIT), F.first("finished")).alias("utilisation_max"),
        F.try_divide(busy * F.lit(WORK_UNIT), F.first("finished") * F.first("brokers")).alias("utilisation_mean"),
        F.try_divide(F.sum("published") * F.lit(SECOND), F.max("on_events") * F.lit(WORK_UNIT)).alias(
            "event_rate_held"
        ),
        F.try_divide(F.max("asked") * F.lit(WORK_UNIT), F.first("last") - F.first("first")).alias("event_load"),
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
            "Part of the run that the busiest broker spent serving messages.",
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
            "event_rate_held",
            "event rate held",
            "events/s",
            "Events per second, published where they are in this run, that leave the busiest broker no time: at a "
            "higher rate its queue grows without bound. It follows from the work that was counted.",
            "events published ÷ max over brokers of Σ service of publications",
            ("publications.service", "publications.source"),
            "higher",
        ),
        Metric(
            "event_load",
            "load while events are published",
            "ratio",
            "What the busiest broker has to do for the events against the time in which they are published; from 1 on "
            "its queue grows for as long as they come.",
            "max over brokers of Σ service of events, and of control messages sent meanwhile, ÷ time from the first "
            "publication to the last",
            (*_SERVICE, "publications.published", "control.sent"),
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
