"""Load over time: what each broker did in each part of a run, for the runs that the report draws.

A run is cut into BINS bins of equal width. Per broker and bin: the messages whose service began in it and how long they
had waited, how long the broker was busy, and the time that messages spent waiting. From these follow the mean wait, the
share of the time that a broker was busy, and the mean number of messages waiting. A wait or a service may last for many
bins; each bin gets the part within it. So a queue that is worked off falls, though its last message waited longest.

Only for runs in which messages take time or wait (`takes_time`).
"""

from __future__ import annotations

from analysis.spark.metrics.definition import Query, in_units, of_units
from broker.trace.buckets import TIME_UNIT
from broker.trace.schema import CLIENT

BINS = 40
COLUMNS = frozenset(("broker", "start", "width", "messages", "events", "waited", "queued", "busy"))  # of the results

SERVICES = Query(
    "services",
    f"""
    select run, target broker, time, coalesce(waited, 0) waited, coalesce(service, 0) service, false is_event
        from control join runs using (run) where drawn and (source <> {CLIENT} or operation >= preloads)
    union all select run, target, time, coalesce(waited, 0), coalesce(service, 0), true
        from publications where run in (select run from runs where drawn)
    union all select run, target, time, coalesce(waited, 0), coalesce(service, 0), false
        from ranked where run in (select run from runs where drawn) and not carries""",
)


def _bin(time: str) -> str:
    return f"cast(greatest(0, least({BINS - 1}, floor(({time}) / width))) as int)"


def _within(start: str, end: str) -> str:
    """How much of this time lies in the bin, in whole units."""
    part = f"greatest(0e0, least({end}, (bin + 1) * width) - greatest({start}, bin * width))"
    return of_units(f"sum({in_units(part, TIME_UNIT)})", TIME_UNIT)


# A row for each bin that a message waited or was served in; what lasts to the end of the run is in the last bin.
TIMES = Query(
    "drawn_times",
    f"""
    select run, broker, bin * width start, width, count_if(bin = began) messages,
        count_if(bin = began and is_event) events,
        {of_units(f"sum(if(bin = began, {in_units('waited', TIME_UNIT)}, 0))", TIME_UNIT)} waited,
        {_within("time - waited", "time")} queued, {_within("time", "ended")} busy
    from (select *, {_bin("time")} began, explode(sequence({_bin("time - waited")}, {_bin("ended")})) bin
          from (select *, finished / {BINS} width, least(time + service, finished) ended
                from services join runs using (run) where takes_time))
    group by run, broker, bin, width
    having messages > 0 or queued > 0 or busy > 0""",
)

QUERIES = (SERVICES, TIMES)
