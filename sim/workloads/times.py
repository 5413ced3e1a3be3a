"""Times of a recording: numbers of a given unit, or dates and times by ISO 8601; both become milliseconds.

Numbers count from 0, dates from the earliest one in all files, so that it becomes 0. A date without a zone is in UTC.
Milliseconds are doubles: 2^53 of the smallest steps that a recording uses are as far as they reach. Times that would
not stay as they were recorded are refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from coverlay import CoverlayError, quoted
from sim.workloads.tables import Table, not_negative, number

Unit = Literal["ms", "s", "us", "ns"]
IN_MS: dict[str, Decimal] = {"ms": Decimal(1), "s": Decimal(1000), "us": Decimal("1e-3"), "ns": Decimal("1e-6")}
WORDS = {"ms": "milliseconds", "s": "seconds", "us": "microseconds", "ns": "nanoseconds"}
COLUMNS = ("time", "until")
NEVER = ("inf", "+inf", "infinity")  # of `until`; the end of time is the same in every unit
_NS = 1_000_000  # in a millisecond
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FROM, _TO = 1e9, 4e9  # seconds since 1970 from 2001 to 2096: recordings are from these years, if they count from 1970
_DATE = re.compile(r"\d{4}-|\d{8}T")  # how a date begins
_FRACTION = re.compile(r"[.,](\d+)")
_EXACT = 2.0**53  # larger whole numbers are not all doubles
_LIKE = "2026-11-18T12:00:00Z"


def in_milliseconds(tables: Iterable[Table], unit: Unit) -> list[str]:
    """Replace the times in tables by milliseconds; returns notes about what may not be meant."""
    tables = list(tables)
    if unit == "ms" and all(map(_is_plain, tables)):
        return [note for table in tables for note in _doubts(table, unit)]
    cells = [cell for table in tables for cell in _cells(table)]
    dates = [cell for cell in cells if cell.is_date]
    if dates and len(dates) < len(cells):
        other = next(cell for cell in cells if not cell.is_date)
        raise other.error(f"{quoted(other.value)} is no date, but {dates[0].place} has one; give dates or numbers")
    zoned = [cell for cell in dates if cell.zoned]
    if zoned and len(zoned) < len(dates):
        other = next(cell for cell in dates if not cell.zoned)
        raise other.error(f"{quoted(other.value)} has no zone (Z is UTC), but the one in {zoned[0].place} has")
    starts = [cell.nanoseconds for cell in dates if cell.column == "time"]
    origin = min(starts, default=0)
    exact = [Decimal(c.nanoseconds - origin) / _NS if c.is_date else c.decimal() * IN_MS[unit] for c in cells]
    notes = [] if dates else [note for table in tables for note in _doubts(table, unit)]
    for cell, milliseconds in zip(cells, exact, strict=True):
        cell.write(milliseconds, unit)
    _refuse_merged(cells)
    if dates:
        begins = (_EPOCH + timedelta(microseconds=origin // 1000)).isoformat().replace("+00:00", "Z")
        notes.append(f"times count from {begins}, the earliest in your files")
    return notes


def _is_plain(table: Table) -> bool:
    """Are all times numbers that need no care? A faster answer than cell by cell."""
    with suppress(CoverlayError):
        return all(number(c) < _EXACT for column in COLUMNS for c in table.columns.get(column, ()) if c is not None)
    return False


class _Cell:
    """One time in a table."""

    def __init__(self, table: Table, column: str, row: int) -> None:
        self.table, self.column, self.row = table, column, row
        self.value = table.columns[column][row]
        text = isinstance(self.value, str)
        self.is_date = isinstance(self.value, date) or (text and _DATE.match(self.value) is not None)
        if self.is_date:
            self.nanoseconds, self.zoned = self._date()

    @property
    def place(self) -> str:
        return f"{self.table.path}, {self.table.place(self.row)}"

    def error(self, message: str) -> CoverlayError:
        return self.table.error(self.row, self.column, message)

    def _date(self) -> tuple[int, bool]:
        """Nanoseconds since 1970, and whether the zone is given."""
        value, rest = self.value, 0
        if isinstance(value, str):
            fraction = _FRACTION.search(value)
            digits = fraction[1].ljust(9, "0") if fraction else "0" * 9
            if digits[9:].strip("0"):
                raise self.error(f"{quoted(value)} is finer than nanoseconds, which is as fine as dates can be")
            try:
                when, rest = datetime.fromisoformat(value), int(digits[6:9])
            except ValueError:
                raise self.error(f"{quoted(value)} is not a date and time like {_LIKE}") from None
        else:
            when = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
            rest = getattr(value, "nanosecond", 0)  # of pandas, which reads Parquet's nanoseconds
        since = when.replace(tzinfo=when.tzinfo or UTC) - _EPOCH
        return (since // timedelta(microseconds=1)) * 1000 + rest, when.tzinfo is not None

    def decimal(self) -> Decimal:
        """The number as it was written."""
        try:
            not_negative(self.value)
        except CoverlayError as error:
            raise self.error(f"{error}; a time is a number or a date like {_LIKE}") from None
        return Decimal(self.value.strip() if isinstance(self.value, str) else repr(self.value))

    def write(self, exact: Decimal, unit: Unit) -> None:
        """Replace the cell by milliseconds; CoverlayError if a whole number of the unit would be another one then."""
        milliseconds = float(exact)
        self.exact = exact
        self.table.columns[self.column][self.row] = milliseconds
        if _is_whole(self.value) and not self.is_date and round(Decimal(milliseconds) / IN_MS[unit]) != int(self.value):
            coarse = math.ulp(milliseconds) * 1000
            kept = f"milliseconds are precise only to {coarse:.2g} µs there"
            raise self.error(f"{quoted(self.value)} {unit} would be rounded: {kept}; let times begin near 0")


def _cells(table: Table) -> Iterator[_Cell]:
    for column in COLUMNS:
        for row, value in enumerate(table.columns.get(column, ())):
            if value is not None and str(value).strip().lower() not in NEVER:
                yield _Cell(table, column, row)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and value.strip().lstrip("+-").isdecimal())


def _refuse_merged(cells: list[_Cell]) -> None:
    """Times that differ in the files must differ here: their order is what a recording is about."""
    first: dict[float, _Cell] = {}
    for cell in cells:
        same = first.setdefault(cell.table.columns[cell.column][cell.row], cell)
        if same.exact != cell.exact:
            both = f"{quoted(cell.value)} and {quoted(same.value)} ({same.place})"
            raise cell.error(f"{both} would be the same number of milliseconds; let times begin near 0")


def _doubts(table: Table, unit: Unit) -> Iterator[str]:
    """A note if the numbers of a file look like seconds (and so on) since 1970 of another unit."""
    first = min((number(cell) for cell in table.columns.get("time", ()) if cell is not None), default=0.0)
    for other, factor in IN_MS.items():
        seconds = first * float(factor) / 1000
        if other != unit and _FROM <= seconds <= _TO:
            when = f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%d}"
            looks = f"times in {table.path} look like {WORDS[other]} since 1970 ({first:.0f} would be {when})"
            yield f'{looks}, but are read as {WORDS[unit]}; workload.time_unit = "{other}" changes that'
