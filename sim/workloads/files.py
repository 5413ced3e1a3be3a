"""The user's own subscriptions and events, from CSV, Parquet or JSON lines.

Subscriptions come in one of two forms:
- columns `<attribute>_lo` and `<attribute>_hi` (closed bounds, an empty cell is unbounded), optionally
  `<attribute>_weight`, and `near_lat`, `near_lon`, `alpha` where the schema has a place;
- a column `text` in the subscription language, which needs a schema.
Both may have `score`, `id`, `broker` (a name or a number), and `time` and `until` (times.py): when the subscription
comes (empty: at 0) and leaves (empty or inf: never). With times, a later row with the same `id` replaces the earlier
one: an empty score, broker or `until` keeps its value, and so do the predicates if all of their cells are empty. The
change is a join and a leave at one moment. If only the rank changes and the k best of the whole network are served, it
is one request (`Kind.RERANK`).

Events have one column per attribute (an empty cell: the event lacks it), and optionally `<attribute>_weight`, `broker`
and `time`. Without a schema, all attributes are continuous and bounded by the values that occur. Any other column
is an error, so that none is silently ignored.

At equal times subscriptions come, then leave, then events are published. `order` and `until_order` beside the times can
say otherwise: the smaller number is first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broker.language import Near, compile_subscription, parse_subscription
from broker.language.predicates import DEFAULT_ALPHA
from broker.language.schema import Attribute, Schema, continuous
from coverlay import CoverlayError, quoted
from sim.workloads.contract import Floats, Workload, from_filters
from sim.workloads.tables import Table, finite, not_negative, number
from sim.workloads.times import Unit, in_milliseconds

EXTRAS = ("score", "broker", "id", "time", "until", "order", "until_order")  # of subscriptions
EVENT_EXTRAS = ("broker", "time", "order")
ABSENT = {"broker": "brokers", "time": "times"}  # columns that [arrivals] makes up for
NEAR = ("near_lat", "near_lon", "alpha")
PARTS = ("_lo", "_hi", "_weight")
Called = Callable[[object], int]  # a broker's name or number → its number


def load_workload(
    subscriptions_file: Any,
    events_file: Any,
    schema_table: Mapping[str, Any] | None = None,
    called: Called | None = None,
    time_unit: Unit = "ms",
) -> Workload:
    """Read a workload from files or frames; without events it has none. Without `called`, brokers are only numbers."""
    if subscriptions_file is None:
        raise CoverlayError("workload.events_file needs workload.subscriptions_file too")
    subscriptions = Table.of("workload.subscriptions_file", subscriptions_file)
    events = None if events_file is None else Table.of("workload.events_file", events_file)
    told_of_times = in_milliseconds([subscriptions, *([events] if events is not None else [])], time_unit)
    if schema_table is not None:
        schema = Schema.from_table(schema_table)
    elif "text" in subscriptions.columns:
        raise CoverlayError(f"{subscriptions.path} has a text column, which needs a [schema] table")
    else:
        schema = _inferred(subscriptions, events)
    lives = _lives(subscriptions)
    changes = lives.pop("changes", {})
    asked = (_from_text if "text" in subscriptions.columns else _from_bounds)(subscriptions, schema)
    homes = _brokers(subscriptions, called)
    reranks = np.full(len(subscriptions), -1)
    for row, before in changes.items():
        moves = homes is not None and homes[row] != homes[before]
        same = all(np.array_equal(side[row], side[before]) for side in (asked.lo, asked.hi))
        if same and asked.residue(row) == asked.residue(before) and not moves:
            reranks[row] = before
    empty = (*_emptiness(subscriptions, "nobody subscribes"), *_emptiness(events, "nothing is published"))
    return replace(
        asked,
        homes=homes,
        ids=_ids(subscriptions),
        reranks=reranks if (reranks >= 0).any() else None,
        warnings=(
            *empty,
            *told_of_times,
            *_told_of_changes(subscriptions, len(changes), int((reranks >= 0).sum())),
            *_told_of_unbounded(subscriptions, asked),
            *_told_of_gaps(subscriptions, events, schema),
        ),
        **lives,
        **_events(events, schema, called),
    )


def _told_of_changes(table: Table, changes: int, of_rank: int) -> list[str]:
    if not changes:
        return []
    rows = "1 row changes" if changes == 1 else f"{changes} rows change"
    there = f"in {table.path} {rows} an existing subscription"
    alone = f"{of_rank} of these change{'s' * (of_rank == 1)} only the rank"
    ranks = f'; {alone}, which is a single request where matching.scope = "network"' if of_rank else ""
    return [f"{there}: the new one joins and the old one leaves at one moment, under the same id{ranks}"]


def _told_of_unbounded(table: Table, asked: Workload) -> list[str]:
    """Worth a warning: a misspelt id turns a change of score into a subscription without bounds."""
    rows = np.flatnonzero(~asked.mentioned.any(axis=1)).tolist()
    said = f"{table.path} has subscriptions without bounds, which match every event"
    return [f"{said} ({len(rows)}, first in {table.place(rows[0])})"] if rows else []


def _told_of_gaps(subscriptions: Table, events: Table | None, schema: Schema) -> list[str]:
    """What the files do not say, and what is used instead."""
    tables = {"subscriptions": subscriptions, **({"events": events} if events is not None else {})}
    absent = [f"{ABSENT[c]} of {what}" for what, table in tables.items() for c in ABSENT if c not in table.columns]
    notes = [f"not in your files, so [arrivals] decides: {', '.join(absent)}"] if absent else []
    if events is None or not len(events):
        return notes
    lacking = [name for name in schema.names if name not in events.columns]
    if lacking:
        notes.append(f"{events.path} has no column {', '.join(lacking)}: no event has a value there")
    if "time" in events.columns and (np.diff(events.convert("time", not_negative, None)) < 0).any():
        notes.append(f"{events.path} is not in order of time: events are numbered by time, not by line")
    return notes


def _emptiness(table: Table | None, consequence: str) -> list[str]:
    return [f"{table.path} has column names but no rows: {consequence}"] if table is not None and not len(table) else []


def _brokers(table: Table, called: Called | None) -> NDArray[np.int64] | None:
    if "broker" not in table.columns:
        return None
    return table.convert("broker", called or _broker_number, None).astype(np.int64)


def _broker_number(cell: Any) -> float:
    result = not_negative(cell)
    if not result.is_integer() or result > np.iinfo(np.int32).max:
        raise CoverlayError(f"{quoted(cell)} is not the number of a broker")
    return result


def _lives(table: Table) -> dict[str, Any]:
    """When each subscription comes and leaves, and which row replaces which; fills in the cells that a change omits."""
    if "time" not in table.columns:
        for column in ("until", "order", "until_order"):
            if column in table.columns:
                raise CoverlayError(f"{table.path} has a column {column!r}; it needs a column 'time' beside it")
        return {}
    came = table.convert("time", not_negative, 0.0)
    left = table.convert("until", _until, math.inf) if "until" in table.columns else np.full(len(table), math.inf)
    early = np.flatnonzero(left <= came)
    if len(early):
        row = int(early[0])
        raise table.error(row, "until", f"{left[row]:g} is not after time, {came[row]:g}")
    orders = {"came_order": orders_in(table, "order"), "left_order": orders_in(table, "until_order")}
    return {"changes": _replace_earlier(table, came, left), "came": came, "left": left, **orders}


def orders_in(table: Table, column: str) -> Floats | None:
    """What comes first at equal times, where a table says so."""
    return table.convert(column, not_negative, math.inf) if column in table.columns else None


def _replace_earlier(table: Table, came: Floats, left: Floats) -> dict[int, int]:
    """End each row where a later one with the same id begins; returns the later rows and those they replace."""
    ids = table.columns.get("id", [])
    asks = [cells for name, cells in table.columns.items() if name not in EXTRAS]
    kept = [cells for name, cells in table.columns.items() if name in ("score", "broker")]
    untils = table.columns.get("until")
    last: dict[str, int] = {}
    changes: dict[int, int] = {}
    for row in np.argsort(came, kind="stable").tolist() if ids else ():
        before = last.get(str(ids[row]))
        last[str(ids[row])] = row
        if before is None or ids[row] is None:
            continue
        if came[before] == came[row]:
            raise table.error(row, "id", f"{quoted(ids[row])} is the id of {table.place(before)} already, at that time")
        if all(cells[row] is None for cells in asks):
            for cells in asks:
                cells[row] = cells[before]
        for cells in kept:
            cells[row] = cells[before] if cells[row] is None else cells[row]
        if left[before] > came[row]:
            if untils and untils[row] is None:
                left[row] = left[before]
            left[before] = came[row]
            changes[row] = before
    return changes


def _until(cell: Any) -> float:
    return math.inf if number(cell) == math.inf else not_negative(cell)


def _value(attribute: Attribute) -> Callable[[Any], float]:
    """The number that an event cell of this attribute means."""
    if attribute.kind in ("categorical", "text"):
        return lambda cell: attribute.encode(str(cell))
    return lambda cell: attribute.encode(number(cell))


def _inferred(subscriptions: Table, events: Table | None) -> Schema:
    """Continuous attributes, named by the `_lo` and `_hi` columns, bounded by what occurs."""
    names = []
    for column in subscriptions.columns:
        for part in ("_lo", "_hi"):
            name = column.removesuffix(part)
            if column.endswith(part) and name not in names:
                names.append(name)
    if not names:
        raise CoverlayError(
            f"{subscriptions.path} has the columns {', '.join(subscriptions.columns)}; "
            "it needs a text column, or <attribute>_lo and <attribute>_hi"
        )
    attributes = []
    for name in names:
        seen = [subscriptions.convert(c, number, math.inf) for c in _bounds(subscriptions, name)]
        if events is not None and name in events.columns:
            seen.append(events.convert(name, finite, math.inf))
        values = np.concatenate(seen)
        bounded = values[np.isfinite(values)]
        low, high = (float(bounded.min()), float(bounded.max())) if len(bounded) else (0.0, 1.0)
        # Beyond 2^53 (nanoseconds since 1970, say) adding 1 changes nothing.
        attributes.append(continuous(name, low, high if high > low else max(low + 1.0, math.nextafter(low, math.inf))))
    return Schema(tuple(attributes))


def _bounds(table: Table, name: str) -> list[str]:
    return [name + part for part in ("_lo", "_hi") if name + part in table.columns]


def _from_bounds(table: Table, schema: Schema) -> Workload:
    places = NEAR if schema.place is not None else ()
    table.only([name + part for name in schema.names for part in PARTS] + [*EXTRAS, *places])
    shape = (len(table), len(schema))
    lo, hi, weights = np.full(shape, -np.inf), np.full(shape, np.inf), np.ones(shape)
    for j, attribute in enumerate(schema.attributes):
        if attribute.kind == "text" and (given := _bounds(table, attribute.name)):
            hint = f'ask for texts in a column text: {attribute.name} prefix "…"'
            raise CoverlayError(f"{table.path} has a column {given[0]}, but {attribute.name} is text; {hint}")
        bound = number if attribute.kind != "categorical" else lambda c, a=attribute: a.number(str(c))
        parts = ((lo, bound, -math.inf), (hi, bound, math.inf), (weights, not_negative, 1.0))
        for part, (into, cell, empty) in zip(PARTS, parts, strict=True):
            if attribute.name + part in table.columns:
                into[:, j] = table.convert(attribute.name + part, cell, empty)
        if attribute.integral:
            lo[:, j], hi[:, j] = np.ceil(lo[:, j]), np.floor(hi[:, j])
        never = np.flatnonzero((lo[:, j] > hi[:, j]) | (lo[:, j] == np.inf) | (hi[:, j] == -np.inf))
        if len(never):
            row = int(never[0])
            raise table.error(
                row, _bounds(table, attribute.name)[0], f"[{lo[row, j]:g}, {hi[row, j]:g}] can never match"
            )
    mentioned = np.isfinite(lo) | np.isfinite(hi)
    scores = table.convert("score", finite, 1.0) if "score" in table.columns else np.ones(len(table))
    weights, nothing = np.where(mentioned, weights, 0.0), np.empty((0, len(schema)))
    near = _near(table)
    return Workload(schema, lo + 0.0, hi + 0.0, mentioned, scores, weights, nothing, near=near)


def _near(table: Table) -> Floats | None:
    """Latitude, longitude and α by row; NaN where the row has no place."""
    given = [column for column in NEAR if column in table.columns]
    if not given:
        return None
    if "near_lat" not in given or "near_lon" not in given:
        raise CoverlayError(f"{table.path} has the column {given[0]}; a place needs near_lat and near_lon")
    near = np.column_stack([table.convert(column, finite, math.nan) for column in given])
    if "alpha" not in given:
        near = np.column_stack([near, np.full(len(near), math.nan)])
    placed = ~np.isnan(near[:, 0])
    for row, (latitude, longitude, alpha) in enumerate(near.tolist()):
        if math.isnan(latitude) != math.isnan(longitude):
            raise table.error(row, "near_lat", "a place has both a latitude and a longitude")
        if not placed[row] and not math.isnan(alpha):
            raise table.error(row, "alpha", "it weighs a place, but near_lat and near_lon are empty")
        try:
            if placed[row]:
                Near(latitude, longitude, DEFAULT_ALPHA if math.isnan(alpha) else alpha)
        except CoverlayError as error:
            raise table.error(row, "near_lat", str(error)) from None
    near[placed & np.isnan(near[:, 2]), 2] = DEFAULT_ALPHA
    return near


def _from_text(table: Table, schema: Schema) -> Workload:
    table.only(["text", *EXTRAS])
    filters = []
    for row, text in enumerate(table.columns["text"]):
        try:
            filters.append(compile_subscription(schema, parse_subscription(str(text or ""), id=row)))
        except CoverlayError as error:
            raise table.error(row, "text", str(error)) from None
    made = from_filters(schema, filters, np.empty((0, len(schema))))
    if "score" not in table.columns:
        return made
    given = np.array([cell is not None for cell in table.columns["score"]], dtype=np.bool_)
    return replace(made, scores=np.where(given, table.convert("score", finite, 0.0), made.scores))


def _events(table: Table | None, schema: Schema, called: Called | None) -> dict[str, Any]:
    """The columns of events, ordered by time where there are times."""
    if table is None:
        return {"events": np.empty((0, len(schema)))}
    weighted = [name for name in schema.names if f"{name}_weight" in table.columns]
    table.only([*schema.names, *EVENT_EXTRAS, *(f"{name}_weight" for name in schema.names)])
    weights = np.ones((len(table), len(schema)))
    for name in weighted:
        weights[:, schema.index(name)] = table.convert(f"{name}_weight", not_negative, 1.0)
    points = np.full((len(table), len(schema)), np.nan)
    for j, attribute in enumerate(schema.attributes):
        if attribute.name in table.columns:
            points[:, j] = table.convert(attribute.name, _value(attribute), math.nan)
    columns = {"events": points, "publishers": _brokers(table, called), "event_weights": weights if weighted else None}
    if "time" not in table.columns:
        if "order" in table.columns:
            raise CoverlayError(f"{table.path} has a column 'order'; it needs a column 'time' beside it")
        return columns
    times, order = table.convert("time", not_negative, None), orders_in(table, "order")
    columns |= {"times": times, "published_order": order}
    by_time = np.lexsort((np.zeros(len(times)) if order is None else order, times))
    return {name: None if c is None else c[by_time] for name, c in columns.items()}


def ids_in(subscriptions_file: str) -> tuple[str, ...]:
    """What a file calls its subscriptions, by number; empty where it has no ids."""
    return _ids(Table.read("workload.subscriptions_file", subscriptions_file)) or ()


def _ids(table: Table) -> tuple[str, ...] | None:
    if "id" not in table.columns:
        return None
    first: dict[str, int] = {}
    for row, cell in enumerate(table.columns["id"]):
        if cell is None:
            raise table.error(row, "id", "the cell is empty; every row needs an id once the column is there")
        if first.setdefault(str(cell), row) != row and "time" not in table.columns:
            place = table.place(first[str(cell)])
            raise table.error(row, "id", f"{quoted(cell)} is the id of {place} already; a change needs a column time")
    return tuple(map(str, table.columns["id"]))
