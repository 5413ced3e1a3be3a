"""Routing tables: how many entries brokers keep when nothing is under way any more.

An entry is *remote* if it belongs to a neighbour: it says which events to send over that link. Entries of a broker's
own clients are needed under any strategy and are not counted. The run record has what simple routing would keep: in one
spanning tree, every active subscription at every broker but its own; in a tree per source, every active subscription at
each broker on its way to each source.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from analysis.spark.metrics.counts import ratio
from analysis.spark.metrics.definition import Amount, Count, Counted, Job, Metric, Rows, Values
from broker.trace.schema import CLIENT

BYTES_PER_BOUND = 16  # a lower and an upper bound of eight bytes each, per attribute
BYTES_PER_ID = 8


def _sizes(rows: Rows) -> pa.Table:
    entries, pruned = rows["entries"], rows["pruned"].fill_null(0)  # older traces have none
    remote = pc.if_else(pc.not_equal(rows["neighbour"], CLIENT), entries, 0)
    # Memory: local entries take it too, though no strategy saves them, and so do pruned ones, which are still known.
    amounts = {"remote": remote, "stored": pc.add(entries, pruned), "pruned": pruned}
    return pa.table({"broker": rows["broker"], **amounts}).filter(rows["final"])


SIZES = Count("table_sizes", ("broker",), ("remote", "stored", "pruned"), {"tables": _sizes})


def table_size(run: Counted) -> Values:
    sizes, record = run[SIZES], run.run.record
    entries, attributes = int(sizes["remote"].sum()), record.get("attributes")
    stored = None
    if attributes is not None:  # older traces do not say
        stored = int(sizes["stored"].sum()) * (BYTES_PER_BOUND * attributes + BYTES_PER_ID)
    of_simple = ratio(entries, record.get("simple_entries"))
    return {
        "entries": entries,
        "entries_per_broker": ratio(entries, record["brokers"]),
        "entries_max": sizes["remote"].max(initial=0),
        "reduction": None if of_simple is None else 1 - of_simple,
        "pruned": sizes["pruned"].sum(),
        "memory_per_broker": ratio(stored, record["brokers"]),
    }


JOB = Job(table_size, (
    Amount("entries", "routing-table entries", "entries",
           "Entries that brokers keep for their neighbours, all brokers together, at the end.",
           "Σ entries over brokers and neighbours, clients left out, final sample"),
    Amount("entries_per_broker", "entries per broker", "entries",
           "Routing-table entries of an average broker.",
           "entries ÷ brokers"),
    Amount("entries_max", "largest table", "entries",
           "Routing-table entries of the broker that has the most.",
           "max over brokers of Σ entries over its neighbours"),
    Metric("reduction", "reduction against simple routing", "share",
           "The part saved of the entries that simple routing would keep in the same trees: in one spanning tree "
           "every active subscription at every other broker, in a tree per source at each broker on its way there.",
           "1 − entries ÷ entries of simple routing", signed=True),
    Amount("pruned", "pruned entries", "entries",
           "Entries of neighbours that brokers know but compare with no event, because another entry of the same "
           "neighbour covers them.",
           "Σ pruned over brokers and neighbours, final sample"),
    Metric("memory_per_broker", "memory per broker", "bytes",
           "What the entries of an average broker, its clients' and pruned ones included, take at least: bounds and "
           "ids, without any index over them.",
           f"Σ (entries + pruned) × ({BYTES_PER_BOUND} × attributes + {BYTES_PER_ID}) ÷ brokers"),
))  # fmt: skip
