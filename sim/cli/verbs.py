"""The verbs that run, aggregate or measure something; looking.py has the others."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rich.table import Table

from coverlay import CoverlayError, brief
from sim.bench import ALONG, BENCHMARKS
from sim.cli.settings_table import print_settings
from sim.cli.terminal import OUT, cell, complain, print_table, progress, say, status
from sim.reproduce import DOCUMENTS

if TYPE_CHECKING:
    from sim.experiment.sweep import SweepOptions


# ── experiments ────────────────────────────────────────────────────────────────────────────────────────────


def demo(options: argparse.Namespace) -> int:
    options.experiment = "demo"
    return run(options)


def run(options: argparse.Namespace) -> int:
    from sim.experiment.folder_lock import FolderLock
    from sim.experiment.plan import load
    from sim.experiment.sweep import run_sweep

    plan = load(options.experiment, _settings(options), options.plugins)
    out = options.out = options.out or Path("out") / Path(options.experiment).stem
    started = _begin(plan, options.jobs)
    with FolderLock(out) as lock:
        with progress(f"simulating {plan.name}") as update:
            result = run_sweep(plan, out, _sweep_options(options, update), lock)
        _say_what_ran(result, started, out)
        _report_failures(result, options.experiment, options.settings, options.plugins)
        if not result.outcomes and not result.kept:
            return _status(result)
        return _finish(plan, out, result, options)


def capacity(options: argparse.Namespace) -> int:
    from analysis.report.told import Held
    from sim.capacity.find import checked_limit, find, prepare
    from sim.capacity.sentences import few, hasty, rates
    from sim.experiment.folder_lock import FolderLock

    limit = checked_limit(options.p99)
    plan = prepare(options.experiment, _settings(options), options.plugins)
    out = options.out = options.out or Path("out") / f"{Path(options.experiment).stem}-capacity"
    started = _begin(plan, options.jobs)
    complain("these are the runs at the first rate; about ten more rates follow, each chosen by the results so far")
    with FolderLock(out) as lock:
        with progress(f"searching for the rate that {plan.name} holds") as update:
            found = find(plan, limit, out, _sweep_options(options, update), lock)
        _say_what_ran(found.result, started, out)
        if found.result.failures:
            _report_failures(found.result, str(out / "experiment.toml"), [])
            return _status(found.result)
        answers = rates(found.searches)  # refuses where no setting has an answer
        short = [*few(found.searches), *hasty(found.searches, plan.runs[0].experiment.workload.from_files)]
        _note(short)
        plan = replace(found.plan, notes=(*found.plan.notes, *short))
        held = Held(limit, tuple(answers), len(plan.runs[0].experiment.seeds))
        return _finish(plan, out, found.result, options, held)


def _settings(options: argparse.Namespace) -> list[str]:
    return [*options.settings, *(["run.force=true"] if options.force else [])]


def _sweep_options(options: argparse.Namespace, progress: Callable[[float, int], None]) -> SweepOptions:
    """Spark starts while the first runs are under way."""
    from analysis.spark.session import start_early
    from sim.experiment.sweep import SweepOptions

    return SweepOptions(options.jobs, options.spark, options.resume, progress, lambda: start_early(options.spark))


def _begin(plan: Any, jobs: int) -> float:
    """Say what is coming; returns the time at which the command began."""
    from analysis.report.truth import NO_PROCESSING
    from analysis.spark.java import find_java
    from sim.experiment.predict import coming

    idle = all(run.experiment.broker.immediate for run in plan.runs)
    _note([*plan.notes, *([NO_PROCESSING] if idle else [])])
    _say_imported(plan.plugins)
    find_java()  # fail now rather than after the last run
    started = time.perf_counter()
    with suppress(CoverlayError):  # an impossible run is refused, with its parameters, when its turn comes
        for line in coming(plan, jobs):
            complain(line)
    return started


def _note(notes: Iterable[str]) -> None:
    for note in notes:
        complain(f"note: {note}")


def _say_imported(plugins: Sequence[Any]) -> None:
    if plugins:
        complain(f"imported: {', '.join(dict.fromkeys(plugin.name for plugin in plugins))}")


def _say_what_ran(result: Any, started: float, out: Path) -> None:
    _note(result.warnings)
    made_by = " and ".join(sorted(result.kept_by))
    kept = f", {result.kept} kept from before (made by coverlay {made_by})" if result.kept else ""
    for engine, why in sorted({(o.record["engine"], o.record["engine_reason"]) for o in result.outcomes}):
        say(f"engine {engine}: {why}")
    count = f"{len(result.outcomes)} run{'s' * (len(result.outcomes) != 1)}"
    say(f"{count} in {time.perf_counter() - started:.1f} s{kept}, traces in {out}/runs")


def _finish(plan: Any, out: Path, result: Any, options: argparse.Namespace, held: Any = None) -> int:
    """Tell a few events, aggregate, and write the page of what was simulated; returns the exit status."""
    from sim.tell.keep import keep

    stories = keep(plan, out, result, held)
    for line in ("", *stories, "") if stories else ():
        say(line)
    _aggregate(out, options.spark, options.wide)
    options.folder = out
    report(options)
    for wrong in result.wrong:
        where = f"see coverlay explain {out} --run {wrong.run_id}"
        complain(f"run {wrong.run_id} broke a guarantee: {wrong.broken}; {where}", style="red")
    return _status(result)


def _status(result: Any) -> int:
    if result.wrong or any(not failure.is_input for failure in result.failures):
        return 1
    return 2 if result.failures else 0


def _report_failures(result: Any, experiment: str, settings: list[str], plugins: Sequence[str] = ()) -> None:
    """One message per cause: a bad file fails every run of a sweep in the same way."""
    causes: dict[str, list[Any]] = {}
    for failure in result.failures:
        causes.setdefault(failure.message, []).append(failure)
    for first, *others in causes.values():
        alike = f" ({len(others)} more runs failed in the same way)" if others else ""
        complain(f"run failed: {first}{alike}", style="red")
        complain(f"  repeat it with: {first.repeat_command(experiment, settings, plugins)}")


def _aggregate(folder: Path, master: str | None, wide: bool) -> None:
    from analysis.aggregate import analyze as aggregate

    with status("aggregating on Spark") as update:
        summary = aggregate(folder, master, update)
    _print_summary(summary, wide)


def analyze(options: argparse.Namespace) -> int:
    from sim import plugins

    loaded = [*plugins.load_of_folder(options.folder), *map(plugins.load, options.plugins)]
    _say_imported(loaded)
    _aggregate(options.folder, options.master, options.wide)
    say(f"results: {options.folder / 'results'}")
    return 0


def report(options: argparse.Namespace) -> int:
    from analysis.report.page import Asked, write_report
    from analysis.report.places import Price
    from analysis.report.study import LEAST, is_study, study
    from analysis.report.study_text import write_into
    from analysis.report.summary import load
    from analysis.report.thresholds import Thresholds
    from analysis.report.told import read_told
    from sim.experiment.sweep import left_of
    from sim.tell.contents import contents
    from sim.tell.study_bounds import prices_of, write_missing_bounds

    given = {name: value for name in ("keeps", "cheaper") if (value := getattr(options, name, None)) is not None}
    names = getattr(options, "profiles", None)
    profiles = None if names is None else {n: Price(**prices_of(n)) for n in map(str.strip, names.split(","))}
    write_missing_bounds(options.folder)
    searched = read_told(options.folder).held is not None  # by coverlay capacity: each setting has its own rates
    notes = () if searched else left_of(options.folder)
    asked = Asked(Thresholds(**given), profiles, notes, contents(options.folder))
    of_study = [name for name in ("keeps", "cheaper", "profiles", "into") if getattr(options, name, None) is not None]
    summary = load(options.folder) if of_study else None
    cases = study(summary, asked.thresholds, profiles) if summary is not None else []
    if of_study and not is_study(cases):
        raise CoverlayError(
            f"--{of_study[0]} has no effect: {options.folder} is not a study of approximate covering, which has at "
            f"least {LEAST} approximations beside exact covering of the same workload"
        )
    say(f"report: {write_report(options.folder, asked)}")
    if summary is not None and options.into is not None:
        write_into(options.into, summary, cases)
        say(f"table and verdicts: {options.into}")
    return 0


def _print_summary(summary: Any, wide: bool = False) -> None:
    from analysis.report import shown_settings
    from analysis.report.page import begin
    from analysis.report.rates import titles
    from analysis.report.study import is_study
    from analysis.report.study_words import LEGEND, in_text, verdicts
    from analysis.report.truth import NO_PROCESSING, without_processing

    begun = begin(summary)
    studied, held = is_study(begun.cases), begun.told.held
    if held is not None:
        from sim.capacity.sentences import HEADERS

        named = zip(titles(begun.effects, held), held.found, strict=True)
        print_table(HEADERS, [[title, *rates.row] for title, rates in named])
    if studied:
        print_table(*in_text(begun.cases))
        say(f"{LEGEND} ✓: it pays; ?: it may pay; these seeds do not settle it.")
    if (studied or held is not None) and not wide:
        files = "summary.csv, run_metrics.csv, differences.csv"
        say(f"Every setting{' and rate' * (held is not None)} with --wide, and in {summary.out / 'results'}: {files}")
    else:
        print_settings(begun, shown_settings.rows(summary, begun.cases if studied else []), wide)
    for sentence in begun.sentences:
        say(str(sentence))
    for sentence in verdicts(begun.cases) if not studied else ():
        say(str(sentence))
    _note([*([NO_PROCESSING] if without_processing(summary) else []), *summary.warnings])


# ── reproductions and benchmarks ───────────────────────────────────────────────────────────────────────────


def reproduce(options: argparse.Namespace) -> int:
    from analysis.report.claims import NOT_RUN, changes, read_ledger
    from analysis.report.claims_page import write_claims
    from sim.reproduce import ledger as ledgers
    from sim.reproduce.points import ship_points

    documents = sorted(DOCUMENTS)
    if options.judge:
        return _judge(options, documents)
    if options.document is None and options.compare is None and options.ledger is None:
        raise CoverlayError(f"name a document ({', '.join(documents)}) or all of them (all)")
    if options.figures is not None and options.document in (None, "all"):
        raise CoverlayError("--figures is about one document: name it")
    figures = [name.strip() for name in options.figures.split(",")] if options.figures is not None else []
    earlier = read_ledger(options.compare) if options.compare is not None else None
    chosen = documents if options.document == "all" else [options.document] if options.document else []
    for document in chosen:
        complain(brief(ledgers.coming(document, options.quick, figures)))
    for document in chosen:
        with status(f"reproducing {document}") as update:
            ledgers.reproduce(
                document,
                options.out,
                update,
                quick=options.quick,
                resume=options.resume,
                seeds=options.seeds,
                first_seed=options.seed,
                most_load=options.most_load,
                share=options.share,
                figures=figures,
                kept_in=options.ledger,
            )
    shown = chosen or ledgers.measured_in(options.out)
    if chosen:
        found = ledgers.collected(options.out, shown)
        headers = ["document", "claim", "published", "ours", "verdict"]
        print_table(headers, [[c.document, c.claim, c.published, c.ours, c.finding] for c in found.claims])
        say(f"claims: {write_claims(ledgers.collected(options.out, ledgers.measured_in(options.out)), options.out)}")
    if options.ledger is not None:
        ledgers.ship(ledgers.collected(options.out, documents), options.ledger)
        for document in documents:
            ship_points(document, options.out / document, options.ledger)
        say(f"ledger: {options.ledger}")
    if earlier is not None:
        found = ledgers.collected(options.out, shown or documents)
        differing = changes(earlier, found)
        print_table(["document", "claim", "old", "new"], [list(row) for row in differing])
        differ = "1 verdict differs" if len(differing) == 1 else f"{len(differing)} verdicts differ"
        left_out = sum(claim.verdict == NOT_RUN for claim in found.claims)
        say(f"{differ} from {options.compare}{f'; {left_out} claims were not run here' if left_out else ''}")
    return 0


def _judge(options: argparse.Namespace, documents: list[str]) -> int:
    """The verdicts that follow from the points that ship, and whether they are those of the ledger that ships."""
    from analysis.report.claims import LEDGER, NOT_RUN, Ledger, counted, read_ledger
    from sim.reproduce import ledger as ledgers
    from sim.reproduce import page

    measuring = ("quick", "resume", "seeds", "figures", "most_load", "compare")
    given = (
        [name for name in measuring if getattr(options, name)]
        + ["seed"] * (options.seed != 1)
        + ["share"] * (options.share != 1)
    )
    if given:
        listed = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise CoverlayError(f"--judge measures nothing, so {listed} would have no effect: leave it out")
    docs = options.ledger or ledgers.SHIPPED.parent
    if not (docs / LEDGER).exists():
        raise CoverlayError(f"{docs} has no {LEDGER}; the sources have it in docs: --ledger docs")
    chosen = documents if options.document in (None, "all") else [options.document]
    with status("judging"), TemporaryDirectory() as scratch:
        outs = {document: Path(scratch, document) for document in chosen}
        found = {document: ledgers.judged(document, docs, out) for document, out in outs.items()}
        if options.ledger is not None:
            for document, out in outs.items():
                page.draw(document, found[document].claims, found[document].drawn, out, docs / page.FOLDER)
    claims = [claim for judged in found.values() for claim in judged.claims]
    rows = [[c.document, c.id, c.kind, c.published, c.ours, c.conclusion] for c in claims]
    print_table(["document", "claim", "class", "published", "ours", "verdict"], rows)
    say("; ".join(f"{n} {name}" for name, n in counted(claims).items() if n))
    left = [claim for claim in claims if claim.verdict == NOT_RUN]
    if left:
        without = sorted({claim.document for claim in left})
        say(f"{len(left)} of {', '.join(without)} cannot be judged here: their points do not ship")
    kept = read_ledger(docs / LEDGER)
    wrong = ledgers.unlike(kept, claims)
    for was, now in wrong:
        told = [name for name, value in asdict(now).items() if was is None or asdict(was)[name] != value]
        said = "has no such claim" if was is None else f"says {was.verdict} ({was.ours})"
        say(f"{now.document} {now.id}: the ledger {said}, its points {now.verdict} ({now.ours}); {', '.join(told)}")
    same = f"{len(claims) - len(left) - len(wrong)} claims are as in {docs / LEDGER}"
    say(f"{same}; {len(wrong)} differ" if wrong else same)
    if options.ledger is not None:
        others = [claim for claim in kept.claims if claim.document not in chosen]
        taken = [step for judged in found.values() for step in judged.taken]
        every = sorted([*others, *claims], key=lambda claim: claim.document)
        ledgers.ship(Ledger(kept.made, every, taken=taken), docs)
        say(f"ledger: {docs}, with what follows from its points")
    return 1 if wrong else 0


@contextmanager
def _plugins(named: Sequence[str]) -> Iterator[list[str]]:
    """Import plug-ins, for the names that they register; what goes wrong in one is told in a sentence."""
    if not named:
        yield []
        return
    from sim import plugins

    loaded = {plugins.load(name).module for name in named}
    with plugins.explained():
        yield [name for *_, name, written in plugins.registered() if written.__module__ in loaded]


def calibrate(options: argparse.Namespace) -> int:
    from sim.calibrate import calibrate, in_words, refuse_unusable, to_profile, write_profile

    if options.out is not None:
        refuse_unusable(options.out)
    with status("calibrating") as update, _plugins(options.plugins) as names:
        found = calibrate(options.methods, update, names)
    table = Table("what it costs here", "fits within", "predicted ÷ measured, held out", box=None)
    for item in found:
        held = "–" if item.held_out != item.held_out else f"{item.held_out:.2f}"
        table.add_row(in_words(item), f"{item.error:.0%}", held)
    OUT.print(table)
    if options.out is not None:
        write_profile(options.out, to_profile(found))
        say(f'profile: {options.out}; use it with broker.service = {{ kind = "work", profile = "{options.out}" }}')
    return 0


def bench(options: argparse.Namespace) -> int:
    results: dict[str, Any] = {}
    one = [options.family, *ALONG.get(options.family, ())]
    for family in sorted(BENCHMARKS) if options.family == "all" else one:
        module = import_module(BENCHMARKS[family])
        with status(f"measuring {family}") as update, _plugins(options.plugins):
            rows = module.run(options.quick, update)
        results[family] = {"rows": rows, "verdicts": module.verdicts(rows)}
    if options.json:
        OUT.print_json(json.dumps(results, default=str))
        return 0
    for family, result in results.items():
        for name, rows in result.items():
            OUT.print(f"\n{family}: {'measured' if name == 'rows' else 'aimed at'}", style="bold")
            headers = list(dict.fromkeys(key for row in rows for key in row))
            print_table(headers, [[cell(row.get(key)) for key in headers] for row in rows])
    return 0
