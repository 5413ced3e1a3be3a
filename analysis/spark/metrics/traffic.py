"""Traffic: control messages and event messages over links, and how many event messages were needless.

Messages between a client and its own broker do not cross a link and are not counted. Of messages before time 0 the
trace has only their number.
"""

from __future__ import annotations

from analysis.spark.metrics.definition import Amount, Metric, Query, Totals, in_units, ratio, words
from broker.trace.buckets import TIME_UNIT, WORK_UNIT
from broker.trace.schema import CLIENT

_BEFORE = " + Σ messages over preload operations"  # in formulas
# The control messages by what they are for; the kinds are those of the trace.
KINDS = {
    "subscribe_messages": ("subscribe", "rerank"),
    "unsubscribe_messages": ("unsubscribe",),
    "advertise_messages": ("advertise", "unadvertise"),
    "recovery_messages": ("start", "summary", "differs", "done"),
}

# What went from source to target, a client's messages to its own broker included. Requests before time 0 are in the
# trace but were never messages; their operations are the first ones. `asked`: served for those sent while events came.
_SERVICE, _WAITED = in_units("service", WORK_UNIT), in_units("waited", TIME_UNIT)
CONTROL_LINKS = Query(
    "control_links",
    f"""
    select run, source, target, count(*) messages,
        {", ".join(f"count_if(kind in ({words(kinds)})) {name}" for name, kinds in KINDS.items())},
        sum({_WAITED}) waited, sum({_SERVICE}) service, sum({in_units("on_covering", WORK_UNIT)}) on_covering,
        sum(if(sent between first_published and last_published, {_SERVICE}, 0)) asked
    from control join runs using (run) where source <> {CLIENT} or operation >= preloads
    group by run, source, target""",
)

EVENT_LINKS = Query(
    "event_links",
    f"""
    select run, source, target, count(*) messages, count_if(not useful) needless, sum({_WAITED}) waited,
        sum({_SERVICE}) service, sum({in_units("on_tables", WORK_UNIT)}) on_tables,
        sum({in_units("on_matching", WORK_UNIT)}) on_matching
    from publications group by run, source, target""",
)

# Messages about an event that do not carry it, where the k best of the whole network are served.
REPLIES = Query(
    "replies",
    f"""
    select run, target, count(*) messages, sum({_WAITED}) waited, sum({_SERVICE}) service
    from ranked where not carries group by run, target""",
)

CONTROL_TOTALS = Totals(
    "control_totals",
    f"""
    select run, sum(messages) control_messages, {", ".join(f"sum({name}) {name}" for name in KINDS)}
    from control_links where source <> {CLIENT} group by run""",
)

EVENT_TOTALS = Totals(
    "event_totals",
    f"""
    select run, sum(if(source <> {CLIENT}, messages, 0)) event_messages,
        sum(if(source <> {CLIENT}, needless, 0)) false_positives, sum(if(source = {CLIENT}, messages, 0)) published
    from event_links group by run""",
)

# For the pages that draw a run: the messages over each link, both directions together.
LINKS = Query(
    "drawn_links",
    f"""
    select run, least(source, target) broker, greatest(source, target) neighbour,
        sum(control) control, sum(events) events, sum(needless) needless
    from (select run, source, target, messages control, 0 events, 0 needless from control_links
          union all select run, source, target, 0, messages, needless from event_links)
    where source <> {CLIENT} and run in (select run from runs where drawn)
    group by run, least(source, target), greatest(source, target)""",
)

QUERIES = (CONTROL_LINKS, EVENT_LINKS, REPLIES, CONTROL_TOTALS, EVENT_TOTALS, LINKS)


def _of_kinds(name: str, what: str, before: bool = False) -> Metric:
    told = f"The part of the control messages that {what}."
    formula = f"count of control messages of kind {', '.join(KINDS[name])} whose source is a broker{_BEFORE * before}"
    sql = f"coalesce({name}, 0) + preload_messages" if before else ""
    return Amount(name, name.replace("_", " "), "messages", told, formula, sql)


METRICS = (
    Amount("control_messages", "control messages", "messages",
           "Subscriptions, unsubscriptions, advertisements and recovery messages over links.",
           f"count of control messages whose source is a broker{_BEFORE}",
           "coalesce(control_messages, 0) + preload_messages"),
    _of_kinds("subscribe_messages",
              "spread subscriptions and changes of rank, newly exposed ones and those before time 0 included", True),
    _of_kinds("unsubscribe_messages", "take subscriptions back"),
    _of_kinds("advertise_messages", "spread or take back advertisements"),
    _of_kinds("recovery_messages", "compare and repair tables after a failure"),
    Amount("event_messages", "event messages", "messages",
           "Copies of events sent over links.",
           "count of publications whose source is a broker"),
    Amount("false_positives", "false-positive forwards", "messages",
           "Event messages towards brokers behind which nothing matched.",
           "count of publications whose source is a broker and that are not useful"),
    Metric("false_positive_share", "false-positive share", "share",
           "The part of the event messages that was needless.",
           "false-positive forwards ÷ event messages",
           ratio("false_positives", "event_messages")),
)  # fmt: skip
