"""Keep a sample of decisions (by subscription) and deliveries (by event); count the rest.

Which are kept depends on the number of the subscription or event alone (a hash of it), so runs of a sweep keep the
same ones, whatever the engine, and a larger share keeps all that a smaller one does. All decisions about a
subscription, and all deliveries of an event, are kept or left out together: `coverlay explain` tells the whole story
of those that are there.

The rest is added up by everything that metrics tell apart, so rows and rest together give every total exactly; checks
that searched no curve, such as those of an empty link, are added up apart from those that have a resolution. Only
what needs single rows (the list of the costliest misses, `explain`) comes from the sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from broker.trace.buckets import SHARE_UNIT, TIME_UNIT, WORK_UNIT, in_units
from broker.trace.schema import SCHEMAS, to_table

BATCH = 1 << 20  # rows looked at together
BITS, ON_CURVE = "bits", "on curve"  # a column of decisions, and whether it is above 0
# What is sampled: the column whose number decides, and the units in which columns of fractions are added up.
SAMPLED: dict[str, tuple[str, dict[str, float]]] = {
    "decisions": ("subscription", {"volume": SHARE_UNIT, "took": WORK_UNIT}),
    "deliveries": ("event", {"latency": TIME_UNIT}),
}


_WORD = (1 << 64) - 1


def mixed(number: Any) -> Any:
    """A 64-bit hash of an int, or of each of an array of uint64: neighbouring numbers land far apart.

    The finaliser of SplitMix64.
    """
    number = (number + 0x9E3779B97F4A7C15) & _WORD
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _WORD
    return number ^ (number >> 31)


def is_kept(numbers: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """Which of these subscriptions or events belong to the sample."""
    return (mixed(numbers.astype(np.uint64)) >> 11).astype(np.float64) < share * 2.0**53


def thin(tables: Mapping[str, pa.Table], decisions: float, deliveries: float) -> dict[str, pa.Table]:
    """The tables with only these shares of the subscriptions' decisions and of the events' deliveries in rows."""
    thinned = dict(tables)
    for name, share in (("decisions", decisions), ("deliveries", deliveries)):
        if share < 1.0:
            rest = f"{name}_rest"
            thinned[name], more = split(name, tables[name], share)
            thinned[rest] = merged(name, [tables[rest], more])
    return thinned


def merged(name: str, rests: Iterable[pa.Table]) -> pa.Table:
    """The sums of what several parts of a table left out; in whole units, so that the parts do not matter."""
    units = SAMPLED[name][1]
    return _total(name, [_added_up(name, rest, units) for rest in rests], units)


def split(name: str, table: pa.Table, share: float) -> tuple[pa.Table, pa.Table]:
    """The rows of a share of the subscriptions or events, and the others added up."""
    by, units = SAMPLED[name]
    kept: list[pa.RecordBatch] = []
    parts: list[pa.Table] = []
    for batch in table.to_batches(max_chunksize=BATCH):
        keep = is_kept(batch.column(by).to_numpy(), share)
        kept.append(batch.filter(pa.array(keep)))
        parts.append(_added_up(name, batch.filter(pa.array(~keep)), units))
    rows = pa.Table.from_batches([b for b in kept if b.num_rows], SCHEMAS[name]).unify_dictionaries()
    return rows, _total(name, parts, units)


def _keys_and_sums(name: str) -> tuple[list[str], list[str]]:
    """The columns of a rest table that rows are grouped by, and those that are added up."""
    columns = SCHEMAS[f"{name}_rest"].names
    split = columns.index("count")
    return columns[:split], columns[split:]


def _added_up(name: str, rows: pa.RecordBatch | pa.Table, units: Mapping[str, float]) -> pa.Table:
    """Rows, or sums of rows with a count, added up in whole units."""
    keys, sums = _keys_and_sums(name)
    columns: dict[str, Any] = {}
    for key in keys:
        column = rows.column(key)
        columns[key] = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    for column in sums:
        if column == "count" and column not in rows.schema.names:
            columns[column] = np.ones(rows.num_rows, dtype=np.int64)
        elif column in units:
            columns[column] = in_units(rows.column(column).to_numpy(), units[column])
        else:
            columns[column] = rows.column(column).cast(pa.float64(), safe=False)
    return _grouped(pa.table(columns), keys, sums)


def _grouped(table: pa.Table, keys: list[str], sums: list[str]) -> pa.Table:
    apart = []
    if BITS in sums:
        apart, table = [ON_CURVE], table.append_column(ON_CURVE, pc.greater(table.column(BITS), 0))
    found = table.group_by([*keys, *apart], use_threads=False).aggregate([(column, "sum") for column in sums])
    return found.rename_columns([name.removesuffix("_sum") for name in found.column_names]).select([*keys, *sums])


def _total(name: str, parts: list[pa.Table], units: Mapping[str, float]) -> pa.Table:
    keys, sums = _keys_and_sums(name)
    if not parts:
        return SCHEMAS[f"{name}_rest"].empty_table()
    total = _grouped(pa.concat_tables(parts), keys, sums)
    order = [*keys, *([BITS] if BITS in sums else [])]
    total = total.take(pc.sort_indices(total, [(key, "ascending") for key in order]))
    columns = {column: total.column(column) for column in total.column_names}
    for column, unit in units.items():
        columns[column] = pc.multiply(columns[column].cast(pa.float64(), safe=False), unit)
    return to_table(f"{name}_rest", columns)
