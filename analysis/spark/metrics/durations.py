"""Durations and their percentiles: of deliveries, of waiting on links, and of requests until they have converged.

A percentile is the value at the nearest rank: of 10 values the 95th percentile is the 10th. It is found in two steps,
so that Spark sorts few rows however many there are. Rows are counted by bucket (broker/trace/buckets.py), which says in
which bucket the value is, and at which place in it; then the rows of this bucket alone are looked at. Of deliveries
that sampling added up only the bucket is known: then the percentile is its middle, within 0.4 %.
"""

from __future__ import annotations

from analysis.spark.metrics.definition import Amount, Metric, Query, Totals, in_units, of_units, ratio
from broker.trace.buckets import EXPONENT_BIAS, PARTS, RELATIVE_ERROR, SUBBITS, TIME_UNIT
from broker.trace.schema import CLIENT

PERCENTS = (50, 95, 99)

# One row per duration, or per group that sampling added up; `of`: delivery, waiting, or what a client asked for.
DURATIONS = Query(
    "durations",
    f"""
    select run, 'delivery' of, latency_bucket bucket, latency lasted, {in_units("latency", TIME_UNIT)} units, 1 count,
        cast(hops as bigint) hops, 0 messages, false sampled from deliveries
    union all select run, 'delivery', latency_bucket, null, {in_units("latency", TIME_UNIT)}, count,
        hops * count, 0, true from deliveries_rest
    union all select run, 'waiting', waited_bucket, waited, {in_units("waited", TIME_UNIT)}, 1, 0, 0, false
        from publications where source <> {CLIENT}
    union all select run, kind, lasted_bucket, finished - time, {in_units("finished - time", TIME_UNIT)}, 1,
        0, messages, false from operations""",
)

DURATION_COUNTS = Query(
    "duration_counts",
    """
    select run, of, bucket, sum(count) count, sum(units) units, sum(hops) hops, sum(messages) messages,
        bool_or(sampled) sampled
    from durations group by run, of, bucket""",
)


def _of(what: str, name: str, number: str) -> str:
    return f"sum(if(of in ({what}), {number}, 0)) {name}"


DURATION_TOTALS = Totals(
    "duration_totals",
    f"""
    select run, {_of("'delivery'", "deliveries", "count")}, {_of("'delivery'", "delivery_hops", "hops")},
        {_of("'delivery'", "delivery_units", "units")},
        {_of("'waiting'", "waits", "count")}, {_of("'waiting'", "waiting_units", "units")},
        {_of("'subscribe'", "subscribes", "count")}, {_of("'subscribe'", "subscribe_units", "units")},
        {_of("'unsubscribe'", "unsubscribes", "count")}, {_of("'unsubscribe'", "unsubscribe_units", "units")},
        {_of("'subscribe', 'preload'", "joins", "count")}, {_of("'subscribe', 'preload'", "join_messages", "messages")}
    from duration_counts group by run""",
)

# In which bucket a percentile is, and at which place among the values there.
PERCENTILE_BUCKETS = Query(
    "percentile_buckets",
    f"""
    select run, of, percent, bucket, rough, ceil(percent * total / 100) - (reached - count) place
    from (select *, sum(count) over (partition by run, of order by bucket) reached,
              sum(count) over (partition by run, of) total, bool_or(sampled) over (partition by run, of) rough
          from duration_counts)
    cross join (values {", ".join(f"({percent})" for percent in PERCENTS)}) percents(percent)
    where 100 * reached >= percent * total and 100 * (reached - count) < percent * total""",
)

_MIDDLE = (
    f"if(bucket = 0, 0e0, (1 + ((bucket & {PARTS - 1}) + 0.5e0) / {PARTS}) "
    f"* pow(2e0, shiftright(bucket, {SUBBITS}) - {EXPONENT_BIAS}))"
)

PERCENTILES = Query(
    "percentiles",
    f"""
    select run, of, percent, if(rough, {_MIDDLE}, min(if(reached >= place, lasted, null))) lasted
    from (select /*+ broadcast(percentile_buckets) */ run, of, percent, bucket, rough, place, lasted,
              sum(count(*)) over (partition by run, of, percent order by lasted) reached
          from durations join percentile_buckets using (run, of, bucket)
          group by run, of, percent, bucket, rough, place, lasted)
    group by run, of, percent, bucket, rough""",
)


def _percentile(of: str, percent: int, name: str) -> str:
    return f"min(if(of = '{of}' and percent = {percent}, lasted, null)) {name}"


PERCENTILE_TOTALS = Totals(
    "percentile_totals",
    f"""
    select run, {", ".join(_percentile("delivery", percent, f"latency_p{percent}") for percent in PERCENTS)},
        {_percentile("waiting", 95, "waiting_p95")}, {_percentile("subscribe", 95, "convergence_p95")}
    from percentiles group by run""",
)

QUERIES = (DURATIONS, DURATION_COUNTS, DURATION_TOTALS, PERCENTILE_BUCKETS, PERCENTILES, PERCENTILE_TOTALS)

_RANK = ", nearest rank"
_SAMPLED = f"{_RANK}; where sampling left deliveries out, within {100 * RELATIVE_ERROR:.1f} %"


def _mean(units: str, count: str) -> str:
    return ratio(of_units(units, TIME_UNIT), count)


METRICS = (
    Amount("deliveries", "deliveries", "deliveries",
           "Events handed to subscribers.",
           "count of deliveries, those that sampling added up included"),
    Metric("hops", "hops", "links",
           "Links that a delivered event crossed, on average.",
           "mean of hops over deliveries",
           ratio("delivery_hops", "deliveries")),
    Metric("latency_mean", "latency, mean", "ms",
           "Time from publication to delivery, on average.",
           "mean of latency over deliveries",
           _mean("delivery_units", "deliveries")),
    *(
        Metric(f"latency_p{percent}", f"latency, {'median' if percent == 50 else f'{percent}th percentile'}", "ms",
               f"Time from publication to delivery that {percent} % of the deliveries do not exceed.",
               f"{percent}th percentile of latency over deliveries{_SAMPLED}")
        for percent in PERCENTS
    ),
    Metric("waiting_mean", "waiting per hop, mean", "ms",
           "Time an event message spends per hop beyond the link's latency: queue, service, transmission.",
           "mean of waited over publications whose source is a broker",
           _mean("waiting_units", "waits")),
    Metric("waiting_p95", "waiting per hop, 95th percentile", "ms",
           "Time per hop beyond the link's latency that 95 % of the event messages do not exceed.",
           f"95th percentile of waited over publications whose source is a broker{_RANK}"),
    Amount("subscribe_requests", "subscriptions that came", "subscriptions",
           "Subscribe requests of clients; subscriptions that exist before time 0 are not counted.",
           "count of subscribe operations",
           "subscribes"),
    # An operation is finished when its last message, exposures included, has been processed; until then an event may
    # miss the subscription. One that needs no message takes no time. Preloads happen before time 0 and take none.
    Metric("convergence_mean", "convergence of a subscription, mean", "ms",
           "Time from a client's subscribe until its last message has been processed.",
           "mean of finished − time over subscribe operations",
           _mean("subscribe_units", "subscribes")),
    Metric("convergence_p95", "convergence of a subscription, 95th percentile", "ms",
           "Time within which 95 % of the subscriptions have converged.",
           f"95th percentile of finished − time over subscribe operations{_RANK}"),
    Metric("unsubscribe_mean", "convergence of an unsubscription, mean", "ms",
           "Time from a client's unsubscribe until its last message, exposures included, is processed.",
           "mean of finished − time over unsubscribe operations",
           _mean("unsubscribe_units", "unsubscribes")),
    Metric("messages_per_subscribe", "messages per subscription", "messages",
           "Link messages that an average subscribe causes.",
           "mean of messages over subscribe and preload operations",
           ratio("join_messages", "joins")),
)  # fmt: skip
