"""Missed covers: what each one cost downstream.

A cover is missed if an approximate search sends a subscription over a link although exact covering would have held it
back. The neighbour then keeps a needless entry and searches in turn. If it sends the subscription on, that message is
needless too, because the subscription is covered there as well. So the misses of a subscription are the messages that
the first miss caused, each with an entry at the neighbour. An unsubscription over the same link costs one more message
and frees the entry. If decisions were sampled, these are the costliest misses of the sample.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.spark.metrics.counts import each, totals
from analysis.spark.metrics.definition import Columns, Count, Counted, Rows

MOST = 10  # subscriptions per run, the costliest first


def _sent(rows: Rows) -> pa.Table | None:
    if not rows.drawn:
        return None
    sent = pc.is_in(rows["outcome"].cast(pa.string()), pa.array(["forwarded", "exposed"]))
    links = {name: rows[name] for name in ("subscription", "broker", "neighbour")}
    amounts = {"sent": each(rows), "left": pa.array(np.zeros(len(rows), np.int64))}
    return pa.table({**links, **amounts, "time": rows["time"]}).filter(pc.and_(sent, rows["exact"].fill_null(False)))


def _left(rows: Rows) -> pa.Table | None:
    if not rows.drawn:
        return None
    links = {"subscription": rows["subscription"], "broker": rows["source"], "neighbour": rows["target"]}
    amounts = {"sent": pa.array(np.zeros(len(rows), np.int64)), "left": each(rows)}
    table = pa.table({**links, **amounts, "time": pa.nulls(len(rows), pa.float64())})
    return table.filter(pc.equal(rows["kind"].cast(pa.string()), "unsubscribe"))


LINKS = Count(
    "missed_covers",
    ("subscription", "broker", "neighbour"),
    ("sent", "left"),  # needless messages over a link, and all unsubscriptions over it
    {"decisions": _sent, "control": _left},
    least=("time",),
)


def costliest_misses(run: Counted, most: int = MOST) -> Columns:
    """The subscriptions whose missed covers cost most: links, messages, and entries left at the end."""
    rows = run[LINKS]
    missed = np.flatnonzero(rows["sent"])
    # The first link of each subscription comes first.
    missed = missed[np.lexsort([rows[name][missed] for name in ("broker", "time", "subscription")])]
    sent, gone = rows["sent"][missed], np.minimum(rows["left"], rows["sent"])[missed]
    of = rows["subscription"][missed]
    subscriptions, first, links = np.unique(of, return_index=True, return_counts=True)
    messages = totals(subscriptions, (of, sent + gone))
    best = np.lexsort([subscriptions, -messages])[:most]
    columns = {
        "subscription": subscriptions,
        "first_broker": rows["broker"][missed][first],
        "links": links,
        "messages": messages,
        "entries": totals(subscriptions, (of, sent - gone)),
    }
    return {**{name: values[best] for name, values in columns.items()}, "rank": np.arange(1, len(best) + 1)}
