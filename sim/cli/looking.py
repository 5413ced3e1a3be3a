"""The verbs that only look: lists, keys, traces in words; and `init`, which writes a file."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from sim.cli.lists import LISTS, listed, settings
from sim.cli.terminal import OUT, complain, print_table, progress, say, status
from sim.experiment.reference import as_markdown, by_section, choose

MOST_ROWS = 60  # of a routing table on the terminal


def list_names(options: argparse.Namespace) -> int:
    for what in [options.what] if options.what else LISTS:
        OUT.print(f"{what}:", style="bold")
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        for name, text in listed(what, options.plugins):
            grid.add_row(Text(f"  {name}"), Text(text))
        OUT.print(grid)
    return 0


def keys(options: argparse.Namespace) -> int:
    chosen = choose(settings(options.plugins), options.section)
    if options.format == "json":
        OUT.print_json(json.dumps([asdict(setting) for setting in chosen]), ensure_ascii=False)
    elif options.format == "markdown":
        print(as_markdown(chosen), end="")
    else:
        for section, rows in by_section(chosen).items():
            OUT.print(f"{section}:", style="bold")
            shown = [[f"  {s.key}", s.type, s.default, s.unit, s.in_words] for s in rows]
            print_table(["  key", "type", "default", "unit", "meaning"], shown)
    return 0


def check_plugin(options: argparse.Namespace) -> int:
    from sim.checks import registers, results
    from sim.plugins import explained

    checked, failed = 0, 0
    with explained():
        say(f"{options.plugin} registers: {', '.join(registers(options.plugin))}")
        for found in results(options.plugin, options.only, options.case, options.thorough):
            checked, failed = checked + 1, failed + (not found.holds)
            cases = "1 case" if found.cases == 1 else f"{found.cases:,} cases"
            what = f"{found.method:16} {found.check:10}"
            if found.failed is None:
                say(f"{what} {cases}, {found.seconds:.1f} s: holds")
                continue
            say(f"{what} case {found.failed}: FAILS")
            again = f"coverlay check-plugin {options.plugin} --only {found.check} --case {found.failed}"
            said = [found.message, *(["the smallest example:"] if found.example else []), *found.example]
            for line in [*said, f"{found.where + '; ' if found.where else ''}again: {again}"]:
                say(f"    {line}")
    say(f"{failed} of {checked} checks fail" if failed else f"all {checked} checks hold")
    return 1 if failed else 0


def init(options: argparse.Namespace) -> int:
    from sim.experiment.plan import parse_setting
    from sim.experiment.start import QUESTIONS, asked, compose, refuse_existing, write

    refuse_existing(options.out, options.force)
    flags = {name: getattr(options, name) for name in (*QUESTIONS, "workload", "epsilon")}
    settings = dict(map(parse_setting, options.settings))
    if sys.stdin.isatty() and sys.stdout.isatty() and not settings and set(flags.values()) == {None}:
        flags = asked(flags, _ask)
    data = compose(flags, settings, options.out.parent, options.out.stem)
    made = write(data, options.out, options.force)
    for note in made.notes:
        complain(f"note: {note}")
    say(f"{options.out} has {len(made.runs)} runs; coverlay run {options.out} runs them")
    return 0


def _ask(question: str, default: str) -> str:
    try:
        return input(f"{question} [{default}]: ")
    except EOFError:  # Ctrl-D: the default, also for the questions that follow
        say("")
        return ""


def verify(options: argparse.Namespace) -> int:
    from analysis.spark.verify import verify as verify_runs

    with progress("checking runs") as update:
        verdict = verify_runs(options.folder, update)
    for sentence in verdict.wrong:
        complain(f"wrong: {sentence}", style="red")
    for note in verdict.notes:
        complain(f"note: {note}")
    say(str(verdict))
    return 2 if verdict.wrong else 0


def explain(options: argparse.Namespace) -> int:
    from sim.tell.explain import explain as explain_event

    for line in explain_event(options.folder, options.event, options.subscription, options.run):
        say(line)
    return 0


def tables(options: argparse.Namespace) -> int:
    from sim.tell.run_trace import RunTrace
    from sim.tell.tables import find
    from sim.tell.tables_in_words import at_broker, counts, frame_of, of_subscription, refuse_unwritable, shown, write

    if options.out is not None:
        refuse_unwritable(options.out)
    trace = RunTrace(options.folder, options.run)
    broker = None if options.broker is None else trace.called(options.broker)
    with status("routing tables") as now:

        def tell(share: float) -> None:
            now(f"simulating again, {share:.0%}")

        found = find(trace, options.at, lambda said: complain(f"note: {said}"), tell)
    for line in shown(found):
        say(line)
    given = options.subscription
    subscription = None if given is None else trace.subscription_called(given, found.at)
    frame = frame_of(found, broker, subscription)
    if options.out is not None:
        write(frame, options.out)
        say(f"{len(frame):,} rows: {options.out}")
        return 0
    if subscription is not None:
        for line in of_subscription(found, subscription, broker):
            say(line)
    picked = counts(frame) if broker is None and subscription is None else at_broker(frame)
    if len(picked):
        print_table(list(picked.columns), picked.head(MOST_ROWS).astype(str).to_numpy().tolist())
    elif subscription is None:  # of a subscription, where it is was said above
        say("nothing is held there at that time")
    if len(picked) > MOST_ROWS:
        say(f"… and {len(picked) - MOST_ROWS:,} more; --out FILE.csv writes all")
    return 0
