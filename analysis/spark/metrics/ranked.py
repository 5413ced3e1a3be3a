"""Whom the k best are: of the whole network, what it takes to find them, and how far each broker's own k best differ.

Only runs that serve the k best of the whole network have the table `ranked`; others have no values of its metrics.
"""

from __future__ import annotations

from analysis.spark.metrics.definition import Metric, Query, Totals, in_units, of_units, ratio
from broker.trace.buckets import TIME_UNIT
from broker.trace.schema import CLIENT

RANKED_EVENTS = Query(
    "ranked_events",
    f"""
    select run, event, count_if(source <> {CLIENT}) over_links, sum(if(source <> {CLIENT}, bytes, 0)) size,
        count_if(carries) copies
    from ranked group by run, event""",
)

RANKED_TOTALS = Totals(
    "ranked_totals",
    """
    select run, count(*) ranked_events, sum(over_links) ranked_messages, sum(size) ranked_bytes, sum(copies) copies
    from ranked_events group by run""",
)

WINNERS = Query(
    "winners",
    """
    select run, event, min(latency) soonest, max(latency) latest
    from deliveries where run in (select run from runs where is_ranked) group by run, event""",
)

WINNER_TOTALS = Totals(
    "winner_totals",
    f"""
    select run, count(*) won_events, sum({in_units("soonest", TIME_UNIT)}) soonest_units,
        sum({in_units("latest", TIME_UNIT)}) latest_units
    from winners group by run""",
)

SERVED = Query(
    "served_events",
    """
    select run, event, k, sum(served) served
    from publications join runs using (run) where k is not null and served > 0 group by run, event, k""",
)

SERVED_TOTALS = Totals(
    "served_totals",
    """
    select run, sum(least(served, k)) served_best, sum(served) served from served_events group by run""",
)

QUERIES = (RANKED_EVENTS, RANKED_TOTALS, WINNERS, WINNER_TOTALS, SERVED, SERVED_TOTALS)

METRICS = (
    Metric("topk_overlap", "overlap with the global top k", "share",
           "Each broker delivers an event to its own k best subscriptions, and these include the k best of the "
           "whole network; this is the part of the deliveries that a network-wide top k would have made.",
           "Σ min(k, deliveries of the event) ÷ deliveries",
           ratio("served_best", "served")),
    Metric("messages_per_event", "messages per event", "messages",
           "Messages over links by which the k best of the network are found and served: queries, answers, awards.",
           "count of ranked messages whose source is a broker ÷ events published",
           ratio("ranked_messages", "ranked_events")),
    Metric("bytes_per_event", "bytes per event", "bytes",
           "The size of these messages.",
           "Σ bytes over ranked messages whose source is a broker ÷ events published",
           ratio("ranked_bytes", "ranked_events")),
    Metric("brokers_visited", "brokers visited", "brokers",
           "Brokers that an event reaches, the publisher's own included.",
           "count of ranked messages that carry the event ÷ events published",
           ratio("copies", "ranked_events")),
    Metric("first_winner_mean", "time to the first winner", "ms",
           "From the publication of an event until the first of its k best is served.",
           "mean over events of the least latency of their deliveries (those in the trace)",
           ratio(of_units("soonest_units", TIME_UNIT), "won_events")),
    Metric("last_winner_mean", "time to the k-th winner", "ms",
           "From the publication of an event until the last of its k best, or of fewer that match, is served.",
           "mean over events of the largest latency of their deliveries (those in the trace)",
           ratio(of_units("latest_units", TIME_UNIT), "won_events")),
)  # fmt: skip
