"""The user's own tables, from CSV, Parquet or JSON lines: cells by column, and messages about bad ones.

JSON lines hold an object per line; a key that a line lacks, or null, is an empty cell. Errors name the file, the line
(of Parquet, the row) and the column.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from coverlay import CoverlayError, quoted
from sim.workloads.contract import Floats

OTHER_SEPARATORS = ";\t|"  # some programs write them for a comma
PANDAS_INDEX = "__index_level_"  # a column that pandas adds for itself


class Table:
    """A file as lists of cells by column; an empty cell is None. `lines` has the line of each row of a text file."""

    def __init__(self, path: str, columns: dict[str, list[Any]], lines: list[int] | None = None) -> None:
        self.path, self.columns, self.lines = path, columns, lines

    def place(self, row: int) -> str:
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    @staticmethod
    def read(what: str, path: str) -> Table:
        reader = READERS.get(Path(path).suffix.lower())
        if reader is None:
            raise CoverlayError(f"{what} {path!r} ends in none of: {', '.join(READERS)}")
        try:
            return reader(path)
        except OSError as error:
            raise CoverlayError(f"{what} {path!r} cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise CoverlayError(f"{what} {path!r} is not UTF-8 text") from None
        except (pa.ArrowException, csv.Error) as error:
            raise CoverlayError(f"{what} {path!r} cannot be read: {error}") from None

    @staticmethod
    def of(what: str, given: Any) -> Table:
        """From a file, or from a frame of pandas or Arrow, which errors then call `what`."""
        if isinstance(given, Table):
            return given
        if isinstance(given, str | Path):
            return Table.read(what, str(given))
        if isinstance(given, pd.DataFrame):
            given = pa.Table.from_pandas(given, preserve_index=False)
        if not isinstance(given, pa.Table):
            raise CoverlayError(f"{what} is {quoted(given)}; it must be a file or a frame of pandas or Arrow")
        return _of_arrow(given, what)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def error(self, row: int, column: str, message: str) -> CoverlayError:
        return CoverlayError(f"{self.path}, {self.place(row)}, column {column}: {message}")

    def convert(self, column: str, cell: Callable[[Any], float], empty: float | None) -> Floats:
        """The column as numbers; `cell` converts a cell or raises. An empty cell is `empty`; None: an error."""
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

    def only(self, known: list[str]) -> None:
        for column in self.columns:
            if column not in known:
                raise CoverlayError(f"{self.path} has a column {quoted(column)}; it may have: {', '.join(known)}")


def gives(path: str | None, column: str) -> str | None:
    """A sentence that the file has the column, else None. A file that cannot be read is refused elsewhere."""
    try:
        if path is None or column not in _header(path):
            return None
    except (CoverlayError, KeyError, OSError, UnicodeDecodeError, pa.ArrowException, csv.Error):
        return None
    return f"{path} has a column {column!r}"


def _header(path: str) -> list[str]:
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        with open(path, newline="", encoding="utf-8-sig") as file:
            return [name.strip() for name in next(csv.reader(file, strict=True), [])]
    return list(pq.read_schema(path).names) if suffix == ".parquet" else list(READERS[suffix](path).columns)


def _read_csv(path: str) -> Table:
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file, strict=True)
        header = [name.strip() for name in next(rows, [])]
        if not header:
            raise CoverlayError(f"{path} is empty; its first line names the columns")
        if len(header) == 1 and (other := next((mark for mark in OTHER_SEPARATORS if mark in header[0]), None)):
            raise CoverlayError(f"{path} separates columns by {other!r}; use commas (and decimal points)")
        repeated = [name for name in header if header.count(name) > 1]
        if repeated:
            raise CoverlayError(f"{path} has column {quoted(repeated[0])} more than once")
        columns: list[list[Any]] = [[] for _ in header]
        lines = []
        for row in rows:
            if not row:
                continue  # a blank line
            lines.append(rows.line_num)
            if len(row) != len(header):
                raise CoverlayError(f"{path}, line {lines[-1]} has {len(row)} cells for {len(header)} columns")
            for column, cell in zip(columns, row, strict=True):
                column.append(cell.strip() or None)
    return Table(path, dict(zip(header, columns, strict=True)), lines)


def _read_parquet(path: str) -> Table:
    return _of_arrow(pq.read_table(path), path)


def _of_arrow(table: pa.Table, path: str) -> Table:
    names = [name for name in table.column_names if not name.startswith(PANDAS_INDEX)]
    if not names:
        raise CoverlayError(f"{path} has no columns")
    columns = {}
    for name in names:
        cells = table.column(name).to_pylist()
        # pandas writes a missing number as NaN.
        columns[name] = [None if isinstance(c, float) and math.isnan(c) else c for c in cells]
    return Table(path, columns)


def _read_json_lines(path: str) -> Table:
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            for name, cell in _json_object(line, f"{path}, line {number}").items():
                columns.setdefault(name, [None] * len(lines)).append(cell)
            lines.append(number)
            for column in columns.values():
                column += [None] * (len(lines) - len(column))
    if not columns:
        raise CoverlayError(f"{path} is empty; every line is a JSON object with a key per column")
    return Table(path, columns, lines)


def _json_object(line: str, where: str) -> dict[str, Any]:

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise CoverlayError(f"{where} has a key more than once: {quoted(line.strip())}")
        return dict(pairs)

    try:
        value = json.loads(line, object_pairs_hook=once)
    except CoverlayError:
        raise
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise CoverlayError(f'{where}: {quoted(line.strip())} is not a JSON object like {{"price_lo": 1}}')
    for name, cell in value.items():
        if isinstance(cell, dict | list):
            raise CoverlayError(f"{where}: {name} is {quoted(cell)}; it must be a number, a text or null")
    return value


READERS: dict[str, Callable[[str], Table]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".jsonl": _read_json_lines,
}


def number(cell: Any) -> float:
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


def finite(cell: Any) -> float:
    result = number(cell)
    if math.isinf(result):
        raise CoverlayError(f"{quoted(cell)} is not a finite number")
    return result


def not_negative(cell: Any) -> float:
    result = finite(cell)
    if result < 0:
        raise CoverlayError(f"{quoted(cell)} must not be negative")
    return result
