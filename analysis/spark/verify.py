"""Are the traces below a folder still what was written? In words, run by run.

Opening a trace verifies the digests of its footers and its record; reading it verifies the checksum of every page read.
Here everything is checked: the digest of each file, and the hash of the trace, recomputed from its values. A trace of a
version that kept no digests has only its hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from analysis.spark.traces import Run, missing_tables, open_run, read_record, remedy, run_folders
from broker.trace import digests
from broker.trace.schema import HASHED, SCHEMAS, SPECIAL, trace_hash
from coverlay import CoverlayError


@dataclass(frozen=True)
class Verified:
    runs: int
    files: int
    wrong: tuple[str, ...]  # a sentence for each file or run that is not what was written
    notes: tuple[str, ...]

    def __str__(self) -> str:
        runs = f"{self.runs} run{'s' * (self.runs != 1)}"
        if self.wrong:
            return f"{runs} checked, {len(self.wrong)} thing{'s' * (len(self.wrong) != 1)} wrong"
        return f"{runs} checked ({self.files} files): all as written"


def verify(out: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> Verified:
    """Check every run below `out`; `progress(done, total)` is called after each run."""
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
    return Verified(len(folders), files, tuple(wrong), tuple(notes))


def damages(folder: Path, rehash: bool = False) -> Iterator[str]:
    """What is wrong with a run, a sentence each; `rehash` recomputes its trace hash even if its digests are right."""
    try:
        if missing_tables(folder):
            open_run(folder)  # raises an error that names the missing table
        run = read_record(folder)
        if not all((folder / name).is_file() for name in _files(run)):
            open_run(folder)
        paths = [folder / name for name in _files(run)]
        changed = [path for path in paths if digests.file_digest(path) != run.digests[path.stem]["file"]]
        for path in changed:
            yield f"{path} is damaged (its digest is not that of the file that was written); {remedy(folder)}"
        if changed:
            return
        open_run(folder)
        if rehash or not run.digests:
            yield from _other_hash(run)
    except CoverlayError as error:
        yield str(error)


def _files(run: Run) -> list[str]:
    special = [name for name in SPECIAL if name in run.digests]
    return [f"{name}.parquet" for name in (*HASHED, *special)] if run.digests else []


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
