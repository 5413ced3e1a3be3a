"""Run all runs of a plan, on local cores or as tasks of a Spark cluster.

Every run writes its own folder atomically, so a sweep can be killed at any point and resumed: what is complete is
kept, what a killed process left half written is removed. A run that fails, even by taking its process down with it,
does not take the others down; it is reported with its parameters and the command that repeats it alone.
"""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import shlex
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from analysis.spark.traces import open_run
from broker.trace.disk import CannotWrite, remove_leftovers, replaced_file, writing
from coverlay import CoverlayError
from sim.experiment.engines import Tell, nobody
from sim.experiment.plan import EXPERIMENT, Plan, PlannedRun, load, to_toml, toml_value
from sim.experiment.runner import RUNS_KEPT, Outcome, check_files, execute

LOCK = ".lock"  # in the output folder; held while a sweep writes there
TICK = 0.25  # seconds between two looks at how far runs are
ORPHAN_CHECK = 0.5  # seconds between two looks whether the process that started us is still there
DIED = "its process died, most likely because the machine's memory did not suffice; make the run smaller"


_shares: Any = None  # in a worker: how far each run of the sweep is


@dataclass(frozen=True)
class Failure:
    run: PlannedRun
    message: str
    is_input: bool  # a mistake in what the user gave, as opposed to one of ours
    unwritable: bool = False  # so would be the rest of the sweep

    def __str__(self) -> str:
        point = ", ".join(f"{key} = {json.dumps(value)}" for key, value in self.run.point.items())
        return f"seed {self.run.seed}{', ' + point if point else ''}: {self.message}"

    def repeat_command(self, experiment: str, settings: list[str] | tuple[str, ...] = ()) -> str:
        """The command that runs this run and no other, in a folder of its own."""
        chosen = [setting for setting in settings if setting.partition("=")[0].strip() not in self.run.ignored]
        chosen.append(f"seeds=[{self.run.seed}]")
        if self.run.point:  # its point as the only case, and nothing swept: the same run with the same name
            chosen += ["sweep={}", f"case=[{toml_value(self.run.point)}]"]
        words = ["coverlay", "run", experiment, "--out", f"out/{self.run.run_id}"]
        words += [word for setting in chosen for word in ("--set", setting)]
        return shlex.join(words)


@dataclass
class SweepResult:
    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    kept: int = 0  # runs found complete and not repeated

    @property
    def wrong(self) -> list[Outcome]:
        """Runs in which the oracle counted what must not happen."""
        return [o for o in self.outcomes if o.broken]

    @property
    def warnings(self) -> list[str]:
        """What the user should be told about the runs, each thing once."""
        return sorted({warning for outcome in self.outcomes for warning in outcome.warnings})


Attempt = Outcome | Failure


def silent(done: float, total: int) -> None:
    """Progress that nobody looks at."""


def _nobody_waits() -> None:
    """For the first runs."""


@dataclass(frozen=True)
class SweepOptions:
    """Where runs are run and who hears of it.

    `progress(done, total)` is called after every run and now and then within; `done` counts runs, and of those under
    way the share of their simulated time. On a cluster only whole runs are heard of.
    """

    jobs: int = 1  # runs at a time, in processes of this machine
    spark_master: str | None = None  # the cluster to run on instead
    resume: bool = False  # keep what is complete
    progress: Callable[[float, int], None] = silent
    begun: Callable[[], None] = _nobody_waits  # called once, when the first runs are under way


ONE_BY_ONE = SweepOptions()  # in this process, and nobody hears of it


def run_sweep(plan: Plan, out: Path, options: SweepOptions = ONE_BY_ONE) -> SweepResult:
    """Run what is missing."""
    check_files(plan.runs)
    _refuse_foreign_runs(plan, out)
    with _writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with only_one(out) as lock:
        _write_experiment(plan, out)
        remove_leftovers(out / "runs", "run=*")
        result = SweepResult()
        todo = [run for run in plan.runs if not (options.resume and _is_complete(run_folder(out, run)))]
        todo.sort(key=_turn)
        result.kept = len(plan.runs) - len(todo)
        options.progress(result.kept, len(plan.runs))
        shares = multiprocessing.RawArray("d", max(1, len(todo)))  # in memory that the processes of this sweep share
        done = result.kept
        watch = _Watch(shares, lambda: options.progress(done + sum(shares), len(plan.runs)), options.begun)
        with closing(_attempts(todo, out, options, lock, watch)) as attempts:
            for done, attempt in enumerate(attempts, result.kept + 1):
                if isinstance(attempt, Outcome):
                    result.outcomes.append(attempt)
                elif attempt.unwritable:
                    raise CannotWrite(attempt.message)
                else:
                    result.failures.append(attempt)
                options.progress(done, len(plan.runs))
    return result


def _turn(run: PlannedRun) -> tuple[int, int]:
    """Small runs first, then seed by seed: what is cut short has all settings, of the smaller sizes or fewer seeds."""
    return run.experiment.workload.subscriptions, run.experiment.seeds.index(run.seed)


@dataclass
class _Watch:
    """What passes within runs: a share per run, and whom to tell."""

    shares: Any
    tick: Callable[[], None]
    begun: Callable[[], None]
    told: float = 0.0

    def tell(self, slot: int, share: float) -> None:
        """Of a run in this process."""
        self.shares[slot] = min(share, 1.0)
        now = time.monotonic()
        if now - self.told > TICK:
            self.told = now
            self.tick()


def _attempts(
    runs: list[PlannedRun], out: Path, options: SweepOptions, lock: int, watch: _Watch
) -> Generator[Attempt, None, None]:
    if options.spark_master is not None and runs:
        yield from _on_spark(runs, out, options.spark_master, watch)
    elif options.jobs == 1 or len(runs) <= 1:
        watch.begun()
        for slot, run in enumerate(runs):
            attempt = _attempt(run, out, partial(watch.tell, slot))
            watch.shares[slot] = 0.0
            yield attempt
    else:
        yield from _on_cores(runs, out, min(options.jobs, len(runs)), lock, watch)


def _on_cores(runs: list[PlannedRun], out: Path, jobs: int, lock: int, watch: _Watch) -> Iterator[Attempt]:
    """At most `jobs` runs are under way, so that when a process dies few come into question."""
    waiting = list(reversed(runs))
    slots = {run.run_id: slot for slot, run in enumerate(runs)}
    begun = False
    while waiting:
        suspects: list[PlannedRun] = []
        with _pool(jobs, lock, watch.shares) as pool:
            under_way: dict[Future[Attempt], PlannedRun] = {}
            while (waiting and not suspects) or under_way:
                while waiting and not suspects and len(under_way) < jobs:
                    run = waiting.pop()
                    try:
                        under_way[pool.submit(_attempt_in_worker, run, out, slots[run.run_id])] = run
                    except BrokenProcessPool:
                        suspects.append(run)
                if not begun:
                    begun = True
                    watch.begun()
                finished, _ = wait(under_way, timeout=TICK, return_when=FIRST_COMPLETED)
                if not finished:
                    watch.tick()
                for future in finished:
                    run = under_way.pop(future)
                    watch.shares[slots[run.run_id]] = 0.0
                    try:
                        yield future.result()
                    except BrokenProcessPool:
                        suspects.append(run)
        for run in suspects:
            yield _alone(run, out, lock, watch.shares)


def _alone(run: PlannedRun, out: Path, lock: int, shares: Any) -> Attempt:
    """One run in a process of its own: if that dies, it was this run's fault."""
    with _pool(1, lock, shares) as pool:
        try:
            return pool.submit(_attempt, run, out).result()
        except BrokenProcessPool:
            return Failure(run, DIED, is_input=False)


def _pool(jobs: int, lock: int, shares: Any) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, initializer=_begin_worker, initargs=(os.getpid(), lock, shares))


def _begin_worker(parent: int, lock: int, shares: Any) -> None:
    """A worker must neither outlive the process that started it nor hold its lock after it, and ends without a word."""
    global _shares
    _shares = shares
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if multiprocessing.get_start_method() == "fork":  # else it was not inherited
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


def _on_spark(runs: list[PlannedRun], out: Path, master: str, watch: _Watch) -> Iterator[Attempt]:
    """One Spark job of one task per run; the executors see the same output folder and have Coverlay installed.

    A job each, because a task that keeps failing (its executor dies) fails its whole job, and because the driver then
    hears of every run as it ends. As many are under way as the cluster has cores.
    """
    from analysis.spark.session import context  # starting a JVM is slow and needs Java: only when asked for

    spark = context(master)
    folder = out.resolve()

    def submit(run: PlannedRun) -> Attempt:
        try:
            found: list[Attempt] = spark.parallelize([run], 1).map(lambda run: _attempt(run, folder)).collect()
        except Exception as error:  # py4j wraps whatever happened on the cluster
            return Failure(run, f"Spark lost it: {str(error).splitlines()[0]}", is_input=False)
        return found[0]

    with ThreadPoolExecutor(max(1, min(spark.defaultParallelism, len(runs)))) as pool:
        left = {pool.submit(submit, run) for run in runs}
        while left:
            finished, left = wait(left, timeout=TICK, return_when=FIRST_COMPLETED)
            watch.tick()
            yield from (future.result() for future in finished)


def _attempt(run: PlannedRun, out: Path, tell: Tell = nobody) -> Attempt:
    try:
        return execute(run, out, tell)
    except CannotWrite as error:
        return Failure(run, str(error), is_input=False, unwritable=True)
    except CoverlayError as error:
        return Failure(run, str(error), is_input=True)
    except MemoryError:
        return Failure(run, "the machine's memory did not suffice; make the run smaller", is_input=False)
    except Exception:  # the sweep must go on; the traceback is kept for the report of our own mistake
        return Failure(run, traceback.format_exc(), is_input=False)


def left_of(out: Path) -> tuple[str, ...]:
    """A note about what of the plan in a folder was not run; none if all of it was, or if there is no plan."""
    try:
        runs = load(str(out / EXPERIMENT)).runs
    except CoverlayError:
        return ()
    left = [run for run in runs if not run_folder(out, run).is_dir()]
    there = sum(1 for _ in (out / "runs").glob("run=*"))
    if not left or there != len(runs) - len(left):  # others are of an earlier version, which called runs by other names
        return ()
    seeds = {seed: sum(run.seed == seed for run in runs) for seed in runs[0].experiment.seeds}
    missing = {seed: sum(run.seed == seed for run in left) for seed in seeds}
    words = [f"{missing[seed]:,} of {seeds[seed]:,} of seed {seed}" for seed in seeds if missing[seed]]
    return (f"{len(left):,} of {len(runs):,} runs of this experiment were not run: {', '.join(words)}",)


def run_folder(out: Path, run: PlannedRun) -> Path:
    return out / "runs" / f"run={run.run_id}"


def _is_complete(folder: Path) -> bool:
    """Is there a run that the aggregation would accept?"""
    try:
        open_run(folder)
    except CoverlayError:
        return False
    return True


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


@contextmanager
def only_one(out: Path) -> Iterator[int]:
    """Hold the output folder while writing to it. The lock ends with the process, however that ends."""
    with _writing(out):
        lock = os.open(out / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise CoverlayError(f"another coverlay is writing to {out}; wait for it or choose another --out") from None
    try:
        yield lock
    finally:
        os.close(lock)


def _writing(out: Path) -> AbstractContextManager[None]:
    return writing(f"--out {out}", RUNS_KEPT)


def _write_experiment(plan: Plan, out: Path) -> None:
    """The experiment as it is run; the report shows this file, notes included."""
    notes = "".join(f"# note: {note}\n" for note in plan.notes)
    with _writing(out), replaced_file(out / EXPERIMENT) as unfinished:
        unfinished.write_text(notes + to_toml(plan.data), encoding="utf-8")
