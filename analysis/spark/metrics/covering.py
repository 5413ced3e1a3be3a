"""Covering: how often brokers asked, what the search cost, and how many covers it found.

A *check* is one decision whether to send a subscription over a link (forwarded, exposed or suppressed). The
other outcomes are no checks: a retraction follows from such a decision, a merger invents a cover, and a dormant
subscription waits for an advertisement. They count neither as checks nor in the recall; only their search cost
counts. Decisions that sampling left out are counted through `decisions_rest`.

A search that found a cover knows that there is one, whether or not an exact search was asked too
(`covering.recall`). So missed covers are known only if every check says whether there was one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from analysis.spark.metrics.counts import each, in_units, ratio
from analysis.spark.metrics.definition import Amount, Count, Counted, Job, Metric, Rows, Values
from broker.trace.buckets import SHARE_UNIT, WORK_UNIT

MICROSECONDS = 1000.0  # in a millisecond
CHECKS = ("forwarded", "exposed", "suppressed")
_KEYS = ("outcome", "capped", "exact", "at_home")
_WORK = ("probes", "cubes", "runs", "pages", "round_trips")


def _decisions(rows: Rows) -> pa.Table:
    # Emulated searches count trillions of probes: their sum may not fit in 64 bits.
    work = {name: rows[name].cast(pa.float64(), safe=False) for name in _WORK}
    volume, took = in_units(rows["volume"], SHARE_UNIT), in_units(rows["took"], WORK_UNIT)
    keys = {name: rows[name] for name in _KEYS}
    return pa.table({**keys, "count": each(rows), **work, "volume": volume, "took": took})


DECISIONS = Count(
    "decisions", _KEYS, ("count", *_WORK, "volume", "took"), {"decisions": _decisions, "decisions_rest": _decisions}
)


def covering_work(run: Counted) -> Values:
    rows = run[DECISIONS]
    check = np.isin(rows["outcome"], CHECKS)
    suppressed, first = rows["outcome"] == "suppressed", rows["at_home"] == 1

    def count(chosen: Any) -> int:
        return int(rows["count"][chosen].sum())

    def per_check(name: str, unit: float = 1.0) -> float | None:
        return ratio(rows[name][check].sum() * unit, count(check))

    def covers(chosen: Any) -> tuple[int | None, int | None]:
        """Of these checks: how many found a cover, and how many had one."""
        if np.isnan(rows["exact"][chosen]).any():
            return None, None
        coverable = chosen & (rows["exact"] == 1)
        return count(coverable & suppressed), count(coverable)

    found, there = covers(check)
    return {
        "checks": count(check),
        "probes": rows["probes"].sum(),
        "probes_per_check": per_check("probes"),
        "check_time": per_check("took", WORK_UNIT * MICROSECONDS) if rows["took"].sum() else None,
        "pages_per_check": per_check("pages"),
        "round_trips_per_check": per_check("round_trips"),
        "cubes": rows["cubes"].sum(),
        "key_ranges": rows["runs"].sum(),
        "volume": per_check("volume", SHARE_UNIT),
        "capped": ratio(count(check & (rows["capped"] == 1)), count(check)),
        "recall": ratio(found, there),
        "missed_covers": None if found is None or there is None else there - found,
        "recall_first_hop": ratio(*covers(check & first)),
    }


JOB = Job(covering_work, (
    Amount("checks", "covering checks", "checks",
           "Decisions whether a subscription must be sent over a link.",
           "count of decisions forwarded, exposed or suppressed"),
    Amount("probes", "probes", "probes",
           "Stored entries or key ranges looked at by all searches, those of retractions and mergers included.",
           "Σ probes over decisions"),
    Metric("probes_per_check", "probes per check", "probes",
           "Search cost of an average covering check.",
           "Σ probes over checks ÷ checks"),
    Metric("check_time", "time per check", "µs",
           "What an average covering check takes, by the profile of broker.service; unknown for other kinds.",
           "mean of took over checks"),
    Metric("pages_per_check", "pages per check", "pages",
           "Pages of 4 KB that an average covering check would touch, were the index on disk.",
           "Σ pages over checks ÷ checks"),
    Metric("round_trips_per_check", "round trips per check", "round trips",
           "Round trips that an average covering check would take, were the index on another machine.",
           "Σ round_trips over checks ÷ checks"),
    Amount("cubes", "standard cubes", "cubes",
           "Standard cubes searched by curve methods; other methods have none.",
           "Σ cubes over decisions"),
    Amount("key_ranges", "key ranges", "ranges",
           "Ranges of curve keys searched, after neighbouring cubes were merged.",
           "Σ runs over decisions"),
    Metric("volume", "searched volume", "share",
           "Part of the search region that an average check searched; 1 is exhaustive.",
           "mean of volume over checks"),
    Metric("capped", "capped searches", "share",
           "Part of the checks that a probe cap or a budget ended before all possible covers were seen.",
           "capped checks ÷ checks"),
    Metric("recall", "recall of covering", "share",
           "Part of the checks with a cover in which this search found one; unknown if covering.recall = false.",
           "suppressed checks with a cover ÷ checks with a cover"),
    Metric("missed_covers", "missed covers", "checks",
           "Subscriptions sent although there was a cover: each is one needless entry at the neighbour.",
           "checks with a cover − suppressed checks with a cover"),
    Metric("recall_first_hop", "recall at the first hop", "share",
           "Recall of covering among the checks at the subscriber's own broker: later hops search again for what the "
           "first hop missed.",
           "suppressed checks with a cover ÷ checks with a cover, where the broker is the subscriber's"),
))  # fmt: skip
