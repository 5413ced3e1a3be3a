"""Missed covers: what each one cost downstream, for the runs that the report draws.

A cover is missed if an approximate search sends a subscription over a link although exact covering would have held it
back. The neighbour then keeps a needless entry and searches in turn. If it sends the subscription on, that message is
needless too, because the subscription is covered there as well. So the misses of a subscription are the messages that
the first miss caused, each with an entry at the neighbour. An unsubscription over the same link costs one more message
and frees the entry. If decisions were sampled, these are the costliest misses of the sample.
"""

from __future__ import annotations

from analysis.spark.metrics.definition import Query

MOST = 10  # subscriptions per run, the costliest first

# Needless messages over a link, and all unsubscriptions over it.
NEEDLESS = Query(
    "needless_messages",
    """
    select run, subscription, broker, neighbour, sum(sent) sent, least(sum(sent), sum(gone)) gone, min(time) time
    from (select run, subscription, broker, neighbour, 1 sent, 0 gone, time from decisions
              where outcome in ('forwarded', 'exposed') and exact
          union all select run, subscription, source, target, 0, 1, null from control where kind = 'unsubscribe')
    where run in (select run from runs where drawn)
    group by run, subscription, broker, neighbour having sum(sent) > 0""",
)

MISSES = Query(
    "drawn_misses",
    f"""
    select run, subscription, first_broker, links, messages, entries, cast(place as bigint) rank
    from (select *, row_number() over (partition by run order by messages desc, subscription) place
          from (select run, subscription, min_by(broker, struct(time, broker)) first_broker, count(*) links,
                    sum(sent + gone) messages, sum(sent - gone) entries
                from needless_messages group by run, subscription))
    where place <= {MOST}""",
)

QUERIES = (NEEDLESS, MISSES)
