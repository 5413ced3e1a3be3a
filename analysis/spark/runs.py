"""One run's folder: its record and its tables, and a refusal of what cannot be trusted.

Only footers and the one-row `run` table are read when a run is opened, each once. When data is read later, by Spark or
pyarrow, the checksum of every page is verified. What is checked, and what happens:

| in `<out>/runs`                            | what we do                                            |
|--------------------------------------------|-------------------------------------------------------|
| a run folder that lacks a table            | skipped with a warning: an interrupted copy           |
| a file that is not Parquet, or is cut off  | refused by name: half a table gives wrong numbers     |
| a column that is missing or of other type  | refused by name: another version of Coverlay wrote it |
| a table of another run, or of no run       | refused by name: every file says which trace it is of |
| a run under the name of another            | refused by name: the record says what it is called    |
| a column that may lack values it must have | refused by name: another program wrote it             |
| a footer or record that was changed        | refused by name: the record has digests of them       |
| a run of a version without checksums       | read with a warning: a flipped bit goes unnoticed     |
| more columns than we know                  | read; only the columns we know are used               |
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from broker.trace import digests
from broker.trace.schema import ALL, CHECKED, HASHED, MARK, OPTIONAL, SCHEMAS, SPECIAL
from coverlay import CoverlayError

RUN_FOLDER = "run="  # the Parquet partition column `run`
# What pyarrow raises for a damaged file; the last three if lengths or names in it are damaged.
_UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)


@dataclass(frozen=True)
class Run:
    """One complete run on disk: its folder, and the row of its `run` table."""

    name: str
    folder: Path
    record: Mapping[str, Any]
    point: Mapping[str, Any]
    parameters: Mapping[str, Any]
    digests: Mapping[str, Any]  # see broker/trace/digests.py; empty for traces of a version that kept none

    @classmethod
    def of(cls, folder: Path, record: Mapping[str, Any]) -> Run:
        """The run in this folder, whose `run` table has this row; refused if it is not the row that was written."""
        text = record.get(digests.COLUMN)
        kept = json_object(folder, digests.COLUMN, text) if text is not None else {}
        if text is not None and kept.get(digests.RECORD) != digests.record_digest(record):
            raise _refusal(folder, f"{folder / 'run.parquet'} is damaged (its values are not those that were written)")
        point, parameters = (json_object(folder, name, record[name]) for name in ("point", "parameters"))
        return cls(run_name(folder), folder, record, point, parameters, kept)

    def path(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def has(self, table: str) -> bool:
        """Does this run have the table? Those of SCHEMAS are in every run, those of SPECIAL in some."""
        return table in SCHEMAS or table in self.digests

    @property
    def files(self) -> list[str]:
        """The tables of whose files the digests are known: all but the record itself, or none."""
        return [table for table in ALL if table in self.digests and table != digests.RECORD]

    def digest(self, table: str) -> str:
        """The digest of the whole file, as it was written."""
        kept: str = self.digests[table]["file"]
        return kept

    def read(self, table: str) -> pa.Table:
        """One whole table of a single run; sweeps are read with Spark."""
        path = self.path(table)
        if table in SPECIAL and not path.is_file():
            return SPECIAL[table].empty_table()
        later = {name for of, name in OPTIONAL if of == table}  # earlier versions did not write them
        have = set(pq.read_schema(path).names) if later else set()
        return _read_table(path, [name for name in ALL[table].names if name not in later or name in have])

    def read_first(self, table: str) -> pa.Table:
        """The first rows of a table, at most one row group: for examples from a run of any size."""
        path = self.path(table)
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                return file.read_row_group(0) if file.num_row_groups else self.read(table)
        except _UNREADABLE as error:
            raise _damaged(path, error) from error


def run_folders(out: Path) -> list[Path]:
    """The folders that have a run's name, in order; a CoverlayError if `<out>/runs` does not exist."""
    base = out / "runs"
    if not base.is_dir():
        raise CoverlayError(f"there are no runs in {out}: `coverlay run … --out {out}` writes {base}")
    return [folder for folder in sorted(base.iterdir()) if folder.name.startswith(RUN_FOLDER) and folder.is_dir()]


def run_name(folder: Path) -> str:
    """The run's name as Spark has it: Spark undoes %-escapes in the values of partition columns."""
    return urllib.parse.unquote(folder.name.removeprefix(RUN_FOLDER))


def missing_tables(folder: Path) -> list[str]:
    return [f"{name}.parquet" for name in SCHEMAS if not (folder / f"{name}.parquet").is_file()]


def open_run(folder: Path) -> Run:
    """The run in this folder; a CoverlayError if one of its tables cannot be trusted."""
    missing = missing_tables(folder)
    if missing:
        raise _refusal(folder, f"{folder} is not a complete run: {missing[0]} is missing")
    run, metadata = _record(folder)
    said = {"run": metadata}
    for name in (*HASHED, *(name for name in SPECIAL if name in run.digests)):
        path = folder / f"{name}.parquet"
        if name in SPECIAL and not path.is_file():  # the record's digests say that it must exist
            raise _refusal(folder, f"{folder} is not a complete run: {path.name} is missing")
        footer = digests.footer(path)
        # Checked before the footer is used.
        if run.digests and digests.digest(footer) != run.digests[name]["footer"]:
            raise _refusal(folder, f"{path} is damaged (its footer is not the one that was written)")
        said[name] = _checked(path, footer).metadata or {}
    if _check_marks(folder, said) and not run.digests:
        raise _refusal(folder, f"{folder / 'run.parquet'} is damaged (it has lost its digests)")
    if run.record["run_id"] != run.name:
        raise _refusal(folder, f"{folder} holds run {run.record['run_id']}: it was renamed, or its files were copied")
    return run


def read_record(folder: Path) -> Run:
    """The run in this folder by its record alone; the other tables are not looked at."""
    return _record(folder)[0]


def _record(folder: Path) -> tuple[Run, Mapping[bytes, bytes]]:
    """The run by its record, and what the record's file says about itself."""
    path = folder / "run.parquet"
    try:
        raw = path.read_bytes()
        metadata = _checked(path, raw)
        with pq.ParquetFile(pa.BufferReader(raw), metadata=metadata, page_checksum_verification=True) as file:
            rows = file.read(use_threads=False).to_pylist()  # one row: threads would cost more
    except _UNREADABLE as error:
        raise _damaged(path, error) from error
    if len(rows) != 1:
        raise _refusal(folder, f"{path} has {len(rows)} rows and must have one")
    return Run.of(folder, rows[0]), metadata.metadata or {}


def _read_table(path: Path, columns: list[str]) -> pa.Table:
    try:
        return pq.read_table(path, partitioning=None, columns=columns, page_checksum_verification=True)
    except _UNREADABLE as error:
        raise _damaged(path, error) from error


def _check_marks(folder: Path, said: Mapping[str, Mapping[bytes, bytes]]) -> bool:
    """Refuse a file of another trace than the record's: it would count for this run.

    Returns whether any file says that it has checksums.
    """
    for name in SCHEMAS:
        path, metadata = folder / f"{name}.parquet", said[name]
        if MARK not in metadata:
            raise _refusal(folder, f"{path} does not say which run it belongs to")
        if metadata[MARK] != said["run"].get(MARK):
            raise _refusal(folder, f"{path} belongs to another run than {folder / 'run.parquet'}")
    return any(CHECKED in metadata for metadata in said.values())


def _checked(path: Path, footer: bytes) -> pq.FileMetaData:
    """What a file's footer says; refused if it lacks columns that the table must have."""
    try:
        metadata = pq.read_metadata(pa.BufferReader(footer))
        found = metadata.schema.to_arrow_schema().remove_metadata()
    except _UNREADABLE as error:
        raise _refusal(path.parent, f"{path} is not a readable Parquet file ({_first_line(error)})") from error
    wrong = _misfit(path.stem, found)
    if wrong:
        raise _refusal(path.parent, f"{path} {wrong}")
    return metadata


@lru_cache(maxsize=256)  # the runs of a sweep have the same schemas
def _misfit(table: str, found: pa.Schema) -> str:
    """What is wrong with the columns that a file has for this table; empty if nothing is."""
    for want in ALL[table]:
        index = found.get_field_index(want.name)
        if index < 0 and (table, want.name) in OPTIONAL:
            continue
        if index < 0:
            return f"has no column {want.name!r}, so another version of Coverlay or another program wrote it"
        kind = plain(found.field(index).type)
        if kind != plain(want.type):
            return f"has column {want.name!r} of type {kind}, which must be {plain(want.type)}"
        # Not by the null count in the footer's statistics: if they are damaged, pyarrow aborts the process.
        if found.field(index).nullable and not want.nullable:
            return f"may have rows without a value in column {want.name!r}, so another program wrote it"
    return ""


def canonical(value: Mapping[str, Any]) -> str:
    """One text for equal JSON objects, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True)


def json_object(folder: Path, column: str, text: str) -> Mapping[str, Any]:
    """A column of the run record that has a JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _refusal(folder, f"column {column!r} of {folder / 'run.parquet'} is not a JSON object")
    return value


def plain(kind: pa.DataType) -> pa.DataType:
    """The type on disk: Parquet stores dictionaries of strings and large strings as strings."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if pa.types.is_large_string(kind) else kind


def remedy(folder: Path) -> str:
    return f"remove {folder} and repeat it with `coverlay run … --resume`"


def _refusal(folder: Path, why: str) -> CoverlayError:
    return CoverlayError(f"{why}; {remedy(folder)}")


def changed_file(path: Path) -> CoverlayError:
    return _refusal(path.parent, f"{path} is damaged (its digest is not that of the file that was written)")


def _damaged(path: Path, error: Exception) -> CoverlayError:
    return _refusal(path.parent, f"{path} is damaged ({_first_line(error)})")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
