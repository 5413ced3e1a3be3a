"""Service: how busy brokers are, how long messages wait for them, and what they spend their time on.

Only where `broker.service` takes time. The shares are known if it is `work` (see broker/work.py): searching for covers,
comparing events with neighbours' tables, matching a broker's own subscriptions; the rest is messages and bytes.

The load compares the work that events bring to a broker with the time in which they are published. The work is the
service of events, of answers and awards about them, and of control messages sent meanwhile, whenever the broker does
it. From 1 on there is more work than time, and the queue grows for as long as events come at that rate.
sim/capacity/load.py computes the same for a search that cannot wait for Spark.

A copy of an event that was lost brings no work to the brokers it would have come to. How much that would have been is
unknown, so where copies were lost, load and rate held are empty: more overload must not look like more capacity.
"""

from __future__ import annotations

import numpy as np

from analysis.spark.metrics.convergence import FAULTS
from analysis.spark.metrics.counts import CONTROL, PUBLICATIONS, REPLIES, ratio, totals
from analysis.spark.metrics.definition import Counted, Job, Metric, Values
from broker.trace.buckets import TIME_UNIT, WORK_UNIT
from broker.trace.schema import CLIENT, LOST, PUBLISHER_DOWN

SECOND = 1000.0  # in milliseconds
COPIES_LOST = tuple(kind for kind in LOST if kind != PUBLISHER_DOWN)  # of events that count as published


def service(run: Counted) -> Values:
    control, events, replies = run[CONTROL], run[PUBLICATIONS], run[REPLIES]
    brokers = np.unique(np.concatenate([rows["target"] for rows in (control, events, replies)]))
    of_events = [(rows["target"], rows["service"]) for rows in (events, replies)]
    busy = totals(brokers, (control["target"], control["service"]), *of_events) * WORK_UNIT
    asked = totals(brokers, (control["target"], control["asked"]), *of_events) * WORK_UNIT
    on_events = totals(brokers, *of_events).max(initial=0) * WORK_UNIT
    period = events["last"].max() - events["first"].min() if len(events["last"]) else None
    duration = run.run.record["finished"]
    waited, count = (sum(int(rows[name].sum()) for rows in (control, events, replies)) for name in ("waited", "count"))
    spent = {"covering": control["on_covering"], "tables": events["on_tables"], "matching": events["on_matching"]}
    takes_time, by_kind = busy.any(), any(units.any() for units in spent.values())
    faults = run[FAULTS]
    whole = not faults["count"][np.isin(faults["kind"], COPIES_LOST)].any()
    return {
        "utilisation_max": ratio(busy.max(), duration) if takes_time else None,
        "utilisation_mean": ratio(busy.sum(), duration * run.run.record["brokers"]) if takes_time else None,
        "event_rate_held": ratio(events["count"][events["source"] == CLIENT].sum() * SECOND, on_events)
        if whole
        else None,
        "event_load": ratio(asked.max(), period) if takes_time and whole else None,
        "queueing_delay": ratio(waited * TIME_UNIT, count),
        **{
            f"share_{what}": ratio(units.sum() * WORK_UNIT, busy.sum()) if by_kind else None
            for what, units in spent.items()
        },
    }


def _share(name: str, what: str) -> Metric:
    told = f"Part of the brokers' time spent on {what}."
    return Metric(f"share_{name}", f"time on {name}", "share", told, f"Σ on_{name} ÷ Σ service over all messages")


JOB = Job(service, (
    Metric("utilisation_max", "utilisation, busiest broker", "share",
           "Part of the run that the busiest broker spent serving messages.",
           "max over brokers of Σ service ÷ duration of the run"),
    Metric("utilisation_mean", "utilisation, mean", "share",
           "Part of the run that an average broker spent serving messages.",
           "Σ service ÷ (brokers · duration of the run)"),
    Metric("event_rate_held", "event rate held", "events/s",
           "Events per second, published at the same brokers as in this run, that leave the busiest broker no time: at "
           "a higher rate its queue grows without bound. Computed from the counted work; unknown if copies were lost.",
           "events published ÷ max over brokers of Σ service of publications and ranked messages without the event"),
    Metric("event_load", "load while events are published", "ratio",
           "Work of the busiest broker for the events, divided by the time in which they are published; from 1 on its "
           "queue grows for as long as they come. Unknown if copies of events were lost: what work they would have "
           "brought is not known.",
           "max over brokers of Σ service of events, and of control messages sent meanwhile, ÷ time from the first "
           "publication to the last"),
    Metric("queueing_delay", "queueing delay", "ms",
           "Time that an average message waits before its service begins, transmission included.",
           "mean of waited over control messages, publications and ranked messages without the event"),
    _share("covering", "searching for covers"),
    _share("tables", "comparing events with the tables of neighbours"),
    _share("matching", "finding the best of a broker's own subscriptions"),
))  # fmt: skip
