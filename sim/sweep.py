"""Run all runs of a plan, on local cores or as tasks of a Spark cluster.

Every run writes its own folder atomically, so a sweep can be killed at any point and resumed. A run that
fails does not take the others down; it is reported with its parameters and how to repeat it.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from coverlay import CoverlayError
from sim.experiments import Plan, Run, to_toml
from sim.runner import Outcome, execute


@dataclass(frozen=True)
class Failure:
    run: Run
    message: str
    is_input: bool  # a mistake in what the user gave, as opposed to one of ours

    def __str__(self) -> str:
        point = ", ".join(f"{key} = {json.dumps(value)}" for key, value in self.run.point.items())
        return f"seed {self.run.seed}{', ' + point if point else ''}: {self.message}"

    def repeat_command(self, experiment: str) -> str:
        sets = " ".join(f"--set '{key}={json.dumps(value)}'" for key, value in self.run.point.items())
        return f"coverlay run {experiment} --set 'seeds=[{self.run.seed}]' {sets}".rstrip()


@dataclass
class SweepResult:
    outcomes: list[Outcome] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    kept: int = 0  # runs found complete and not repeated

    @property
    def wrong(self) -> list[Outcome]:
        """Runs in which the oracle found a delivery missing, twice, or to the wrong subscriber."""
        return [
            o for o in self.outcomes if o.record["missed"] or o.record["duplicates"] or o.record["spurious"]
        ]


Attempt = Outcome | Failure


def run_sweep(
    plan: Plan,
    out: Path,
    *,
    jobs: int = 1,
    resume: bool = False,
    spark_master: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> SweepResult:
    """Run what is missing. `progress(done, total)` is called after every run."""
    _refuse_foreign_runs(plan, out)
    _write_experiment(plan, out)
    result = SweepResult()
    todo = [run for run in plan.runs if not (resume and _folder(out, run).is_dir())]
    result.kept = len(plan.runs) - len(todo)
    progress(result.kept, len(plan.runs))
    for done, attempt in enumerate(_attempts(todo, out, jobs, spark_master), result.kept + 1):
        if isinstance(attempt, Outcome):
            result.outcomes.append(attempt)
        else:
            result.failures.append(attempt)
        progress(done, len(plan.runs))
    return result


def _attempts(runs: list[Run], out: Path, jobs: int, spark_master: str | None) -> Iterator[Attempt]:
    if spark_master is not None and runs:
        yield from _on_spark(runs, out, spark_master)
    elif jobs == 1 or len(runs) <= 1:
        for run in runs:
            yield _attempt(run, out)
    else:
        with ProcessPoolExecutor(min(jobs, len(runs))) as pool:
            for future in as_completed([pool.submit(_attempt, run, out) for run in runs]):
                yield future.result()


def _on_spark(runs: list[Run], out: Path, master: str) -> Iterator[Attempt]:
    """One Spark task per run; the executors see the same output folder and have Coverlay installed."""
    from analysis.spark import session  # starting a JVM is slow and needs Java: only when asked for

    context = session(master).sparkContext
    folder = out.resolve()
    tasks = context.parallelize(runs, len(runs)).map(lambda run: _attempt(run, folder))
    yield from tasks.toLocalIterator()


def _attempt(run: Run, out: Path) -> Attempt:
    try:
        return execute(run, out)
    except CoverlayError as error:
        return Failure(run, str(error), is_input=True)
    except MemoryError:
        return Failure(run, "the machine's memory did not suffice; make the run smaller", is_input=False)
    except Exception:  # the sweep must go on; the traceback is kept for the report of our own mistake
        return Failure(run, traceback.format_exc(), is_input=False)


def _folder(out: Path, run: Run) -> Path:
    return out / "runs" / f"run={run.run_id}"


def _refuse_foreign_runs(plan: Plan, out: Path) -> None:
    """Runs of another experiment in the same folder would be averaged with ours."""
    known = {_folder(out, run).name for run in plan.runs}
    if out.exists() and not out.is_dir():
        raise CoverlayError(f"--out {out} is a file; it must be a folder or not exist yet")
    foreign = [path.name for path in (out / "runs").glob("run=*") if path.name not in known]
    if foreign:
        raise CoverlayError(
            f"{out} holds {len(foreign)} runs of another experiment (e.g. {foreign[0]}); "
            "choose another --out or delete that folder"
        )


def _write_experiment(plan: Plan, out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "experiment.toml").write_text(to_toml(plan.data), encoding="utf-8")
    except OSError as error:
        raise CoverlayError(f"--out {out} cannot be written: {error.strerror}") from None
