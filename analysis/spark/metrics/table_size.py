"""Routing tables: how many entries brokers keep when nothing is under way any more.

An entry is *remote* if it belongs to a neighbour: it says which events to send over that link. Entries of a broker's
own clients are needed under any strategy and are not counted. The run record has what simple routing would keep: in one
spanning tree, every active subscription at every broker but its own; in a tree per source, every active subscription at
each broker on its way to each source.
"""

from __future__ import annotations

from analysis.spark.metrics.definition import Amount, Metric, Query, Totals, ratio
from broker.trace.schema import CLIENT

BYTES_PER_BOUND = 16  # a lower and an upper bound of eight bytes each, per attribute
BYTES_PER_ID = 8

# Older traces have no pruned entries. Memory: local entries take it too, though no strategy saves them.
TABLE_SIZES = Query(
    "table_sizes",
    f"""
    select run, broker, sum(if(neighbour <> {CLIENT}, entries, 0)) remote, sum(coalesce(pruned, 0)) pruned,
        sum(entries + coalesce(pruned, 0)) stored
    from tables where final group by run, broker""",
)

TABLE_TOTALS = Totals(
    "table_totals",
    """
    select run, sum(remote) entries, max(remote) entries_max, sum(pruned) pruned, sum(stored) stored
    from table_sizes group by run""",
)

QUERIES = (TABLE_SIZES, TABLE_TOTALS)

METRICS = (
    Amount("entries", "routing-table entries", "entries",
           "Entries that brokers keep for their neighbours, all brokers together, at the end.",
           "Σ entries over brokers and neighbours, clients left out, final sample"),
    Amount("entries_per_broker", "entries per broker", "entries",
           "Routing-table entries of an average broker.",
           "entries ÷ brokers",
           ratio("entries", "brokers")),
    Amount("entries_max", "largest table", "entries",
           "Routing-table entries of the broker that has the most.",
           "max over brokers of Σ entries over its neighbours"),
    Metric("reduction", "reduction against simple routing", "share",
           "The part saved of the entries that simple routing would keep in the same trees: in one spanning tree "
           "every active subscription at every other broker, in a tree per source at each broker on its way there.",
           "1 − entries ÷ entries of simple routing",
           f"1 - {ratio('coalesce(entries, 0)', 'simple_entries')}", signed=True),
    Amount("pruned", "pruned entries", "entries",
           "Entries of neighbours that brokers know but compare with no event, because another entry of the same "
           "neighbour covers them.",
           "Σ pruned over brokers and neighbours, final sample"),
    # How many attributes events have, traces of earlier versions do not say.
    Metric("memory_per_broker", "memory per broker", "bytes",
           "What the entries of an average broker, its clients' and pruned ones included, take at least: bounds and "
           "ids, without any index over them.",
           f"Σ (entries + pruned) × ({BYTES_PER_BOUND} × attributes + {BYTES_PER_ID}) ÷ brokers",
           ratio(f"coalesce(stored, 0) * ({BYTES_PER_BOUND} * attributes + {BYTES_PER_ID})", "brokers")),
)  # fmt: skip
