"""Traffic: control messages and event messages over links, and how many event messages were needless.

Messages between a client and its own broker do not cross a link and are not counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.spark.metrics.convergence import OPERATIONS
from analysis.spark.metrics.counts import CONTROL, PUBLICATIONS, ratio, totals
from analysis.spark.metrics.definition import Amount, Columns, Counted, Job, Metric, Values
from broker.trace.schema import CLIENT

_BEFORE = " + Σ messages over preload operations"  # in formulas: messages before time 0
# The control messages by what they are for; the kinds are those of the trace.
KINDS = {
    "subscribe_messages": ("subscribe", "rerank"),
    "unsubscribe_messages": ("unsubscribe",),
    "advertise_messages": ("advertise", "unadvertise"),
    "recovery_messages": ("start", "summary", "differs", "done"),
}


def control_traffic(run: Counted) -> Values:
    rows, asked = run[CONTROL], run[OPERATIONS]
    over_links = rows["source"] != CLIENT
    # Of messages before time 0 the trace has only the number per request.
    before = int(asked["messages"][asked["kind"] == "preload"].sum())
    found = {name: int(rows["count"][over_links & np.isin(rows["kind"], of)].sum()) for name, of in KINDS.items()}
    found["subscribe_messages"] += before
    return {"control_messages": int(rows["count"][over_links].sum()) + before, **found}


def event_traffic(run: Counted) -> Values:
    rows = run[PUBLICATIONS]
    over_links = rows["source"] != CLIENT
    messages, needless = rows["count"][over_links].sum(), rows["needless"][over_links].sum()
    return {"event_messages": messages, "false_positives": needless, "false_positive_share": ratio(needless, messages)}


def per_link(run: Counted) -> Columns:
    """broker, neighbour, control, events, needless: the messages over each link, both directions together."""
    control, events = run[CONTROL], run[PUBLICATIONS]
    of_control, of_events = _links(control), _links(events)
    links = np.unique(np.concatenate([of_control, of_events]))
    links = links[links >= 0]
    return {
        "broker": (links >> 32).astype(np.int32),
        "neighbour": (links & (2**32 - 1)).astype(np.int32),
        "control": totals(links, (of_control, control["count"])),
        "events": totals(links, (of_events, events["count"])),
        "needless": totals(links, (of_events, events["needless"])),
    }


def _links(rows: Columns) -> NDArray[np.int64]:
    """The link of each row as one number, whatever the direction; −1 where the message did not cross one."""
    ends = np.sort(np.stack([rows["source"], rows["target"]]).astype(np.int64), axis=0)
    return np.where(rows["source"] == CLIENT, -1, ends[0] << 32 | ends[1])


def _of_kinds(name: str, what: str, besides: str = "") -> Metric:
    told = f"The part of the control messages that {what}."
    formula = f"count of control messages of kind {', '.join(KINDS[name])} whose source is a broker{besides}"
    return Amount(name, name.replace("_", " "), "messages", told, formula)


CONTROL_JOB = Job(control_traffic, (
    Amount("control_messages", "control messages", "messages",
           "Subscriptions, unsubscriptions, advertisements and recovery messages over links.",
           f"count of control messages whose source is a broker{_BEFORE}"),
    _of_kinds("subscribe_messages",
              "spread subscriptions and changes of rank, newly exposed ones and those before time 0 included", _BEFORE),
    _of_kinds("unsubscribe_messages", "take subscriptions back"),
    _of_kinds("advertise_messages", "spread or take back advertisements"),
    _of_kinds("recovery_messages", "compare and repair tables after a failure"),
))  # fmt: skip

EVENT_JOB = Job(event_traffic, (
    Amount("event_messages", "event messages", "messages",
           "Copies of events sent over links.",
           "count of publications whose source is a broker"),
    Amount("false_positives", "false-positive forwards", "messages",
           "Event messages towards brokers behind which nothing matched.",
           "count of publications whose source is a broker and that are not useful"),
    Metric("false_positive_share", "false-positive share", "share",
           "The part of the event messages that was needless.",
           "false-positive forwards ÷ event messages"),
))  # fmt: skip
