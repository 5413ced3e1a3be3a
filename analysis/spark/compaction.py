"""Many small runs compacted: one file per table for a few hundred runs, in `<out>/compacted`.

Spark spends 20 to 30 ms of CPU on the files of a run, however small they are. Run folders stay the truth; a compacted
copy of some of them, a block, is a cache that anybody may delete at any time. What makes it safe:

1. A block is named by what it is a copy of: the names of its runs, the digests of their `run.parquet`, in which are the
   digests of all their other files, and the columns that we read. A changed run would have a block of another name.
2. It is made from bytes whose digest is the recorded one, and gets its name when it is complete.
3. It is used if its own files are those that were written, and if every file of every run in it has its recorded
   digest, from the first byte to the last. Otherwise none of it is used.
4. No run is in two blocks that are used: it would count twice.

Blocks that are not used are removed when blocks are made, which happens before an aggregation.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.spark.runs import Run, changed_file
from broker.trace import digests
from broker.trace.schema import ALL, ROW_GROUP, SCHEMAS, parquet_options

FOLDER = "compacted"  # beside `runs`
MANIFEST = "block.json"
SMALL_BYTES = 2**19  # of all files of a run: comparing them takes less than Spark needs to open them
LEAST = 50  # runs, from which on making a block takes less than it saves
MOST = 250  # runs in a block


@dataclass(frozen=True)
class Block:
    """A compacted copy that is as it was written; whether its runs still are, `unchanged` tells of each."""

    folder: Path
    runs: Mapping[str, str]  # their folders' names → the digests of their run.parquet
    files: Mapping[str, str]  # tables that it has → the digest of the file

    def path(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The name of each run's folder, and the row of its `run` table."""
        rows = pq.read_table(self.path("run"), columns=SCHEMAS["run"].names, partitioning=None, use_threads=False)
        return zip(self.runs, rows.to_pylist(), strict=True)

    def unchanged(self, folder: Path, record: Mapping[str, Any]) -> Run | None:
        """The run in this folder, if each of its files is what it was when it was copied."""
        try:
            if digests.file_digest(folder / "run.parquet") != self.runs[folder.name]:
                return None
            run = Run.of(folder, record)
            return (
                None if any(digests.file_digest(run.path(table)) != run.digest(table) for table in run.files) else run
            )
        except OSError:  # a file is gone, or cannot be read
            return None


def blocks_in(out: Path) -> tuple[list[Block], list[str]]:
    """The blocks that are whole, no two of which have a run in common; and a warning for each that is damaged."""
    found: list[Block] = []
    warnings: list[str] = []
    taken: set[str] = set()
    for folder in sorted((out / FOLDER).glob("[!.]*")):
        try:
            block = _opened(folder)
        except (OSError, ValueError, KeyError, TypeError):
            warnings.append(f"the compacted copy {folder} is damaged and was not used: is the disk sound?")
            continue
        ours = folder.name == _name(block.runs)  # else a version with other columns made it
        if ours and taken.isdisjoint(block.runs):
            found.append(block)
            taken.update(block.runs)
    return found, warnings


def _opened(folder: Path) -> Block:
    """The block in this folder; an error if a file of it is not what was written."""
    kept = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    block = Block(folder, dict(kept["runs"]), dict(kept["files"]))
    if any(digests.file_digest(block.path(table)) != was for table, was in block.files.items()):
        raise ValueError(folder)
    return block


def _name(runs: Mapping[str, str]) -> str:
    columns = {table: [f"{column.name} {column.type}" for column in schema] for table, schema in ALL.items()}
    return digests.digest(json.dumps([columns, sorted(runs.items())]).encode())


def can_compact(run: Run) -> bool:
    """Is this run small, of our version, and can it be told when it changes?"""
    ours = list(run.record) == SCHEMAS["run"].names
    return ours and bool(run.digests) and sum(run.path(table).stat().st_size for table in run.files) <= SMALL_BYTES


def remove_others(out: Path, used: Iterable[Block]) -> int:
    """Remove what is in the cache and not one of these blocks; returns how many blocks were removed."""
    keep = {block.folder.name for block in used}
    others = [folder for folder in (out / FOLDER).glob("*") if folder.name not in keep]
    for folder in others:
        shutil.rmtree(folder, ignore_errors=True)
    return sum(not folder.name.startswith(".") and not folder.exists() for folder in others)


def in_blocks(runs: Sequence[Run]) -> list[Sequence[Run]]:
    return [runs[first : first + MOST] for first in range(0, len(runs), MOST)]


def compact(out: Path, runs: Sequence[Run]) -> Block:
    """A block of these runs; a CoverlayError if a run is damaged, an OSError if the block cannot be written."""
    base = out / FOLDER
    kept = {run.folder.name: digests.file_digest(run.path("run")) for run in runs}
    folder = base / _name(kept)
    unfinished = base / f".{folder.name}.{uuid.uuid4().hex[:8]}"  # as long as it is incomplete
    unfinished.mkdir(parents=True)
    try:
        written = {table: _write(unfinished / f"{table}.parquet", table, runs) for table in ALL}
        files = {table: digest for table, digest in written.items() if digest is not None}
        (unfinished / MANIFEST).write_text(json.dumps({"runs": kept, "files": files}), encoding="utf-8")
        try:
            os.rename(unfinished, folder)
        except OSError as error:  # it is there, if another analysis of the same runs was faster
            with suppress(ValueError, KeyError, TypeError):
                return _opened(folder)
            raise error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Block(folder, kept, files)


def _write(path: Path, table: str, runs: Sequence[Run]) -> str | None:
    """Write one table of these runs, with their names as a last column; its digest, or None if no run has it."""
    having = [run for run in runs if run.has(table)]
    if not having:
        return None
    name = pa.field("run", pa.string())
    schema = pa.schema([*(column.with_nullable(True) for column in ALL[table]), name])
    options = parquet_options(table)
    options["use_dictionary"] += [name.name]
    with pq.ParquetWriter(path, schema, **options) as writer:
        for several in _row_groups(_copied(run, table, schema) for run in having):
            writer.write_table(several, row_group_size=ROW_GROUP)
    return digests.file_digest(path)


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The tables together, as many at a time as make a row group."""
    pending: list[pa.Table] = []
    for table in tables:
        pending.append(table)
        if sum(map(len, pending)) >= ROW_GROUP:
            yield pa.concat_tables(pending).unify_dictionaries()
            pending.clear()
    if pending:
        yield pa.concat_tables(pending).unify_dictionaries()


def _copied(run: Run, table: str, schema: pa.Schema) -> pa.Table:
    """A table of a run with the columns of `schema`; refused if the file is not the one that was written."""
    raw = run.path(table).read_bytes()
    if table in run.files and digests.digest(raw) != run.digest(table):
        raise changed_file(run.path(table))
    with pq.ParquetFile(pa.BufferReader(raw), page_checksum_verification=True) as file:
        found = file.read(use_threads=False)
    # An earlier version may lack columns, which are unknown, and a later one may have more, which nobody reads.
    have = {column: found.column(column) for column in found.column_names}
    have["run"] = pa.repeat(run.name, len(found))
    columns = [have.get(column.name, pa.nulls(len(found), column.type)) for column in schema]
    return pa.table([column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema)
