"""What each verb of the command line does, and how it looks on a terminal."""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from coverlay import CoverlayError
from sim.bench import ALONG, BENCHMARKS
from sim.cli.lists import LISTS, listed, settings
from sim.cli.terminal import ERR, progress, status
from sim.experiment.reference import as_markdown, by_section, choose
from sim.reproduce import DOCUMENTS, POINTS

MOST_ADVICE = 20  # sentences on the terminal; the report has them all
MOST_ROWS = 60  # of a routing table on the terminal
PIPE_WIDTH = 240  # columns when the output is not a terminal: tables in files and logs stay unbroken

_out = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, soft_wrap=not sys.stdout.isatty())


# ── experiments ────────────────────────────────────────────────────────────────────────────────────────────


def demo(options: argparse.Namespace) -> int:
    options.experiment = "demo"
    return run(options)


def run(options: argparse.Namespace) -> int:
    from analysis.spark.session import start_early
    from sim.experiment.plan import load
    from sim.experiment.sweep import run_sweep

    plan = load(options.experiment, _settings(options))
    out = options.out or Path("out") / Path(options.experiment).stem
    started = _begin(plan, options.jobs)
    with progress(f"simulating {plan.name}") as update:
        result = run_sweep(
            plan,
            out,
            jobs=options.jobs,
            resume=options.resume,
            spark_master=options.spark,
            progress=update,
            begun=lambda: start_early(options.spark),
        )
    _say_what_ran(result, started, out)
    _report_failures(result, options.experiment, options.settings)
    if not result.outcomes and not result.kept:
        return _status(result)
    return _finish(plan, out, result, options)


def capacity(options: argparse.Namespace) -> int:
    from analysis.report.told import Held
    from analysis.spark.session import start_early
    from sim.capacity.find import checked_limit, find, prepare
    from sim.capacity.words import HEADERS, hasty, row, sentences

    limit = checked_limit(options.p99)
    plan = prepare(options.experiment, _settings(options))
    out = options.out or Path("out") / f"{Path(options.experiment).stem}-capacity"
    started = _begin(plan, options.jobs)
    _complain("these are the runs of the first rate; about ten more rates follow, each chosen by the results before it")
    with progress(f"searching the rate that {plan.name} holds") as update:
        found = find(
            plan,
            limit,
            out,
            jobs=options.jobs,
            resume=options.resume,
            spark_master=options.spark,
            progress=update,
            begun=lambda: start_early(options.spark),
        )
    _say_what_ran(found.result, started, out)
    if found.result.failures:
        _report_failures(found.result, str(out / "experiment.toml"), [])
        return _status(found.result)
    answers = sentences(found.searches)  # refuses where no setting has an answer
    _print_table(HEADERS, [row(point, search) for point, search in found.searches.items()])
    short = hasty(found.searches)
    for note in short:
        _complain(f"note: {note}")
    plan = replace(found.plan, notes=(*found.plan.notes, *short))
    return _finish(plan, out, found.result, options, Held(limit, tuple(answers)))


def _settings(options: argparse.Namespace) -> list[str]:
    return [*options.settings, *(["run.force=true"] if options.force else [])]


def _begin(plan: Any, jobs: int) -> float:
    """Say what is coming; answers when it began."""
    from analysis.spark.java import find_java

    for note in plan.notes:
        _complain(f"note: {note}")
    find_java()  # refuses now what would fail after the last run
    started = time.perf_counter()
    _announce(plan, jobs)
    return started


def _say_what_ran(result: Any, started: float, out: Path) -> None:
    for warning in result.warnings:
        _complain(f"note: {warning}")
    kept = f", {result.kept} kept from before" if result.kept else ""
    for engine, why in sorted({(o.record["engine"], o.record["engine_reason"]) for o in result.outcomes}):
        _say(f"engine {engine}: {why}")
    _out.print(f"{len(result.outcomes)} runs in {time.perf_counter() - started:.1f} s{kept}, traces in {out}/runs")


def _finish(plan: Any, out: Path, result: Any, options: argparse.Namespace, held: Any = None) -> int:
    """Stories, aggregation and page of what was simulated; answers the exit status."""
    from sim.reproduce.theory_bounds import write_bounds

    _tell(plan, out, result, held)
    write_bounds(plan, out)
    _aggregate(out, options.spark)
    options.folder = out
    report(options)
    for wrong in result.wrong:
        where = f"see coverlay explain {out} --run {wrong.run_id}"
        _complain(f"run {wrong.run_id} broke a guarantee: {wrong.broken}; {where}", style="red")
    return _status(result)


def _status(result: Any) -> int:
    if result.wrong or any(not failure.is_input for failure in result.failures):
        return 1
    return 2 if result.failures else 0


def _announce(plan: Any, jobs: int) -> None:
    from sim.experiment.coming import coming

    with suppress(CoverlayError):  # a run that cannot be is refused with its parameters when its turn comes
        for line in coming(plan, jobs):
            _complain(line)


def _tell(plan: Any, out: Path, result: Any, held: Any) -> None:
    """What happened to a few events, where the experiment asks for it; the page has it too."""
    from sim.tell.keep import keep

    stories = keep(plan, out, result, held)
    for line in ("", *stories, "") if stories else ():
        _say(line)


def _report_failures(result: Any, experiment: str, settings: list[str]) -> None:
    """One message per cause: a bad file fails every run of a sweep in the same way."""
    causes: dict[str, list[Any]] = {}
    for failure in result.failures:
        causes.setdefault(failure.message, []).append(failure)
    for failures in causes.values():
        first, others = failures[0], len(failures) - 1
        alike = f" ({others} more runs failed in the same way)" if others else ""
        _complain(f"run failed: {first}{alike}", style="red")
        _complain(f"  repeat it with: {first.repeat_command(experiment, settings)}")


def _aggregate(folder: Path, master: str | None) -> None:
    from analysis.spark.aggregate import analyze as aggregate

    with status("aggregating on Spark") as say:
        summary = aggregate(folder, master, say)
    _print_summary(summary)


def analyze(options: argparse.Namespace) -> int:
    _aggregate(options.folder, options.master)
    _say(f"results: {options.folder / 'results'}")
    return 0


def report(options: argparse.Namespace) -> int:
    from analysis.report.page import write_report
    from analysis.report.study import Thresholds

    usual = Thresholds()
    given = {name: getattr(options, name, None) for name in ("keeps", "cheaper")}
    chosen = Thresholds(**{name: getattr(usual, name) if value is None else value for name, value in given.items()})
    _say(f"report: {write_report(options.folder, chosen)}")
    return 0


def _print_summary(summary: Any) -> None:
    from analysis.report.advisor import advise
    from analysis.report.page import said_first
    from analysis.report.sentences import NO_PROCESSING, without_processing
    from analysis.report.study import study
    from analysis.report.study_words import sentence
    from analysis.report.summary import QUOTED_METRICS, table, table_metrics

    answered, sentences = said_first(summary)
    shown = table(summary, table_metrics(summary, answered.metrics), QUOTED_METRICS)
    _print_table(list(shown.headers), [list(row) for row in shown.rows])
    for line in sentences:
        _say(line)
    cases = study(summary)
    found = advise(summary) if not cases else []  # the study says more, workload by workload
    for advice in found[:MOST_ADVICE]:
        title = f"{advice.title}: " if advice.title else ""
        _say(f"{title}{advice.sentence}")
    if len(found) > MOST_ADVICE:
        _say(f"… and {len(found) - MOST_ADVICE} more in the report")
    for case in cases:
        _say(f"{case.title}: {sentence(case)}")
    for warning in [*([NO_PROCESSING] if without_processing(summary) else []), *summary.warnings]:
        _complain(f"note: {warning}")


# ── reproductions and benchmarks ───────────────────────────────────────────────────────────────────────────


def documents() -> list[str]:
    return sorted(DOCUMENTS)


def benchmarks() -> list[str]:
    return sorted(BENCHMARKS)


def reproduce(options: argparse.Namespace) -> int:
    from analysis.report.claims import write_claims

    claims, started = [], time.perf_counter()
    for document in documents() if options.document == "all" else [options.document]:
        folder = options.out / document
        folder.mkdir(parents=True, exist_ok=True)
        if not options.resume:
            rmtree(folder / POINTS, ignore_errors=True)
        with status(f"reproducing {document}") as say:
            claims += import_module(DOCUMENTS[document]).run(folder, options.quick, say)
    page = write_claims(claims, options.out, time.perf_counter() - started)
    headers = ["document", "claim", "published", "measured", "verdict"]
    _print_table(headers, [[c.document, c.claim, c.published, c.measured, c.verdict] for c in claims])
    _say(f"claims: {page}")
    return 0


def calibrate(options: argparse.Namespace) -> int:
    from sim.calibrate import calibrate, in_words, to_profile, write_profile

    with status("calibrating") as update:
        found = calibrate(options.methods, update)
    table = Table("what it costs here", "fits within", "predicted ÷ measured, held out", box=None)
    for item in found:
        held = "–" if item.held_out != item.held_out else f"{item.held_out:.2f}"
        table.add_row(in_words(item), f"{item.error:.0%}", held)
    _out.print(table)
    if options.out is not None:
        write_profile(options.out, to_profile(found))
        _out.print(
            f'profile: {options.out}; use it with broker.service = {{ kind = "work", profile = "{options.out}" }}'
        )
    return 0


def bench(options: argparse.Namespace) -> int:
    results: dict[str, Any] = {}
    for family in benchmarks() if options.family == "all" else [options.family, *ALONG.get(options.family, ())]:
        module = import_module(BENCHMARKS[family])
        with status(f"measuring {family}") as say:
            rows = module.run(options.quick, say)
        results[family] = {"rows": rows, "verdicts": module.verdicts(rows)}
    if options.json:
        _out.print_json(json.dumps(results, default=str))
        return 0
    for family, result in results.items():
        for name, rows in result.items():
            _out.print(f"\n{family}: {'measured' if name == 'rows' else 'aimed at'}", style="bold")
            headers = list(dict.fromkeys(key for row in rows for key in row))
            _print_table(headers, [[_cell(row.get(key)) for key in headers] for row in rows])
    return 0


# ── looking around ─────────────────────────────────────────────────────────────────────────────────────────


def list_names(options: argparse.Namespace) -> int:
    for what in [options.what] if options.what else LISTS:
        _out.print(f"{what}:", style="bold")
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        for name, text in listed(what):
            grid.add_row(Text(f"  {name}"), Text(text))
        _out.print(grid)
    return 0


def keys(options: argparse.Namespace) -> int:
    chosen = choose(settings(), options.section)
    if options.format == "json":
        _out.print_json(json.dumps([asdict(setting) for setting in chosen]), ensure_ascii=False)
    elif options.format == "markdown":
        print(as_markdown(chosen), end="")
    else:
        for section, rows in by_section(chosen).items():
            _out.print(f"{section}:", style="bold")
            shown = [[f"  {s.key}", s.type, s.default, s.unit, s.in_words] for s in rows]
            _print_table(["  key", "type", "default", "unit", "meaning"], shown)
    return 0


def init(options: argparse.Namespace) -> int:
    from sim.experiment.plan import parse_setting
    from sim.experiment.start import QUESTIONS, asked, compose, write

    flags = {name: getattr(options, name) for name in (*QUESTIONS, "workload", "epsilon")}
    settings = dict(map(parse_setting, options.settings))
    if sys.stdin.isatty() and sys.stdout.isatty() and not settings and set(flags.values()) == {None}:
        flags = asked(flags, lambda question, default: input(f"{question} [{default}]: "))
    data = compose(flags, settings, options.out.parent, options.out.stem)
    made = write(data, options.out, options.force)
    for note in made.notes:
        _complain(f"note: {note}")
    _say(f"{options.out} has {len(made.runs)} runs; coverlay run {options.out} runs them")
    return 0


def verify(options: argparse.Namespace) -> int:
    from analysis.spark.verify import verify as verify_runs

    with progress("checking runs") as update:
        verdict = verify_runs(options.folder, update)
    for sentence in verdict.wrong:
        _complain(f"wrong: {sentence}", style="red")
    for note in verdict.notes:
        _complain(f"note: {note}")
    _say(str(verdict))
    return 2 if verdict.wrong else 0


def explain(options: argparse.Namespace) -> int:
    from sim.tell.explain import explain as explain_event

    for line in explain_event(options.folder, options.event, options.subscription, options.run):
        _say(line)
    return 0


def tables(options: argparse.Namespace) -> int:
    from sim.tell.explain import RunTrace
    from sim.tell.tables import find
    from sim.tell.tables_in_words import at_broker, counts, frame_of, of_subscription, refuse_unwritable, shown, write

    if options.out is not None:
        refuse_unwritable(options.out)
    trace = RunTrace(options.folder, options.run)
    broker = None if options.broker is None else trace.called(options.broker)
    with status("routing tables") as say:

        def tell(share: float) -> None:
            say(f"simulating again, {share:.0%}")

        found = find(options.folder, trace, options.at, lambda said: _complain(f"note: {said}"), tell)
    for line in shown(found):
        _say(line)
    frame = frame_of(found, broker, options.subscription)
    if options.out is not None:
        write(frame, options.out)
        _say(f"{len(frame):,} rows: {options.out}")
        return 0
    if options.subscription is not None:
        for line in of_subscription(found, options.subscription, broker):
            _say(line)
    picked = counts(frame) if broker is None and options.subscription is None else at_broker(frame)
    if len(picked):
        _print_table(list(picked.columns), picked.head(MOST_ROWS).astype(str).to_numpy().tolist())
    if len(picked) > MOST_ROWS:
        _say(f"… and {len(picked) - MOST_ROWS:,} more; --out FILE.csv writes all")
    return 0


# ── terminal ───────────────────────────────────────────────────────────────────────────────────────────────


def _say(line: str) -> None:
    _out.print(line, markup=False, highlight=False)


def _complain(line: str, style: str | None = None) -> None:
    ERR.print(line, style=style, markup=False, highlight=False)


def _print_table(headers: list[str], rows: list[list[str]]) -> None:
    table = Table(*headers, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*(_cell(value).replace("[", "\\[") for value in row))
    _out.print(table)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
