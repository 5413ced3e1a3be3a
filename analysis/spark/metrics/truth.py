"""Truth: what the oracle outside the brokers found, taken from the run's record; and what was dropped.

The counts in MUST_BE_ZERO must be 0 in every run. Deliveries lost while a subscription was still on its way, to a full
queue or during a failure are expected in such scenarios and are counted apart.
"""

from __future__ import annotations

import numpy as np

from analysis.spark.metrics.convergence import FAULTS
from analysis.spark.metrics.counts import ratio
from analysis.spark.metrics.definition import Amount, Counted, Job, Metric, Values
from broker.trace.schema import LOSSES, LOST, MUST_BE_ZERO


def truth(run: Counted) -> Values:
    record = run.run.record
    judged = record.get("judged_share")
    if judged is None:
        judged = 1.0  # earlier versions judged everything
    return {
        **{name: record.get(name) if judged else None for name in (*MUST_BE_ZERO, *LOSSES)},
        "judged_share": judged,
        # Earlier versions did not count what was due.
        "delivery_ratio": ratio(record["due_delivered"], record["due"]) if record.get("due") is not None else None,
        "control_per_event": ratio(record["control_messages"], record["events"]),
        "simulated_time": record["finished"],
        "wall_seconds": record["wall_seconds"],
    }


def drops(run: Counted) -> Values:
    rows = run[FAULTS]
    return {"dropped": rows["count"][np.isin(rows["kind"], LOST)].sum()}


def _from_record(name: str, title: str, definition: str, unit: str = "deliveries") -> Metric:
    return Metric(name, title, unit, definition, f"run record: {name}")


TRUTH_JOB = Job(truth, (
    _from_record("missed", "missed deliveries", "Required deliveries that did not happen; must be 0."),
    _from_record("duplicates", "duplicate deliveries", "Deliveries that happened more than once; must be 0."),
    _from_record("spurious", "spurious deliveries", "Deliveries of events that do not match; must be 0."),
    _from_record("strays", "stray events",
                 "Events sent over a link although nothing in the routing table matched them; must be 0. Unknown if "
                 "subscriptions existed before time 0.", "messages"),
    _from_record("wrong_times", "wrong times",
                 "Hops and deliveries whose recorded time is not the sum of the links and waits on their way, and "
                 "messages served while their broker served another; must be 0.", "records"),
    _from_record("unaccounted", "unaccounted deliveries",
                 "How far due deliveries are from those delivered plus those missed for any cause; must be 0."),
    _from_record("missed_transient", "missed while converging",
                 "Deliveries missed because the subscription was still on its way when the event was published."),
    _from_record("missed_dropped", "missed after a drop",
                 "Deliveries missed because a full queue dropped a copy of the event."),
    _from_record("missed_fault", "missed during a failure",
                 "Deliveries missed while something was down or being repaired."),
    _from_record("missed_refused", "refused at the publisher's broker",
                 "Deliveries missed because the publisher's own broker had no room for the event."),
    _from_record("missed_unpublished", "publisher's broker down",
                 "Deliveries missed because the publisher's own broker was down."),
    _from_record("judged_share", "judged events",
                 "Share of the events whose deliveries the oracle judged; its counts are of these.", "share"),
    Metric("delivery_ratio", "delivery ratio", "share",
           "Share of the due deliveries that were made. Due are those to the k best subscriptions in force, of every "
           "event that a client tried to publish: what is lost for whatever reason counts.",
           "run record: due_delivered ÷ due"),
    Metric("control_per_event", "control messages per event", "messages",
           "What it costs per event of the workload to keep the routing tables up to date.",
           "control messages over links ÷ events"),
    Metric("simulated_time", "simulated time", "ms",
           "Simulated time when nothing was under way any more.",
           "run record: finished"),
    _from_record("wall_seconds", "run time", "Real time that the simulation took; depends on the machine.", "s"),
))  # fmt: skip

DROPS_JOB = Job(drops, (
    Amount("dropped", "lost event messages", "messages",
           "Copies of events lost to a full queue, a cut link or a crashed broker.",
           f"count of faults of kind {', '.join(LOST)}"),
))  # fmt: skip
