"""Are the traces below a folder, and the results that come from them, still what was written? In words, run by run.

Opening a trace verifies its name, the digests of its footers and its record; reading it verifies the checksum of every
page read. Here everything is checked: the digest of each file, and the hash of the trace, recomputed from its values. A
trace of a version that kept no digests has only its hash.

Results have a file of digests beside them: of each of their files, and of the record of each run that they come from,
which has the digests of the run's own files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from analysis.spark.runs import (
    Run,
    changed_file,
    missing_tables,
    open_run,
    read_record,
    remedy,
    run_folders,
    run_name,
)
from broker.trace import digests
from broker.trace.schema import SCHEMAS, trace_hash
from coverlay import CoverlayError

DIGESTS = "digests.json"  # in the folder of the results


@dataclass(frozen=True)
class Verified:
    runs: int
    files: int  # of runs and results
    wrong: tuple[str, ...]  # a sentence for each file or run that is not what was written
    notes: tuple[str, ...]

    def __str__(self) -> str:
        runs = f"{self.runs} run{'s' * (self.runs != 1)}"
        if self.wrong:
            return f"{runs} checked, {len(self.wrong)} thing{'s' * (len(self.wrong) != 1)} wrong"
        return f"{runs} checked ({self.files} files): all as written"


def verify(out: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> Verified:
    """Check every run below `out`, then the results; `progress(done, total)` is called after each run."""
    wrong: list[str] = []
    notes: list[str] = []
    folders = run_folders(out)
    if not folders:
        raise CoverlayError(f"there are no runs in {out / 'runs'}; `coverlay run` writes them")
    for done, folder in enumerate(folders, 1):
        found = list(damages(folder, rehash=True))
        wrong += found
        if not found and not read_record(folder).digests:
            notes.append(f"{folder} was written without digests by an earlier version: only its trace hash was checked")
        progress(done, len(folders))
    files = sum(len(list(folder.glob("*.parquet"))) for folder in folders)
    results = out / "results"
    if (results / DIGESTS).is_file():
        kept = json.loads((results / DIGESTS).read_text(encoding="utf-8"))
        wrong += _other_results(results, kept["files"])
        wrong += _other_runs(results, kept["runs"], folders)
        files += len(kept["files"])
    elif results.is_dir():
        notes.append(f"{results} was not checked: it has no {DIGESTS}, as earlier versions wrote it; {_again(results)}")
    return Verified(len(folders), files, tuple(wrong), tuple(notes))


def write_digests(results: Path, runs: Iterable[Run]) -> None:
    """Write the digests of all files in the folder of the results, and of the runs that they come from."""
    files = {path.name: digests.file_digest(path) for path in sorted(results.iterdir())}
    of_runs = {run.name: digests.record_digest(run.record) for run in runs}
    kept = {"files": files, "runs": of_runs}
    (results / DIGESTS).write_text(json.dumps(kept, indent=1), encoding="utf-8")


def _other_results(results: Path, kept: Mapping[str, str]) -> Iterator[str]:
    for name, digest in kept.items():
        path = results / name
        if not path.is_file():
            yield f"{path} is missing; {_again(results)}"
        elif digests.file_digest(path) != digest:
            yield f"{path} is not what was written; {_again(results)}"


def _other_runs(results: Path, kept: Mapping[str, str], folders: list[Path]) -> Iterator[str]:
    """Runs that results come from and that are gone or were made again, and runs that are not in them."""
    there = {}
    for folder in folders:
        with suppress(CoverlayError):  # damaged: told already
            there[run_name(folder)] = digests.record_digest(read_record(folder).record)
    for run in sorted(kept.keys() | there.keys()):
        if run not in there:
            if not any(run_name(folder) == run for folder in folders):
                yield f"{results} come from run {run}, which is not there any more; {_again(results)}"
        elif run not in kept:
            yield f"{results} are without run {run}; {_again(results)}"
        elif kept[run] != there[run]:
            yield f"{results} come from another run {run} than the one that is there; {_again(results)}"


def _again(results: Path) -> str:
    return f"`coverlay analyze {results.parent}` writes them again"


def damages(folder: Path, rehash: bool = False) -> Iterator[str]:
    """What is wrong with a run, a sentence each; `rehash` recomputes its trace hash even if its digests are right."""
    try:
        if missing_tables(folder):
            open_run(folder)  # raises an error that names the missing table
        run = read_record(folder)
        if not all(run.path(table).is_file() for table in run.files):
            open_run(folder)
        changed = [run.path(table) for table in run.files if digests.file_digest(run.path(table)) != run.digest(table)]
        yield from (str(changed_file(path)) for path in changed)
        if changed:
            return
        open_run(folder)
        if rehash or not run.digests:
            yield from _other_hash(run)
    except CoverlayError as error:
        yield str(error)


def _other_hash(run: Run) -> Iterator[str]:
    found, recorded = trace_hash(_OnDisk(run)), run.record["trace_hash"]
    if found != recorded:
        yield f"{run.folder} is damaged (its trace hash is {found} and was {recorded}); {remedy(run.folder)}"


class _OnDisk(dict[str, pa.Table]):
    """The tables of a run, each read when asked for and not kept: only one at a time is in memory."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run

    def __contains__(self, table: object) -> bool:
        return table in SCHEMAS or table in self.run.digests

    def __missing__(self, table: str) -> pa.Table:
        return self.run.read(table)
