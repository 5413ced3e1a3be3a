"""Load and service: how evenly brokers are loaded, how busy they are, what waits for them, what their time goes into.

The Gini coefficient of n loads x₁ ≤ … ≤ xₙ is 2 Σ i·xᵢ ÷ (n Σ xᵢ) − (n+1)/n: 0 if all are equal, near
1 if one broker does everything. Brokers that processed nothing count as 0.

Utilisation and shares are known only where `broker.service` takes time; the shares if it is `work` (see
broker/work.py): searching for covers, comparing events with neighbours' tables, matching a broker's own subscriptions;
the rest is messages and bytes.

The load compares the work that events bring to a broker with the time in which they are published. The work is the
service of events, of answers and awards about them, and of control messages sent meanwhile, whenever the broker does
it. From 1 on there is more work than time, and the queue grows for as long as events come at that rate.
sim/capacity/load.py computes the same for a search that cannot wait for Spark.

A copy of an event that was lost brings no work to the brokers it would have come to. How much that would have been is
unknown, so where copies were lost, load and rate held are empty: more overload must not look like more capacity.
"""

from __future__ import annotations

from analysis.spark.metrics.definition import Metric, Query, Totals, of_units, ratio
from broker.trace.buckets import TIME_UNIT, WORK_UNIT

SECOND = 1000.0  # in milliseconds

# What each broker processed, from its clients too; times in whole units.
BROKER_WORK = Query(
    "broker_work",
    """
    select run, broker, sum(processed) processed, sum(waited) waited, sum(busy) busy, sum(asked) asked,
        sum(on_events) on_events, sum(on_covering) on_covering, sum(on_tables) on_tables, sum(on_matching) on_matching
    from (select run, target broker, messages processed, waited, service busy, asked, 0e0 on_events,
              on_covering, 0e0 on_tables, 0e0 on_matching from control_links
          union all select run, target, messages, waited, service, service, service,
              0e0, on_tables, on_matching from event_links
          union all select run, target, messages, waited, service, service, service, 0e0, 0e0, 0e0 from replies
          union all select run, broker, 0, 0e0, 0e0, 0e0, 0e0, 0e0, 0e0, 0e0 from brokers)
    group by run, broker""",
)

WORK_TOTALS = Totals(
    "work_totals",
    """
    select run, count(*) places, sum(processed) processed, max(processed) most_processed,
        sum(place * processed) placed, sum(waited) waited, sum(busy) busy, max(busy) busiest, max(asked) most_asked,
        max(on_events) most_on_events, sum(on_covering) on_covering, sum(on_tables) on_tables,
        sum(on_matching) on_matching, sum(on_covering + on_tables + on_matching) on_known
    from (select *, row_number() over (partition by run order by processed) place from broker_work) group by run""",
)

# For the pages that draw a run.
BROKERS = Query(
    "drawn_brokers",
    """
    select run, broker, processed, coalesce(remote, 0) entries
    from broker_work left join table_sizes using (run, broker) where run in (select run from runs where drawn)""",
)

QUERIES = (BROKER_WORK, WORK_TOTALS, BROKERS)


def _share(name: str, what: str) -> Metric:
    told = f"Part of the brokers' time spent on {what}."
    sql = f"if(on_known > 0, {ratio(f'on_{name}', 'busy')}, null)"
    return Metric(f"share_{name}", f"time on {name}", "share", told, f"Σ on_{name} ÷ Σ service over all messages", sql)


METRICS = (
    Metric("load_max_mean", "load imbalance, busiest to mean", "ratio",
           "Messages processed by the busiest broker against the mean of all brokers; 1 is even.",
           "max ÷ mean over brokers of messages processed",
           ratio("most_processed * places", "processed")),
    Metric("load_gini", "load imbalance, Gini", "0..1",
           "Gini coefficient of messages processed per broker: 0 is even, 1 is one broker doing it all.",
           "2 Σ i·xᵢ ÷ (n Σ xᵢ) − (n+1)/n, x ascending",
           f"{ratio('2 * placed', 'places * processed')} - (places + 1) / places"),
    Metric("utilisation_max", "utilisation, busiest broker", "share",
           "Part of the run that the busiest broker spent serving messages.",
           "max over brokers of Σ service ÷ duration of the run",
           f"if(busy > 0, {ratio(of_units('busiest', WORK_UNIT), 'finished')}, null)"),
    Metric("utilisation_mean", "utilisation, mean", "share",
           "Part of the run that an average broker spent serving messages.",
           "Σ service ÷ (brokers · duration of the run)",
           f"if(busy > 0, {ratio(of_units('busy', WORK_UNIT), 'finished * brokers')}, null)"),
    Metric("event_rate_held", "event rate held", "events/s",
           "Events per second, published at the same brokers as in this run, that leave the busiest broker no time: at "
           "a higher rate its queue grows without bound. Computed from the counted work; unknown if copies were lost.",
           "events published ÷ max over brokers of Σ service of publications and ranked messages without the event",
           f"if(coalesce(copies_lost, 0) = 0, "
           f"{ratio(f'published * {SECOND!r}', of_units('most_on_events', WORK_UNIT))}, null)"),
    Metric("event_load", "load while events are published", "ratio",
           "Work of the busiest broker for the events, divided by the time in which they are published; from 1 on its "
           "queue grows for as long as they come. Unknown if copies of events were lost: what work they would have "
           "brought is not known.",
           "max over brokers of Σ service of events, and of control messages sent meanwhile, ÷ time from the first "
           "publication to the last",
           f"if(busy > 0 and coalesce(copies_lost, 0) = 0, "
           f"{ratio(of_units('most_asked', WORK_UNIT), '(last_published - first_published)')}, null)"),
    Metric("queueing_delay", "queueing delay", "ms",
           "Time that an average message waits before its service begins, transmission included.",
           "mean of waited over control messages, publications and ranked messages without the event",
           ratio(of_units("waited", TIME_UNIT), "processed")),
    _share("covering", "searching for covers"),
    _share("tables", "comparing events with the tables of neighbours"),
    _share("matching", "finding the best of a broker's own subscriptions"),
)  # fmt: skip
