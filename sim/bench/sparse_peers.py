"""What others would use to find the best expressions for an event; each is left out when not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from topk.sparse import Event, SparseCatalogue

Match = list[tuple[int, float]]
Answer = Callable[[Event], Match]


def numpy_peer(catalogue: SparseCatalogue, k: int) -> Answer:
    """All predicates at once, then a reduction per row."""
    everything = np.arange(len(catalogue))
    return lambda event: _compared(catalogue, everything, event, k)


def duckdb_peer(catalogue: SparseCatalogue, k: int) -> Answer:
    import duckdb
    import pandas

    connection = duckdb.connect()
    sizes = np.diff(catalogue.offsets)
    predicates = pandas.DataFrame(
        {
            "id": np.repeat(catalogue.ids, sizes),
            "size": np.repeat(sizes, sizes),
            "a": catalogue.attributes,
            "lo": catalogue.lo,
            "hi": catalogue.hi,
            "w": catalogue.weights,
        }
    )
    connection.execute("create table p as select * from predicates order by a, lo")
    del predicates
    query = f"""select id, sum(p.w * e.w) as score from p join e on p.a = e.a and p.lo <= e.hi and e.lo <= p.hi
                group by id having count(*) = any_value(size) order by score desc, id limit {k}"""

    def top(event: Event) -> Match:
        e = pandas.DataFrame({"a": event.attributes, "lo": event.lo, "hi": event.hi, "w": event.weights})
        connection.register("e", e)
        return [(int(id), float(score)) for id, score in connection.execute(query).fetchall()]

    return top


def roaring_peer(catalogue: SparseCatalogue, k: int) -> Answer:
    """A bitmap per attribute: rows that need an attribute the event lacks are out; the rest is compared."""
    from pyroaring import BitMap

    rows = np.repeat(np.arange(len(catalogue)), np.diff(catalogue.offsets))
    order = np.argsort(catalogue.attributes, kind="stable")
    begins = np.searchsorted(catalogue.attributes[order], np.arange(catalogue.dimensions + 1))
    needs = [BitMap(rows[order[begins[a] : begins[a + 1]]].astype(np.uint32)) for a in range(catalogue.dimensions)]
    everything = BitMap()
    everything.add_range(0, len(catalogue))

    def top(event: Event) -> Match:
        present = set(event.attributes.tolist())
        left = everything - BitMap.union(*(needs[a] for a in range(catalogue.dimensions) if a not in present))
        return _compared(catalogue, np.array(left, dtype=np.int64), event, k)

    return top


PEERS: dict[str, Callable[[SparseCatalogue, int], Answer]] = {
    "numpy": numpy_peer,
    "DuckDB": duckdb_peer,
    "pyroaring": roaring_peer,
}


def _compared(catalogue: SparseCatalogue, rows: Any, event: Event, k: int) -> Match:
    """The k best of these rows: all their predicates at once, then a reduction per row."""
    columns = np.full((3, catalogue.dimensions), np.nan)
    columns[:, event.attributes] = event.lo, event.hi, event.weights
    at: Any = slice(None)
    begins = catalogue.offsets[:-1]
    if len(rows) < len(catalogue):
        sizes = np.diff(catalogue.offsets)[rows]
        begins = np.cumsum(sizes) - sizes
        at = np.repeat(catalogue.offsets[rows] - begins, sizes) + np.arange(int(sizes.sum()))
    low, high, weight = columns[:, catalogue.attributes[at]]
    held = (catalogue.lo[at] <= high) & (low <= catalogue.hi[at])
    matching = np.flatnonzero(np.logical_and.reduceat(held, begins)) if len(rows) else rows
    scores = np.add.reduceat(np.where(held, catalogue.weights[at] * weight, 0.0), begins)[matching]
    ids = catalogue.ids[rows[matching]]
    return [(int(ids[i]), float(scores[i])) for i in np.lexsort((ids, -scores))[:k]]
