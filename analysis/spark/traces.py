"""The runs below a folder as one sweep, and its tables as Spark DataFrames.

What runs.py refuses is refused here too, by the name of its file. Of the runs together:

| in `<out>/runs`                            | what we do                                          |
|--------------------------------------------|-----------------------------------------------------|
| a name that starts with a dot              | ignored: a run that is being written                |
| a run folder that lacks a table            | skipped with a warning: an interrupted copy         |
| runs of different versions of Coverlay     | read with a warning: they may not be comparable     |
| two runs of one point and seed             | refused: they would count twice                     |

Spark spends 20 to 30 ms of CPU on the files of a run, whatever their size. So many small runs are read from compacted
copies (compaction.py) where there are any, and each of the others from its own files.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from analysis.spark.compaction import FOLDER, LEAST, Block, blocks_in, can_compact, compact, in_blocks, remove_others
from analysis.spark.runs import (
    Run,
    canonical,
    json_object,
    missing_tables,
    open_run,
    plain,
    read_record,
    remedy,
    run_folders,
    run_name,
)
from broker.trace.schema import ALL
from coverlay import CoverlayError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What users of a sweep need to know of a run, too.
__all__ = ["Run", "Sweep", "canonical", "find_runs", "missing_tables", "open_run", "read", "read_record", "remedy",
           "run_folders", "run_name"]  # fmt: skip

T = TypeVar("T")
Say = Callable[[str], None]
TICK = 1.0  # seconds between two reports of progress
# Characters that Hadoop takes for a pattern in a path; in ours they are literal.
_GLOB = re.compile(r"([\\{}\[\]*?])")
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
class Sweep:
    """The complete runs below `<out>/runs`, in the order of their names, and warnings about what was left out."""

    out: Path
    runs: tuple[Run, ...]
    warnings: tuple[str, ...] = field(default=())
    blocks: tuple[Block, ...] = field(default=())  # of some of the runs, each as it is now

    @property
    def base(self) -> Path:
        return self.out / "runs"

    @property
    def nbytes(self) -> int:
        """The size of all tables, on disk."""
        return sum(run.path(name).stat().st_size for run in self.runs for name in ALL if run.has(name))

    @property
    def loose(self) -> list[Run]:
        """The runs that are in no block."""
        copied = {name for block in self.blocks for name in block.runs}
        return [run for run in self.runs if run.folder.name not in copied]


def _silent(_: str) -> None:
    """Progress that is not shown."""


def find_runs(out: Path, say: Say = _silent) -> Sweep:
    """Every complete run below `out`; a CoverlayError if there is none or one cannot be trusted."""
    runs: list[Run] = []
    blocks, warnings = blocks_in(out)
    copies = {name: (block, record) for block in blocks for name, record in block.records()}
    unchanged: set[str] = set()
    for folder in told(run_folders(out), "looking at run", say):
        if folder.name in copies:
            block, record = copies[folder.name]
            if run := block.unchanged(folder, record):
                unchanged.add(folder.name)
                runs.append(run)
                continue
        if missing := missing_tables(folder):
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
    used = tuple(block for block in blocks if unchanged.issuperset(block.runs))
    return Sweep(out, tuple(runs), (*warnings, *_mixed_versions(runs), *_unchecked(runs)), used)


def compacted(sweep: Sweep, say: Say = _silent) -> Sweep:
    """The same sweep, read from compacted copies where these pay; copies that are of no use are removed."""
    if removed := remove_others(sweep.out, sweep.blocks):
        say(f"compacted copies that are damaged, or of runs that changed: {removed} removed")
    worth = [run for run in sweep.loose if can_compact(run)]
    if len(worth) < LEAST:
        return sweep
    blocks, warnings = list(sweep.blocks), list(sweep.warnings)
    try:
        for some in told(in_blocks(worth), "compacting small runs, block", say):
            blocks.append(compact(sweep.out, some))
    except OSError as error:
        where = sweep.out / FOLDER
        warnings.append(f"runs were read one by one, which takes longer: {where} cannot be written ({error.strerror})")
    return replace(sweep, blocks=tuple(sorted(blocks, key=lambda block: block.folder)), warnings=tuple(warnings))


def told(items: Sequence[T], doing: str, say: Say) -> Iterator[T]:
    """These items, saying now and then how many are done."""
    next_time = time.monotonic() + TICK
    for number, item in enumerate(items, 1):
        if time.monotonic() > next_time:
            next_time = time.monotonic() + TICK
            say(f"{doing} {number:,} of {len(items):,}")
        yield item


def _refuse_mixtures(runs: list[Run]) -> None:
    """Runs that share a point must be the same experiment with different seeds."""
    seen: dict[tuple[str, int], Run] = {}
    experiment: dict[str, tuple[Run, str]] = {}
    for run in runs:
        point, seed = canonical(run.point), run.record["seed"]
        twin = seen.setdefault((point, seed), run)
        if twin is not run:
            raise CoverlayError(
                f"{run.folder} and {twin.folder} are the same point with the same seed {seed} and would "
                "count twice; remove one of them"
            )
        parameters = _without_seeds(run.parameters)
        first, same = experiment.setdefault(point, (run, parameters))
        if parameters != same:
            raise CoverlayError(
                f"{run.folder} and {first.folder} were made with different parameters and cannot be "
                "averaged; give each experiment its own --out folder"
            )


def _mixed_versions(runs: list[Run]) -> list[str]:
    made: dict[str, list[Run]] = {}
    for run in runs:
        versions = json_object(run.folder, "versions", run.record["versions"])
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


def spark_schema(table: str) -> str:
    """The schema of a trace table as Spark writes it, with the partition column.

    It is given rather than inferred: inference opens every file, and takes a run called 1e4 for a number.
    """
    columns = [f"`{column.name}` {_SPARK_TYPES[plain(column.type)]}" for column in ALL[table]]
    return ", ".join([*columns, "run string"])


def read(spark: SparkSession, sweep: Sweep, table: str) -> DataFrame:
    """One table of every run of the sweep; the column `run` has the run's name."""
    schema, base = spark_schema(table), sweep.base.resolve()
    files = [base / run.folder.name / f"{table}.parquet" for run in sweep.loose if run.has(table)]
    copies = [block.path(table).resolve() for block in sweep.blocks if table in block.files]
    frames = [
        # With the folder `runs` as the base of its paths, `run=…` in a path is the value of the column `run`.
        spark.read.schema(schema).option(_VERIFY_PAGES, "true").options(**of).parquet(*map(_address, paths))
        for paths, of in ((files, {"basePath": f"file:{base}"}), (copies, {}))
        if paths
    ]
    if not frames:
        return spark.createDataFrame([], schema).limit(0)  # so that Spark knows that there are no rows
    return reduce(lambda one, other: one.union(other), frames)


def _address(path: Path) -> str:
    """With a scheme: on a cluster the default file system may be another one."""
    return "file:" + _GLOB.sub(r"\\\1", str(path))
