"""Where the k best of the whole network are served: what it takes to find them. Other runs have no values here."""

from __future__ import annotations

from math import fsum

import pyarrow as pa
import pyarrow.compute as pc

from analysis.spark.metrics.counts import from_broker, ratio
from analysis.spark.metrics.definition import Count, Counted, Job, Metric, Rows, Values


def _ranked(rows: Rows) -> pa.Table:
    over_link = from_broker(rows).cast(pa.int64())
    size = pc.multiply(over_link, rows["bytes"])
    copies = rows["carries"].cast(pa.int64())
    return pa.table({"event": rows["event"], "over_links": over_link, "size": size, "copies": copies})


def _served(rows: Rows) -> pa.Table | None:
    if "ranked" not in rows.run.digests:
        return None
    return pa.table({"event": rows["event"], "first": rows["latency"], "last": rows["latency"]})


RANKED = Count("ranked", ("event",), ("over_links", "size", "copies"), {"ranked": _ranked})
SERVED = Count("winners_served", ("event",), (), {"deliveries": _served}, least=("first",), most=("last",))
COUNTS = (RANKED, SERVED)


def ranked(run: Counted) -> Values:
    rows, first, last = run[RANKED], run[SERVED]["first"], run[SERVED]["last"]
    published = len(rows["event"])
    return {
        "messages_per_event": ratio(rows["over_links"].sum(), published),
        "bytes_per_event": ratio(rows["size"].sum(), published),
        "brokers_visited": ratio(rows["copies"].sum(), published),
        "first_winner_mean": ratio(fsum(first), len(first)),
        "last_winner_mean": ratio(fsum(last), len(last)),
    }


JOB = Job(ranked, (
    Metric("messages_per_event", "messages per event", "messages",
           "Messages over links by which the k best of the network are found and served: queries, answers, awards.",
           "count of ranked messages whose source is a broker ÷ events published"),
    Metric("bytes_per_event", "bytes per event", "bytes",
           "The size of these messages.",
           "Σ bytes over ranked messages whose source is a broker ÷ events published"),
    Metric("brokers_visited", "brokers visited", "brokers",
           "Brokers that an event reaches, the publisher's own included.",
           "count of ranked messages that carry the event ÷ events published"),
    Metric("first_winner_mean", "time to the first winner", "ms",
           "From the publication of an event until the first of its k best is served.",
           "mean over events of the least latency of their deliveries (those in the trace)"),
    Metric("last_winner_mean", "time to the k-th winner", "ms",
           "From the publication of an event until the last of its k best, or of fewer that match, is served.",
           "mean over events of the largest latency of their deliveries (those in the trace)"),
))  # fmt: skip
