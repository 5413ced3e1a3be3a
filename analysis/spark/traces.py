"""Finding the runs below a folder, refusing what is not a run, and reading their tables with Spark.

Only footers and the one-row `run` table are read here, so checking a sweep costs a few milliseconds per run. When
data is read later, by Spark or pyarrow, the checksum of every page is verified. What is checked, and what happens:

| in `<out>/runs`                            | what we do                                            |
|--------------------------------------------|-------------------------------------------------------|
| a name that starts with a dot              | ignored: a run that is being written                  |
| a run folder that lacks a table            | skipped with a warning: an interrupted copy           |
| a file that is not Parquet, or is cut off  | refused by name: half a table gives wrong numbers     |
| a column that is missing or of other type  | refused by name: another version of Coverlay wrote it |
| a table of another run, or of no run       | refused by name: every file says which trace it is of |
| a run under the name of another            | refused by name: the record says what it is called    |
| a column that may lack values it must have | refused by name: another program wrote it             |
| a footer or record that was changed        | refused by name: the record has digests of them       |
| a run of a version without checksums       | read with a warning: a flipped bit goes unnoticed     |
| runs of different versions of Coverlay     | read with a warning: they may not be comparable       |
| more columns than we know                  | read; only the columns we know are used               |
| two runs of one point and seed             | refused: they would count twice                       |
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from broker.trace import digests
from broker.trace.schema import ALL, CHECKED, HASHED, MARK, OPTIONAL, SCHEMAS, SPECIAL
from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RUN_FOLDER = "run="  # the Parquet partition column `run`
# Characters that Hadoop takes for a pattern in a path; in ours they are literal.
_GLOB = re.compile(r"([\\{}\[\]*?])")
# What pyarrow raises for a damaged file; the last three if lengths or names in it are damaged.
_UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)
# Both of Spark's Parquet readers heed it. It is an option of each read, because a session may already be running.
_VERIFY_PAGES = "parquet.page.verify-checksum.enabled"

_SPARK_TYPES = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
}


@dataclass(frozen=True)
class Run:
    """One complete run on disk: its folder, and the row of its `run` table."""

    name: str
    folder: Path
    record: Mapping[str, Any]
    point: Mapping[str, Any]
    parameters: Mapping[str, Any]
    digests: Mapping[str, Any]  # see broker/trace/digests.py; empty for traces of a version that kept none

    def path(self, table: str) -> Path:
        return self.folder / f"{table}.parquet"

    def has(self, table: str) -> bool:
        """Does this run have the table? Those of SCHEMAS are in every run, those of SPECIAL in some."""
        return table in SCHEMAS or table in self.digests

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
            raise _refusal(path.parent, f"{path} is damaged ({_first_line(error)})") from error


@dataclass(frozen=True)
class Sweep:
    """The complete runs below `<out>/runs`, in the order of their names, and warnings about what was left out."""

    out: Path
    runs: tuple[Run, ...]
    warnings: tuple[str, ...] = field(default=())

    @property
    def base(self) -> Path:
        return self.out / "runs"

    @property
    def nbytes(self) -> int:
        """The size of all tables, on disk."""
        return sum(run.path(name).stat().st_size for run in self.runs for name in ALL if run.has(name))


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


def find_runs(out: Path) -> Sweep:
    """Every complete run below `out`; a CoverlayError if there is none or one cannot be trusted."""
    runs: list[Run] = []
    warnings: list[str] = []
    for folder in run_folders(out):
        missing = missing_tables(folder)
        if missing:
            warnings.append(
                f"{folder} is not a complete run and was left out: {missing[0]} is missing; "
                "`coverlay run … --resume` runs it again"
            )
            continue
        runs.append(open_run(folder))
    if not runs:
        why = f" ({warnings[0]})" if warnings else ""
        raise CoverlayError(f"there are no complete runs in {out / 'runs'}{why}; `coverlay run` writes them")
    _refuse_mixtures(runs)
    return Sweep(out, tuple(runs), (*warnings, *_mixed_versions(runs), *_unchecked(runs)))


def open_run(folder: Path) -> Run:
    """The run in this folder; a CoverlayError if one of its tables cannot be trusted."""
    missing = missing_tables(folder)
    if missing:
        raise _refusal(folder, f"{folder} is not a complete run: {missing[0]} is missing")
    run = read_record(folder)
    said = {"run": pq.read_metadata(folder / "run.parquet").metadata or {}}
    for name in (*HASHED, *(name for name in SPECIAL if name in run.digests)):
        path = folder / f"{name}.parquet"
        if name in SPECIAL and not path.is_file():  # the record's digests say that it must exist
            raise _refusal(folder, f"{folder} is not a complete run: {path.name} is missing")
        # Checked before the footer is used.
        if run.digests and digests.footer_digest(path) != run.digests[name]["footer"]:
            raise _refusal(folder, f"{path} is damaged (its footer is not the one that was written)")
        said[name] = _check_table(path, ALL[name])
    if _check_marks(folder, said) and not run.digests:
        raise _refusal(folder, f"{folder / 'run.parquet'} is damaged (it has lost its digests)")
    if run.record["run_id"] != run.name:
        raise _refusal(folder, f"{folder} holds run {run.record['run_id']}: it was renamed, or its files were copied")
    return run


def read_record(folder: Path) -> Run:
    """The run in this folder by its record alone; the other tables are not looked at."""
    path = folder / "run.parquet"
    _check_table(path, SCHEMAS["run"])
    rows = _read_table(path, threads=False).to_pylist()  # one row: threads would cost more
    if len(rows) != 1:
        raise _refusal(folder, f"{path} has {len(rows)} rows and must have one")
    record = rows[0]
    kept = record.get(digests.COLUMN)
    found = _json_object(path, digests.COLUMN, kept) if kept is not None else {}
    if kept is not None and found.get(digests.RECORD) != digests.record_digest(record):
        raise _refusal(folder, f"{path} is damaged (its values are not those that were written)")
    return Run(
        name=run_name(folder),
        folder=folder,
        record=record,
        point=_json_object(path, "point", record["point"]),
        parameters=_json_object(path, "parameters", record["parameters"]),
        digests=found,
    )


def _read_table(path: Path, columns: list[str] | None = None, threads: bool = True) -> pa.Table:
    try:
        return pq.read_table(
            path, partitioning=None, columns=columns, page_checksum_verification=True, use_threads=threads
        )
    except _UNREADABLE as error:
        raise _refusal(path.parent, f"{path} is damaged ({_first_line(error)})") from error


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


def _check_table(path: Path, expected: pa.Schema) -> Mapping[bytes, bytes]:
    """Refuse a file without the columns that a table must have; returns its footer's metadata."""
    try:
        footer = pq.read_metadata(path)
        found = footer.schema.to_arrow_schema()
    except _UNREADABLE as error:
        raise _refusal(path.parent, f"{path} is not a readable Parquet file ({_first_line(error)})") from error
    for want in expected:
        index = found.get_field_index(want.name)
        if index < 0 and (path.stem, want.name) in OPTIONAL:
            continue
        if index < 0:
            who = "another version of Coverlay or another program"
            raise _refusal(path.parent, f"{path} has no column {want.name!r}, so {who} wrote it")
        kind, column = _plain(found.field(index).type), f"column {want.name!r} of {path}"
        if kind != _plain(want.type):
            raise _refusal(path.parent, f"{column} has type {kind} and must have {_plain(want.type)}")
        # Not by the null count in the footer's statistics: if they are damaged, pyarrow aborts the process.
        if found.field(index).nullable and not want.nullable:
            raise _refusal(path.parent, f"{column} may have rows without a value, so another program wrote it")
    return footer.metadata or {}


def _refuse_mixtures(runs: list[Run]) -> None:
    """Runs that share a point must be the same experiment with different seeds."""
    seen: dict[tuple[str, int], Run] = {}
    experiment: dict[str, Run] = {}
    for run in runs:
        point, seed = canonical(run.point), run.record["seed"]
        twin = seen.setdefault((point, seed), run)
        if twin is not run:
            raise CoverlayError(
                f"{run.folder} and {twin.folder} are the same point with the same seed {seed} and would "
                "count twice; remove one of them"
            )
        first = experiment.setdefault(point, run)
        if _without_seeds(first.parameters) != _without_seeds(run.parameters):
            raise CoverlayError(
                f"{run.folder} and {first.folder} were made with different parameters and cannot be "
                "averaged; give each experiment its own --out folder"
            )


def _mixed_versions(runs: list[Run]) -> list[str]:
    made: dict[str, list[Run]] = {}
    for run in runs:
        versions = _json_object(run.folder / "run.parquet", "versions", run.record["versions"])
        made.setdefault(str(versions.get("coverlay", "unknown")), []).append(run)
    if len(made) == 1:
        return []
    listed = ", ".join(f"{version} ({len(of)}, e.g. {of[0].name})" for version, of in sorted(made.items()))
    return [f"these runs were made by different versions of Coverlay, and may not be comparable: {listed}"]


def _unchecked(runs: list[Run]) -> list[str]:
    old = [run.name for run in runs if not run.digests]
    if not old:
        return []
    return [
        f"an earlier version of Coverlay wrote {len(old)} of these runs without checksums (e.g. {old[0]}), so damaged "
        "values in them may go unnoticed; `coverlay verify` recomputes their trace hashes"
    ]


def _without_seeds(parameters: Mapping[str, Any]) -> str:
    return canonical({key: value for key, value in parameters.items() if key not in {"seed", "seeds"}})


def canonical(value: Mapping[str, Any]) -> str:
    """One text for equal JSON objects, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True)


def _json_object(path: Path, column: str, text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _refusal(path.parent, f"column {column!r} of {path} is not a JSON object")
    return value


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type on disk: Parquet stores dictionaries of strings and large strings as strings."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if pa.types.is_large_string(kind) else kind


def remedy(folder: Path) -> str:
    return f"remove {folder} and repeat it with `coverlay run … --resume`"


def _refusal(folder: Path, why: str) -> CoverlayError:
    return CoverlayError(f"{why}; {remedy(folder)}")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def spark_schema(table: str) -> str:
    """The schema of a trace table as Spark writes it, with the partition column.

    It is given rather than inferred: inference opens every file, and takes a run called 1e4 for a number.
    """
    columns = [f"`{column.name}` {_SPARK_TYPES[_plain(column.type)]}" for column in ALL[table]]
    return ", ".join([*columns, "run string"])


def read(spark: SparkSession, sweep: Sweep, table: str) -> DataFrame:
    """One table of every run of the sweep; the column `run` has the run's name."""
    base = str(sweep.base.resolve())
    runs = [run for run in sweep.runs if run.has(table)]
    # An explicit scheme: on a cluster the default file system may be another one.
    paths = ["file:" + _GLOB.sub(r"\\\1", f"{base}/{run.folder.name}/{table}.parquet") for run in runs]
    reader = spark.read.schema(spark_schema(table)).option("basePath", f"file:{base}")
    reader = reader.option(_VERIFY_PAGES, "true")
    return reader.parquet(*paths)
