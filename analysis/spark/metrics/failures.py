"""Failures: how many, what was lost, and how long the network stays broken.

A failure or repair lasts until the next time at which everything is whole again; one that no such time follows has no
duration. Copies of events may be lost by the million: they are kept apart from what they would be sorted with.
"""

from __future__ import annotations

from analysis.spark.metrics.definition import Amount, Metric, Query, Totals, in_units, of_units, ratio, words
from broker.trace.buckets import TIME_UNIT
from broker.trace.schema import CONVERGED, FAILURES, LOST, PUBLISHER_DOWN, REPAIRS

COPIES_LOST = tuple(kind for kind in LOST if kind != PUBLISHER_DOWN)  # of events that count as published

OUTAGES = Query(
    "outages",
    f"""
    select run, kind, min(if(kind = '{CONVERGED}', time, null)) over (
        partition by run, kind in ({words(LOST)}) order by time range between current row and unbounded following
    ) - time lasted from faults""",
)


def _lasted(kinds: tuple[str, ...], name: str) -> str:
    lasted = f"if(kind in ({words(kinds)}), lasted, null)"
    return f"count({lasted}) {name}_ended, sum({in_units(lasted, TIME_UNIT)}) {name}_units"


FAULT_TOTALS = Totals(
    "fault_totals",
    f"""
    select run, count_if(kind in ({words(FAILURES)})) failures, count_if(kind in ({words(LOST)})) dropped,
        count_if(kind in ({words(COPIES_LOST)})) copies_lost,
        {_lasted(FAILURES, "outages")}, {_lasted(REPAIRS, "repairs")}
    from outages group by run""",
)

QUERIES = (OUTAGES, FAULT_TOTALS)

METRICS = (
    Amount("failures", "failures", "failures",
           "Brokers that crashed and links that were cut.",
           "count of faults of kind crash or cut"),
    Metric("outage_mean", "outage, mean", "ms",
           "Time from a failure until everything is whole again.",
           "mean over crash and cut of time of the next converged − time",
           ratio(of_units("outages_units", TIME_UNIT), "outages_ended")),
    Metric("repair_mean", "repair, mean", "ms",
           "Time from a restart or a healed link until everything is whole again.",
           "mean over restart and heal of time of the next converged − time",
           ratio(of_units("repairs_units", TIME_UNIT), "repairs_ended")),
    Amount("dropped", "lost event messages", "messages",
           "Copies of events lost to a full queue, a cut link or a crashed broker.",
           f"count of faults of kind {', '.join(LOST)}"),
)  # fmt: skip
