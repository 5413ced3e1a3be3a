"""The user's own subscriptions and events, from CSV or Parquet.

Subscriptions come in one of two forms:
- columns `<attribute>_lo` and `<attribute>_hi` (closed bounds, an empty cell is unbounded), optionally
  `<attribute>_weight`, and `near_lat`, `near_lon`, `alpha` where the schema has a place;
- a column `text` in the subscription language, which needs a schema.
Both may have `score`, `broker` and `id`. Events have one column per attribute (an empty cell: the event lacks
it), and optionally `<attribute>_weight`, `broker` and `time` in ms. Without a schema, all attributes are
continuous and bounded by the values that occur. A column that is none of these is an error: it would be ignored
silently otherwise.

Errors name the file, the row (the first row of data is 1) and the column.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from broker.language import Near, compile_subscription, parse_subscription
from broker.language.predicates import DEFAULT_ALPHA
from broker.language.schema import Attribute, Schema, continuous
from coverlay import CoverlayError, quoted
from sim.workloads.contract import Floats, Workload, from_filters

SUFFIXES = (".csv", ".parquet")
EXTRAS = ("score", "broker", "id")  # of subscriptions
EVENT_EXTRAS = ("broker", "time")
NEAR = ("near_lat", "near_lon", "alpha")
PARTS = ("_lo", "_hi", "_weight")


def load_workload(
    subscriptions_file: str | None, events_file: str | None, schema_table: Mapping[str, Any] | None = None
) -> Workload:
    """Read a workload; without an events file it has no events."""
    if subscriptions_file is None:
        raise CoverlayError("workload.events_file needs workload.subscriptions_file too")
    subscriptions = Table.read("workload.subscriptions_file", subscriptions_file)
    events = None if events_file is None else Table.read("workload.events_file", events_file)
    if schema_table is not None:
        schema = Schema.from_table(schema_table)
    elif "text" in subscriptions.columns:
        raise CoverlayError(f"{subscriptions.path} has a text column, which needs a [schema] table")
    else:
        schema = _inferred(subscriptions, events)
    asked = _from_text if "text" in subscriptions.columns else _from_bounds
    return replace(
        asked(subscriptions, schema),
        homes=subscriptions.brokers(),
        ids=_ids(subscriptions),
        warnings=(*_emptiness(subscriptions, "nobody subscribes"), *_emptiness(events, "nothing is published")),
        **_events(events, schema),
    )


def _emptiness(table: Table | None, consequence: str) -> list[str]:
    return [f"{table.path} has column names and no rows: {consequence}"] if table is not None and not len(table) else []


def gives(path: str | None, column: str) -> str | None:
    """Says that a file has a column, None if it has not; a file that cannot be read is refused elsewhere."""
    try:
        if path is None or column not in HEADERS[Path(path).suffix.lower()](path):
            return None
    except (KeyError, OSError, UnicodeDecodeError, pa.ArrowException, csv.Error):
        return None
    return f"{path} has a column {column!r}"


class Table:
    """A file as lists of cells by column; an empty cell is None."""

    def __init__(self, path: str, columns: dict[str, list[Any]]) -> None:
        self.path, self.columns = path, columns

    @staticmethod
    def read(what: str, path: str) -> Table:
        reader = {".csv": _read_csv, ".parquet": _read_parquet}.get(Path(path).suffix.lower())
        if reader is None:
            raise CoverlayError(f"{what} {path!r} ends in none of: {', '.join(SUFFIXES)}")
        try:
            return Table(path, reader(path))
        except OSError as error:
            raise CoverlayError(f"{what} {path!r} cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise CoverlayError(f"{what} {path!r} is not UTF-8 text") from None
        except (pa.ArrowException, csv.Error) as error:
            raise CoverlayError(f"{what} {path!r} cannot be read: {error}") from None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def error(self, row: int, column: str, message: str) -> CoverlayError:
        return CoverlayError(f"{self.path}, row {row + 1}, column {column}: {message}")

    def convert(self, column: str, cell: Callable[[Any], float], empty: float | None) -> Floats:
        """The column as numbers; `cell` makes one of a cell or raises, `empty` None allows no empty cell."""
        values = self.columns[column]
        result = np.empty(len(values))
        for row, value in enumerate(values):
            if value is None and empty is None:
                raise self.error(row, column, "the cell is empty; every row needs a value once the column is there")
            try:
                result[row] = empty if value is None else cell(value)
            except CoverlayError as error:
                raise self.error(row, column, str(error)) from None
        return result

    def brokers(self) -> NDArray[np.int64] | None:
        if "broker" not in self.columns:
            return None
        return self.convert("broker", _broker, None).astype(np.int64)

    def only(self, known: list[str]) -> None:
        for column in self.columns:
            if column not in known:
                raise CoverlayError(f"{self.path} has a column {quoted(column)}; there may be: {', '.join(known)}")


def _read_csv(path: str) -> dict[str, list[Any]]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file, strict=True)
        header = [name.strip() for name in next(rows, [])]
        if not header:
            raise CoverlayError(f"{path} is empty; its first line names the columns")
        repeated = [name for name in header if header.count(name) > 1]
        if repeated:
            raise CoverlayError(f"{path} has column {quoted(repeated[0])} more than once")
        columns: list[list[Any]] = [[] for _ in header]
        count = 0
        for row in rows:
            if not row:
                continue  # a blank line
            count += 1
            if len(row) != len(header):
                raise CoverlayError(f"{path}, row {count} has {len(row)} cells for {len(header)} columns")
            for column, cell in zip(columns, row, strict=True):
                column.append(cell.strip() or None)
    return dict(zip(header, columns, strict=True))


def _read_parquet(path: str) -> dict[str, list[Any]]:
    table = pq.read_table(path)
    if not table.num_columns:
        raise CoverlayError(f"{path} has no columns")
    columns = {}
    for name in table.column_names:
        cells = table.column(name).to_pylist()
        # pandas writes a missing number as NaN.
        columns[name] = [None if isinstance(c, float) and math.isnan(c) else c for c in cells]
    return columns


def _csv_header(path: str) -> list[str]:
    with open(path, newline="", encoding="utf-8-sig") as file:
        return [name.strip() for name in next(csv.reader(file, strict=True), [])]


HEADERS: dict[str, Callable[[str], list[str]]] = {".csv": _csv_header, ".parquet": lambda p: pq.read_schema(p).names}


def _number(cell: Any) -> float:
    try:
        result = math.nan if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError):
        result = math.nan
    except OverflowError:
        result = math.inf
    if math.isnan(result):
        raise CoverlayError(f"{quoted(cell)} is not a number")
    if math.isinf(result) and not isinstance(cell, float) and "inf" not in str(cell).lower():
        raise CoverlayError(f"{quoted(cell)} is beyond the largest number, 1.8e308; unbounded is an empty cell or inf")
    return result


def _finite(cell: Any) -> float:
    result = _number(cell)
    if math.isinf(result):
        raise CoverlayError(f"{quoted(cell)} is not a finite number")
    return result


def _not_negative(cell: Any) -> float:
    result = _finite(cell)
    if result < 0:
        raise CoverlayError(f"{quoted(cell)} must not be negative")
    return result


def _broker(cell: Any) -> float:
    result = _not_negative(cell)
    if not result.is_integer() or result > np.iinfo(np.int32).max:
        raise CoverlayError(f"{quoted(cell)} is not the number of a broker")
    return result


def _value(attribute: Attribute) -> Callable[[Any], float]:
    """The number that an event cell of this attribute means."""
    if attribute.kind == "categorical":
        return lambda cell: attribute.encode(str(cell))
    return lambda cell: attribute.encode(_number(cell))


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
        seen = [subscriptions.convert(c, _number, math.inf) for c in _bounds(subscriptions, name)]
        if events is not None and name in events.columns:
            seen.append(events.convert(name, _finite, math.inf))
        values = np.concatenate(seen)
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
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
        number = _number if attribute.kind != "categorical" else lambda c, a=attribute: a.number(str(c))
        if f"{attribute.name}_lo" in table.columns:
            lo[:, j] = table.convert(f"{attribute.name}_lo", number, -math.inf)
        if f"{attribute.name}_hi" in table.columns:
            hi[:, j] = table.convert(f"{attribute.name}_hi", number, math.inf)
        if f"{attribute.name}_weight" in table.columns:
            weights[:, j] = table.convert(f"{attribute.name}_weight", _not_negative, 1.0)
        if attribute.integral:
            lo[:, j], hi[:, j] = np.ceil(lo[:, j]), np.floor(hi[:, j])
        never = np.flatnonzero((lo[:, j] > hi[:, j]) | (lo[:, j] == np.inf) | (hi[:, j] == -np.inf))
        if len(never):
            row = int(never[0])
            raise table.error(row, f"{attribute.name}_lo", f"[{lo[row, j]:g}, {hi[row, j]:g}] can never match")
    mentioned = np.isfinite(lo) | np.isfinite(hi)
    scores = table.convert("score", _finite, 1.0) if "score" in table.columns else np.ones(len(table))
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
    near = np.column_stack([table.convert(column, _finite, math.nan) for column in given])
    if "alpha" not in given:
        near = np.column_stack([near, np.full(len(near), math.nan)])
    near[np.isnan(near[:, 2]), 2] = DEFAULT_ALPHA
    for row, (latitude, longitude, alpha) in enumerate(near.tolist()):
        if math.isnan(latitude) != math.isnan(longitude):
            raise table.error(row, "near_lat", "a place has both a latitude and a longitude")
        try:
            if not math.isnan(latitude):
                Near(latitude, longitude, alpha)
        except CoverlayError as error:
            raise table.error(row, "near_lat", str(error)) from None
    near[np.isnan(near[:, 0])] = np.nan
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
    return replace(made, scores=np.where(given, table.convert("score", _finite, 0.0), made.scores))


def _events(table: Table | None, schema: Schema) -> dict[str, Any]:
    """The columns of events, ordered by time where there are times."""
    if table is None:
        return {"events": np.empty((0, len(schema)))}
    weighted = [name for name in schema.names if f"{name}_weight" in table.columns]
    table.only([*schema.names, *EVENT_EXTRAS, *(f"{name}_weight" for name in schema.names)])
    weights = np.ones((len(table), len(schema)))
    for name in weighted:
        weights[:, schema.index(name)] = table.convert(f"{name}_weight", _not_negative, 1.0)
    points = np.full((len(table), len(schema)), np.nan)
    for j, attribute in enumerate(schema.attributes):
        if attribute.name in table.columns:
            points[:, j] = table.convert(attribute.name, _value(attribute), math.nan)
    columns = {"events": points, "publishers": table.brokers(), "event_weights": weights if weighted else None}
    if "time" not in table.columns:
        return columns
    times = table.convert("time", _not_negative, None)
    order = np.argsort(times, kind="stable")
    return {name: None if c is None else c[order] for name, c in {**columns, "times": times}.items()}


def _ids(table: Table) -> tuple[str, ...] | None:
    if "id" not in table.columns:
        return None
    first: dict[str, int] = {}
    for row, cell in enumerate(table.columns["id"]):
        if cell is None:
            raise table.error(row, "id", "the cell is empty; every row needs an id once the column is there")
        if str(cell) in first:
            raise table.error(row, "id", f"{quoted(cell)} is the id of row {first[str(cell)] + 1} already")
        first[str(cell)] = row
    return tuple(first)
