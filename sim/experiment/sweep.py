"""Run all runs of a plan, on local cores or as tasks of a Spark cluster.

Every run writes its own folder atomically, so a sweep can be killed at any point and resumed: what is complete is
kept, what a killed process left half written is removed. A run that fails, even by taking its process down with it,
does not take the others down; it is reported with its parameters and the command that repeats it alone.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shlex
import signal
import threading
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from analysis.spark.traces import open_run
from broker.trace.disk import CannotWrite, remove_leftovers, replaced_file, writing
from coverlay import CoverlayError, __version__, quoted
from sim import plugins
from sim.experiment.build import check_files
from sim.experiment.changes import REPLACED
from sim.experiment.engines import Tell, nobody
from sim.experiment.folder_lock import FolderLock
from sim.experiment.input_files import as_file
from sim.experiment.kinds import by_key
from sim.experiment.plan import EXPERIMENT, Plan, PlannedRun, load, parse_setting
from sim.experiment.runner import Outcome, execute, run_folder, runs_kept
from sim.experiment.toml_text import toml_value

TICK = 0.25  # seconds between two reports of progress
ORPHAN_CHECK = 0.5  # seconds between two checks that the parent process still exists
DIED = "its process died, most likely because the machine ran out of memory; make the run smaller"
JAVA_ENDED = "Spark's Java process ended, killed or out of memory; finished runs are kept, --resume goes on from there"
SEEDS_ALIKE = "every seed gave the same trace: nothing is drawn at random here, so one seed tells as much as several"

_shares: Any = None  # in a worker: the progress of each run of the sweep


@dataclass(frozen=True)
class Failure:
    run: PlannedRun
    message: str
    is_input: bool  # a mistake in what the user gave, as opposed to one of ours
    unwritable: bool = False  # and so is the rest of the sweep

    def __str__(self) -> str:
        point = ", ".join(f"{key} = {json.dumps(value)}" for key, value in self.run.point.items())
        return f"seed {self.run.seed}{', ' + point if point else ''}: {self.message}"

    def repeat_command(self, experiment: str, settings: Sequence[str] = (), plugins: Sequence[str] = ()) -> str:
        """The command that runs this run and no other, in a folder of its own."""
        given = by_key(dict(map(parse_setting, settings)))
        fixed = (*self.run.point, *REPLACED)  # by the point, or said below
        said = {key: value for key, value in given.items() if not any(f"{key}.".startswith(f"{f}.") for f in fixed)}
        chosen = [f"{key}={toml_value(value)}" for key, value in said.items() if key not in self.run.ignored]
        # Its point as the only case, and nothing swept: the same run with the same name.
        chosen += [f"seeds=[{self.run.seed}]", "sweep={}", f"case=[{toml_value(self.run.point)}]"]
        words = ["coverlay", "run", experiment, "--out", f"out/{self.run.run_id}"]
        words += [word for setting in chosen for word in ("--set", setting)]
        words += [word for plugin in plugins for word in ("--plugin", plugin)]
        return shlex.join(words)


@dataclass
class SweepResult:
    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    kept: int = 0  # runs found complete and not repeated
    kept_by: dict[str, int] = field(default_factory=dict)  # of these, how many each version of Coverlay made
    kept_broken: list[Outcome] = field(default_factory=list)  # of these, the ones in which the oracle counted mistakes
    replaced: str = ""  # a note about another experiment that was in the folder

    @property
    def wrong(self) -> list[Outcome]:
        """Runs in which the oracle counted what must not happen."""
        broken = [*self.kept_broken, *(o for o in self.outcomes if o.broken)]
        return list({o.run_id: o for o in broken}.values())  # `coverlay capacity` keeps what its last round ran

    @property
    def warnings(self) -> list[str]:
        """What the user should be told about the runs, each thing once."""
        told = sorted({warning for outcome in self.outcomes for warning in outcome.warnings})
        notes = SEEDS_ALIKE if self._seeds_are_alike() else "", self._made_otherwise(), self.replaced
        return [*told, *filter(None, notes)]

    def _made_otherwise(self) -> str:
        """A note about kept runs that another version made."""
        others = {version: count for version, count in self.kept_by.items() if version != __version__}
        if not others:
            return ""
        listed = ", ".join(f"{count} by {version}" for version, count in sorted(others.items()))
        kept = f"other versions of Coverlay made runs that are kept ({listed}; this is {__version__})"
        return f"{kept}: they may not be comparable; without --resume all are made again"

    def _seeds_are_alike(self) -> bool:
        """Every run gave the same trace as the others of its point."""
        hashes: dict[str, list[str]] = {}
        for outcome in self.outcomes:
            hashes.setdefault(str(outcome.record["point"]), []).append(outcome.record["trace_hash"])
        return bool(hashes) and all(len(found) > 1 and len(set(found)) == 1 for found in hashes.values())


Attempt = Outcome | Failure


@dataclass(frozen=True)
class SweepOptions:
    """Where runs are executed, and who is told of their progress.

    `progress(done, total)` is called after every run and now and then during one; `done` counts runs, and of those
    under way the share of their simulated time. On a cluster only whole runs count.
    """

    jobs: int = 1  # runs at a time, in processes of this machine
    spark_master: str | None = None  # the cluster to run on instead
    resume: bool = False  # keep complete runs
    progress: Callable[[float, int], None] = nobody
    begun: Callable[[], None] = nobody  # called once, when the first runs are under way


ONE_BY_ONE = SweepOptions()  # in this process, without progress


def run_sweep(plan: Plan, out: Path, options: SweepOptions = ONE_BY_ONE, lock: FolderLock | None = None) -> SweepResult:
    """Run all runs of a plan, or with `resume` those that are missing.

    The folder is locked until the sweep ends, or as long as a `lock` is held by who also writes what comes after it.
    """
    with plugins.explained():
        check_files(plan.runs)
    options = _for_local_names(plan, options)
    _refuse_foreign_runs(plan, out)
    with FolderLock(out) if lock is None else nullcontext(lock) as lock:
        locked = lock.take()
        replaced = _replaced(plan, out)
        plugins.keep(plan.plugins, out)
        _write_experiment(plan, out)
        remove_leftovers(out / "runs", "run=*")  # of a sweep that was killed
        kept = {run.run_id: found for run in plan.runs if options.resume and (found := _kept(out, run))}
        todo = sorted((run for run in plan.runs if run.run_id not in kept), key=_turn)
        made_by = Counter(json.loads(o.record["versions"]).get("coverlay", "unknown") for o in kept.values())
        result = SweepResult(kept=len(kept), kept_broken=[o for o in kept.values() if o.broken], replaced=replaced)
        result.kept_by |= made_by
        executing = _Executing(todo, out, options, locked, result.kept)
        executing.report()
        try:
            with closing(executing.attempts()) as attempts:
                for attempt in attempts:
                    if isinstance(attempt, Outcome):
                        result.outcomes.append(attempt)
                    elif attempt.unwritable:
                        raise CannotWrite(attempt.message)
                    else:
                        result.failures.append(attempt)
        finally:
            remove_leftovers(out / "runs", "run=*")  # of processes that were stopped
    return result


def _for_local_names(plan: Plan, options: SweepOptions) -> SweepOptions:
    """What a script or notebook registered itself is known in its process only."""
    local = sorted({name for run in plan.runs for name in run.local})
    if not local:
        return options
    if options.spark_master is not None:
        where = "put it into a file and name that in plugins = […], so that the machines of a cluster can import it"
        raise CoverlayError(f"{quoted(local[0])} is registered in this process only; {where}")
    return replace(options, jobs=1)


def _turn(run: PlannedRun) -> tuple[int, int]:
    """Small runs first, then seed by seed: a sweep cut short has all settings, at smaller sizes or with fewer seeds."""
    return run.experiment.workload.subscriptions, run.experiment.seeds.index(run.seed)


class _Executing:
    """Executes the missing runs of a sweep and reports their progress."""

    def __init__(self, runs: list[PlannedRun], out: Path, options: SweepOptions, lock: int, kept: int) -> None:
        self._runs, self._out, self._options, self._lock = runs, out, options, lock
        self._slots = {run.run_id: slot for slot, run in enumerate(runs)}
        self._shares = multiprocessing.RawArray("d", max(1, len(runs)))  # of each run, in memory that processes share
        self._done, self._total, self._reported = kept, kept + len(runs), 0.0

    def report(self) -> None:
        self._options.progress(self._done + sum(self._shares), self._total)

    def attempts(self) -> Generator[Attempt, None, None]:
        """One attempt per run, as they end."""
        if self._options.spark_master is not None and self._runs:
            found = self._on_spark(self._options.spark_master)
        elif self._options.jobs == 1 or len(self._runs) <= 1:
            found = self._in_this_process()
        else:
            found = self._on_cores(min(self._options.jobs, len(self._runs)))
        for run, attempt in found:
            self._shares[self._slots[run.run_id]] = 0.0
            self._done += 1
            yield attempt
            self.report()

    def _in_this_process(self) -> Iterator[tuple[PlannedRun, Attempt]]:
        self._options.begun()
        for slot, run in enumerate(self._runs):

            def tell(share: float, slot: int = slot) -> None:
                self._shares[slot] = min(share, 1.0)
                now = time.monotonic()
                if now - self._reported > TICK:
                    self._reported = now
                    self.report()

            yield run, _attempt(run, self._out, tell)

    def _on_cores(self, jobs: int) -> Iterator[tuple[PlannedRun, Attempt]]:
        """Keep at most `jobs` runs under way: when a process dies, one of these few was the cause."""
        waiting = list(reversed(self._runs))
        begun = False
        while waiting:
            suspects: list[PlannedRun] = []
            with self._pool(jobs) as pool:
                under_way: dict[Future[Attempt], PlannedRun] = {}
                while (waiting and not suspects) or under_way:
                    while waiting and not suspects and len(under_way) < jobs:
                        run = waiting.pop()
                        try:
                            future = pool.submit(_attempt_in_worker, run, self._out, self._slots[run.run_id])
                            under_way[future] = run
                        except BrokenProcessPool:
                            suspects.append(run)
                    if not begun:
                        begun = True
                        self._options.begun()
                    finished, _ = wait(under_way, timeout=TICK, return_when=FIRST_COMPLETED)
                    if not finished:
                        self.report()
                    for future in finished:
                        run = under_way.pop(future)
                        try:
                            yield run, future.result()
                        except BrokenProcessPool:
                            suspects.append(run)
            yield from ((run, self._alone(run)) for run in suspects)

    def _alone(self, run: PlannedRun) -> Attempt:
        """One run in a process of its own: if that dies, it was this run's fault."""
        with self._pool(1) as pool:
            try:
                return pool.submit(_attempt, run, self._out).result()
            except BrokenProcessPool:
                return Failure(run, DIED, is_input=False)

    @contextmanager
    def _pool(self, jobs: int) -> Iterator[ProcessPoolExecutor]:
        """Processes that end with the block, at once where an exception ends it: nobody wants their runs any more."""
        known = os.getpid(), self._lock, self._shares
        others = multiprocessing.active_children()
        with ProcessPoolExecutor(jobs, initializer=_begin_worker, initargs=known) as pool:
            try:
                yield pool
            except BaseException:
                for process in multiprocessing.active_children():
                    if process not in others:
                        process.terminate()
                raise

    def _on_spark(self, master: str) -> Iterator[tuple[PlannedRun, Attempt]]:
        """One Spark job of one task per run; executors must see the output folder and have Coverlay installed.

        A job each, because a task that keeps failing (its executor dies) fails its whole job, and because the driver
        then hears of every run as it ends. As many are under way as the cluster has cores.
        """
        from analysis.spark.jobs import cancel
        from analysis.spark.session import lost, session  # starting Java is slow: only when asked for

        spark = session(master).sparkContext
        folder = self._out.resolve()

        def submit(run: PlannedRun) -> tuple[PlannedRun, Attempt]:
            try:
                found: list[Attempt] = spark.parallelize([run], 1).map(lambda run: _attempt(run, folder)).collect()
            except Exception as error:  # py4j wraps whatever happened on the cluster
                if lost():
                    raise CoverlayError(JAVA_ENDED) from error
                return run, Failure(
                    run, f"Spark lost it: {(str(error) or repr(error)).splitlines()[0]}", is_input=False
                )
            return run, _seen_here(found[0], run, self._out)

        def cores() -> int:
            with suppress(Exception):  # without Spark, a run is where to say so
                return max(1, spark.defaultParallelism)
            return 1

        waiting = list(reversed(self._runs))
        under_way: set[Future[tuple[PlannedRun, Attempt]]] = set()
        with ThreadPoolExecutor(len(waiting)) as pool:
            try:
                while waiting or under_way:
                    while waiting and len(under_way) < cores():  # which may join later
                        under_way.add(pool.submit(submit, waiting.pop()))
                    finished, under_way = wait(under_way, timeout=TICK, return_when=FIRST_COMPLETED)
                    self.report()
                    yield from (future.result() for future in finished)
            except BaseException:  # nobody wants the other runs any more
                cancel(spark, under_way)
                raise


def _begin_worker(parent: int, lock: int, shares: Any) -> None:
    """A worker must not outlive its parent or keep the parent's lock, and an interrupt ends it silently."""
    global _shares
    _shares = shares
    for end in (signal.SIGINT, signal.SIGTERM):
        signal.signal(end, signal.SIG_DFL)
    if multiprocessing.get_start_method() == "fork":  # else the lock is not inherited
        os.close(lock)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(ORPHAN_CHECK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _attempt_in_worker(run: PlannedRun, out: Path, slot: int) -> Attempt:
    def tell(share: float) -> None:
        _shares[slot] = min(share, 1.0)

    return _attempt(run, out, tell)


def _attempt(run: PlannedRun, out: Path, tell: Tell = nobody) -> Attempt:
    try:
        plugins.ensure(run.plugins, out)
        return execute(run, out, tell)
    except CannotWrite as error:
        return Failure(run, str(error), is_input=False, unwritable=True)
    except MemoryError:
        return Failure(run, "the machine ran out of memory; make the run smaller", is_input=False)
    except Exception as error:  # the sweep must go on; the traceback is kept for the report of our own mistake
        theirs = plugins.blame(error)
        if theirs is not None or isinstance(error, CoverlayError):
            return Failure(run, theirs or str(error), is_input=True)
        return Failure(run, traceback.format_exc(), is_input=False)


def _seen_here(attempt: Attempt, run: PlannedRun, out: Path) -> Attempt:
    """What a worker of a cluster did, if it wrote where this machine reads."""
    folder = run_folder(out, run)
    if isinstance(attempt, Failure) or folder.is_dir():
        return attempt
    shared = "--out must be on storage that this machine and all workers see under the same path"
    return Failure(
        run, f"a worker wrote {folder.resolve()}, which is not there on this machine: {shared}", is_input=True
    )


def left_of(out: Path) -> tuple[str, ...]:
    """A note about runs of the plan in a folder that were not run; none if all were, or if there is no plan."""
    try:
        if "plugins" in tomllib.loads((out / EXPERIMENT).read_text(encoding="utf-8")):
            return ()  # a report imports nobody's code
        runs = load(str(out / EXPERIMENT)).runs
    except (CoverlayError, OSError, ValueError):
        return ()
    left = [run for run in runs if not run_folder(out, run).is_dir()]
    there = sum(1 for _ in (out / "runs").glob("run=*"))
    if not left or there != len(runs) - len(left):  # others are of an earlier version, which named runs differently
        return ()
    seeds = {seed: sum(run.seed == seed for run in runs) for seed in runs[0].experiment.seeds}
    missing = {seed: sum(run.seed == seed for run in left) for seed in seeds}
    words = [f"{missing[seed]:,} of {seeds[seed]:,} of seed {seed}" for seed in seeds if missing[seed]]
    return (f"{len(left):,} of {len(runs):,} runs of this experiment were not run: {', '.join(words)}",)


def _kept(out: Path, run: PlannedRun) -> Outcome | None:
    """What an earlier sweep left of a run, if the aggregation would accept it."""
    try:
        return Outcome(run.run_id, dict(open_run(run_folder(out, run)).record), ())
    except CoverlayError:
        return None


def _refuse_foreign_runs(plan: Plan, out: Path) -> None:
    """Runs of another experiment in the same folder would be averaged with ours."""
    known = {run_folder(out, run).name for run in plan.runs}
    if out.exists() and not out.is_dir():
        raise CoverlayError(f"--out {out} is a file; it must be a folder or not exist yet")
    foreign = [path.name for path in (out / "runs").glob("run=*") if path.name not in known]
    if foreign:
        raise CoverlayError(
            f"{out} holds {len(foreign)} runs of another experiment, or of input files as they were before (e.g. "
            f"{foreign[0]}); choose another --out or delete that folder"
        )


def _replaced(plan: Plan, out: Path) -> str:
    """A note if the folder has the file of another experiment, but none of its runs."""
    with suppress(OSError, ValueError):
        before = tomllib.loads((out / EXPERIMENT).read_text(encoding="utf-8"))
        if before != tomllib.loads(as_file(plan.data, plan.plugins, out)) and not any((out / "runs").glob("run=*")):
            other = f"{out} was the folder of another experiment, {before.get('name')!r}, which has no runs there"
            return f"{other}: it is now the folder of this one"
    return ""


def _write_experiment(plan: Plan, out: Path) -> None:
    """The experiment as it is run; the report shows this file, notes included."""
    notes = "".join(f"# note: {note}\n" for note in plan.notes)
    with writing(f"--out {out}", partial(runs_kept, out)), replaced_file(out / EXPERIMENT) as unfinished:
        unfinished.write_text(notes + as_file(plan.data, plan.plugins, out), encoding="utf-8")
