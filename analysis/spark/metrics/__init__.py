"""The catalogue of metrics: every number of a report, with its definition, its formula and its SQL.

To add one, describe it with a `Metric` in a module here: the aggregation, the summary and the report then include it.
Its SQL is an expression over the totals of a run; if they are not enough, add a column to a query of the module.
A metric of a plug-in is a function: see `register_metric`.

- `definition`: what a query and a metric are
- `table_size`, `traffic`, `covering`, `missed_covers`: what brokers keep, send, search, and fail to find
- `durations`, `ranked`, `truth`: what arrived and how fast, the k best of the network, what the oracle found
- `service`, `over_time`, `failures`: who has how much to do, when, and how long until all is whole again
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from analysis.spark.metrics import (
    covering,
    durations,
    failures,
    missed_covers,
    over_time,
    ranked,
    service,
    table_size,
    traffic,
    truth,
)
from analysis.spark.metrics.definition import Compute, Metric, Query, Totals
from broker.trace.schema import ALL
from coverlay import Registry, unknown_name

_OF_METRICS = (table_size, traffic, covering, durations, ranked, service, failures)
_OF_PICTURES = (over_time, missed_covers)

QUERIES: dict[str, Query] = {query.name: query for module in (*_OF_METRICS, *_OF_PICTURES) for query in module.QUERIES}
TOTALS = tuple(query for query in QUERIES.values() if isinstance(query, Totals))
CATALOGUE: Registry[Metric] = Registry(
    "metric", {metric.name: metric for module in (*_OF_METRICS, truth) for metric in module.METRICS}
)
OURS = frozenset(CATALOGUE)  # without those that are registered


def metric(name: str) -> Metric:
    """The metric of that name, or an error that lists all names."""
    if name not in CATALOGUE:
        raise unknown_name("metric", name, CATALOGUE)
    return CATALOGUE[name]


def describe(known: Metric) -> None:
    """Let reports show a metric that results have, but that nobody registered here, so that it cannot be computed."""
    if known.name not in CATALOGUE:
        CATALOGUE[known.name] = known


def computed() -> list[str]:
    """The metrics that an aggregation gives."""
    return [name for name, known in CATALOGUE.items() if name in OURS or known.compute is not None]


def all_metrics() -> Query:
    """A row per run with every metric whose SQL is known here."""
    known = [CATALOGUE[name] for name in computed() if CATALOGUE[name].compute is None]
    joined = " ".join(f"left join {query.name} using (run)" for query in TOTALS)
    return Query("metrics", f"select run, {', '.join(map(_column, known))} from runs {joined}")


def _column(metric: Metric) -> str:
    value = f"cast({metric.sql or metric.name} as double)"
    if metric.empty is not None:
        value = f"coalesce({value}, {metric.empty:e})"
    return f"{value} {metric.name}"


def register_metric(
    *,
    title: str,
    unit: str,
    definition: str,
    formula: str,
    reads: Sequence[str],
    empty: float | None = None,
    signed: bool = False,
) -> Callable[[Compute], Compute]:
    """Register a function as a metric: from the trace tables to a lazy DataFrame of `run` and the value.

        @analysis.register_metric(title="far deliveries", unit="share", definition="Deliveries after three hops.",
                                  formula="count(hops > 3) ÷ count", reads=["deliveries"])
        def far(trace):
            return trace("deliveries").groupBy("run").agg(F.avg((F.col("hops") > 3).cast("double")).alias("far"))

    It has the name of the function and is in every result from then on. `reads` names the tables it may ask for;
    `empty` is the value of a run without a row (None: unknown), `signed` says that it can be below 0.
    """
    for table in reads:
        if table not in ALL:
            raise unknown_name("trace table", table, ALL)

    def register(function: Compute) -> Compute:
        name = function.__name__
        if name in CATALOGUE and name not in OURS and CATALOGUE[name].compute is None:
            del CATALOGUE[name]  # it was only described
        made = Metric(
            name, title, unit, definition, formula, signed=signed, empty=empty, compute=function, reads=tuple(reads)
        )
        CATALOGUE.add(name, made, function)
        return function

    return register


__all__ = [
    "CATALOGUE",
    "OURS",
    "QUERIES",
    "TOTALS",
    "Metric",
    "Query",
    "all_metrics",
    "computed",
    "describe",
    "metric",
    "register_metric",
]
