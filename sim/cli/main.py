"""The `coverlay` command: arguments in, sentences and exit status out.

Exit status: 0 all well; 1 a run broke a guarantee or failed by our fault; 2 a mistake in what was given.
Each verb is one small function in verbs.py or looking.py; the work is done in the modules it calls.
"""

from __future__ import annotations

import argparse
import errno
import logging
import math
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from analysis.report.thresholds import Thresholds
from coverlay import CoverlayError, __version__, brief, quoted, refuse_other_systems
from sim.bench import BENCHMARKS
from sim.cli import comparing, looking, verbs
from sim.cli.lists import LISTS
from sim.reproduce import DOCUMENTS

START = """start here:
  coverlay demo               what routing and covering save, in a minute
  coverlay run stocks         traders and quotes: what happened to a few of them, in words
  coverlay list experiments   what else is shipped
  coverlay init               a commented experiment file to start from
  coverlay run mine.toml      your own overlay, data and sweep (README.md)
  coverlay check-plugin mine.py   your own algorithm, before it is timed (bench) and run (docs/plugins.md)
  import sim                  networks and experiments in Python (docs/python.md)
  coverlay VERB --help        options and examples of a verb"""
RUN_EXAMPLES = """run strategies
run stocks --set tell=5
run epsilon --set overlay.brokers=20 --set 'seeds=[1, 2, 3]' --jobs 2
run mine.toml --out out/mine --resume"""
CAPACITY_EXAMPLES = """capacity capacity --p99 3
capacity mine.toml --p99 50 --jobs 2
capacity mine.toml --p99 50 --set arrivals.publishing=bursty --set arrivals.burst_factor=10
capacity mine.toml --p99 50 --set 'sweep."matching.method"=["scan", "auto"]'"""
EXPLAIN_EXAMPLES = """explain out/demo --event 7
explain out/demo --event 7 --subscription 42"""
EXPECT_EQUAL, KINDS_OF_EQUAL = "--expect-equal", ("traces", "metrics")
COMPARE_EXAMPLES = """compare out/old out/new
compare before=out/old after=out/new --metrics entries,latency_p99
compare out/old out/new --expect-equal
compare out/demo --by routing.mode"""
TABLES_EXAMPLES = """tables out/demo
tables out/demo --broker b3 --at 500
tables out/demo --subscription 42 --broker b3
tables out/demo --out tables.parquet"""
INIT_EXAMPLES = """init
init --overlay star --brokers 20 --strategy merging --out mine.toml
init --overlay net.graphml --subscriptions subs.csv --events events.csv"""

WIDE = "print every column of the table, however wide"
VERBS = {"list": "list_names", "check-plugin": "check_plugin"}  # verbs whose function has another name
COMPILING = (  # run kernels
    "demo", "run", "capacity", "report", "reproduce", "bench", "calibrate", "explain", "tables", "check-plugin",
)  # fmt: skip


class _Help(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of examples, and puts each verb on one line with what it does."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        seeds = "; seeds are a setting: --set 'seeds=[1,2]'" if "unrecognized arguments: --seed" in message else ""
        super().error(brief(message) + seeds)


def parser() -> argparse.ArgumentParser:
    top = _Parser(
        prog="coverlay",
        description="A laboratory for content-based publish/subscribe broker networks.",
        epilog=START,
        formatter_class=_Help,
    )
    top.add_argument("--version", action="version", version=f"coverlay {__version__}")
    commands = top.add_subparsers(dest="verb", metavar="VERB")

    def verb(name: str, help: str, examples: str, folder: bool = False) -> argparse.ArgumentParser:
        said = f"{help[0].upper()}{help[1:]}."
        epilog = "examples:\n" + "\n".join(f"  coverlay {line}" for line in examples.split("\n"))
        made = commands.add_parser(name, help=help, description=said, epilog=epilog, formatter_class=_Help)
        called = VERBS.get(name, name)
        made.set_defaults(
            verb_function=next(
                getattr(module, called) for module in (verbs, looking, comparing) if hasattr(module, called)
            )
        )
        if folder:
            made.add_argument("folder", type=_folder, metavar="DIR", help="the --out folder of `coverlay run`")
        return made

    demo = verb("demo", "a small experiment end to end: simulate, aggregate on Spark, table, report", "demo")
    _run_options(demo, "out/demo")

    run = verb("run", "simulate an experiment, aggregate it on Spark, write the report", RUN_EXAMPLES)
    run.add_argument("experiment", metavar="NAME-or-FILE.toml", help="a shipped experiment or your own file")
    _run_options(run, None)

    said = "the highest rate of events that a network holds, and what saturates first"
    capacity = verb("capacity", said, CAPACITY_EXAMPLES)
    capacity.add_argument("experiment", metavar="NAME-or-FILE.toml", help="a shipped experiment or your own file")
    below = "milliseconds: the 99th percentile of the latency must stay below this"
    capacity.add_argument("--p99", type=float, required=True, metavar="MS", help=below)
    _run_options(capacity, None, "out/NAME-capacity")

    analyze = verb("analyze", "only the Spark aggregation of an output folder", "analyze out/demo", folder=True)
    analyze.add_argument("--master", help="Spark master, e.g. spark://host:7077 (default: this machine)")

    analyze.add_argument("--wide", action="store_true", help=WIDE)
    _plugin_option(analyze)

    report = verb("report", "only the report page of an aggregated output folder", "report out/demo", folder=True)
    keeps = f"least share of the saving with which approximation pays ({Thresholds.keeps:g})"
    report.add_argument("--keeps", type=_share, help=keeps)
    cheaper = f"largest share of exact search's cost at which it pays ({Thresholds.cheaper:g})"
    report.add_argument("--cheaper", type=_share, help=cheaper)
    report.add_argument("--profiles", help="cost profiles to use instead: names or files, separated by commas")
    into = "put a study's table and verdicts into a Markdown file"
    report.add_argument("--into", type=Path, metavar="FILE", help=into)

    said = "regenerate a source document's tables and figures, with a verdict per claim"
    add = verb("reproduce", said, "reproduce icdcs07\nreproduce all --quick\nreproduce --judge").add_argument
    add("document", nargs="?", choices=[*sorted(DOCUMENTS), "all"], help="which document, or all of them")
    add("--figures", metavar="NAMES", help="only these figures, separated by commas; a wrong name lists them all")
    add("--quick", action="store_true", help="smaller sizes and one seed, a few minutes each")
    out, files = Path("out/reproduce"), "for claims.html, claims.json and figures (default: out/reproduce)"
    add("--out", type=Path, default=out, metavar="DIR", help=files)
    add("--resume", action="store_true", help="do not repeat what was measured before, in DIR or in the ledger")
    add("--seeds", type=_positive, metavar="N", help="data sets per point (default: 3, with --quick 1)")
    add("--seed", type=_positive, metavar="S", default=1, help="the first data set: S, S + 1, … (default: 1)")
    fewer = "measure with this share of the document's subscriptions and events (icdcs07, vldb08; default: 1)"
    add("--share", type=_share, metavar="X", default=1.0, help=fewer)
    timed = "with --resume: repeat what was timed under a higher load average"
    add("--most-load", type=float, metavar="LOAD", help=timed)
    add("--compare", type=Path, metavar="FILE", help="show which verdicts differ from an earlier claims.json")
    judge = "measure nothing: every verdict from the points that ship; status 1 if the ledger has others"
    add("--judge", action="store_true", help=judge)
    add(
        "--ledger",
        type=Path,
        metavar="DIR",
        help="keep claims.json, reproduction.md and points there; --judge: mend them there",
    )

    bench = verb("bench", "side-by-side benchmarks, peers included, as ratios from one run", "bench covering --quick")
    bench.add_argument("family", choices=[*sorted(BENCHMARKS), "all"], help="what to measure, or all of it")
    bench.add_argument("--quick", action="store_true", help="smaller sizes")
    bench.add_argument("--json", action="store_true", help="rows as JSON instead of a table")
    _plugin_option(bench)

    said = 'measure what work costs on this machine, for broker.service = { kind = "work", profile = FILE }'
    calibrate = verb("calibrate", said, "calibrate --out here.toml")
    calibrate.add_argument("--out", type=Path, metavar="FILE", help="file for the profile (default: only print it)")
    methods = "searches and matchers, separated by commas, or all (default: the usual ones)"
    calibrate.add_argument("--methods", metavar="LIST", help=methods)
    _plugin_option(calibrate)

    listing = verb("list", "what there is to choose from", "list\nlist experiments")
    listing.add_argument("what", nargs="?", choices=[*LISTS], help="one list only (default: all)")
    _plugin_option(listing)

    keys = verb("keys", "every key of an experiment file: type, default, unit, meaning", "keys\nkeys covering")
    keys.add_argument("section", nargs="?", metavar="SECTION", help="one section or key only (default: all)")
    formats = ("text", "json", "markdown")
    keys.add_argument("--format", choices=formats, default="text", help="output format (default: text)")
    _plugin_option(keys)

    said = "does a method of your own do what ours do? runs the checks that ours pass"
    checking = verb("check-plugin", said, "check-plugin mine.py\ncheck-plugin mine.py --only extremes --case 41")
    checking.add_argument("plugin", metavar="FILE", help="the file or installed module")
    checking.add_argument("--only", metavar="CHECK", help="one check only")
    checking.add_argument("--case", type=int, metavar="N", help="with --only: this case only")
    checking.add_argument("--thorough", action="store_true", help="ten times as many cases")

    init = verb("init", "write a commented experiment file to start from", INIT_EXAMPLES)
    add, out = init.add_argument, Path("experiment.toml")
    add("--out", type=Path, default=out, metavar="FILE", help="file to write (default: experiment.toml)")
    add("--overlay", metavar="KIND-or-FILE", help="a kind of `coverlay list topologies`, or your own file")
    add("--brokers", metavar="N", help="brokers of a generated overlay")
    add("--workload", metavar="KIND", help="a kind of `coverlay list workloads`")
    add("--subscriptions", metavar="N-or-FILE", help="how many, or your own file")
    add("--events", metavar="N-or-FILE", help="how many, or your own file")
    add("--strategy", metavar="NAME", help="a strategy of `coverlay list strategies`")
    add(
        "--epsilon",
        type=float,
        metavar="E",
        help="ε: share of the search region's volume left out, or (density) of covers missed",
    )
    _settings_option(init)
    add("--force", action="store_true", help="replace an existing file")

    intact = "are the traces still as written? recomputes digests and trace hashes"
    verb("verify", intact, "verify out/demo", folder=True)

    explain = verb("explain", "why an event did or did not reach a subscriber, hop by hop", EXPLAIN_EXAMPLES, True)
    explain.add_argument("--event", type=int, required=True, metavar="E", help="the event's number")
    explain.add_argument("--subscription", metavar="S", help="a number or id: follow the event towards it")
    explain.add_argument("--run", metavar="ID", help="which run of a sweep (default: the first)")

    compare = verb("compare", "what differs between results, paired by seed, with intervals", COMPARE_EXAMPLES)
    add = compare.add_argument
    add("results", nargs="+", metavar="[NAME=]DIR", help="output folders; the first is the baseline")
    add("--by", metavar="KEY", help="compare the values of one swept key inside one folder")
    add("--metrics", metavar="LIST", help="metrics to show, separated by commas (default: those that usually matter)")
    equal = "status 1 if a run differs: in its trace (default), or in a metric"
    add(EXPECT_EQUAL, nargs="?", choices=KINDS_OF_EQUAL, const="traces", help=equal)
    add("--out", type=Path, default=Path("out/compare"), metavar="DIR", help="for compare.csv and compare.html")

    said = "charts for a paper, one file per chart and format, with captions"
    figures = verb("figures", said, "figures out/demo --format pdf,svg --width 84mm --out paper", folder=True)
    add = figures.add_argument
    add("--format", default="pdf,svg,png", metavar="LIST", help="of pdf, svg, png, csv (default: pdf,svg,png)")
    add("--width", default="3.3in", metavar="W", help="of a column, e.g. 84mm (default: 3.3in)")
    add("--metrics", metavar="LIST", help="metrics to draw, separated by commas (default: those that answer)")
    add("--out", type=Path, default=Path("figures"), metavar="DIR", help="folder to write (default: figures)")

    tables = verb("tables", "routing tables: which subscription is held where, and why", TABLES_EXAMPLES, folder=True)
    tables.add_argument("--run", metavar="ID", help="which run of a sweep (default: the first)")
    tables.add_argument("--broker", metavar="NAME", help="entries of one broker (default: counts of every broker)")
    tables.add_argument("--subscription", metavar="S", help="a number or id: where it is, and why not elsewhere")
    tables.add_argument("--at", type=float, metavar="TIME", help="at this simulated time in ms (default: at the end)")
    tables.add_argument("--out", type=Path, metavar="FILE", help="write them all, to a .csv or .parquet file")
    return top


def _run_options(command: argparse.ArgumentParser, out: str | None, otherwise: str = "out/NAME") -> None:
    add, folder = command.add_argument, f"output folder (default: {out or otherwise})"
    add("--out", type=_folder, default=out and Path(out), metavar="DIR", help=folder)
    _settings_option(command)
    cores, jobs = os.cpu_count() or 1, "runs at the same time (default: all cores)"
    add("--jobs", type=_positive, default=cores, metavar="N", help=jobs)
    add("--spark", metavar="MASTER", help="simulate and aggregate on this Spark cluster")
    add("--force", action="store_true", help="run even what is predicted to be too large")
    add("--resume", action="store_true", help="keep the runs that are complete already")
    add("--wide", action="store_true", help=WIDE)
    _plugin_option(command)


def _settings_option(command: argparse.ArgumentParser) -> None:
    said = "change a setting, e.g. covering.epsilon=0.1; may be repeated"
    command.add_argument("--set", action="append", default=[], dest="settings", metavar="key=value", help=said)


def _plugin_option(command: argparse.ArgumentParser) -> None:
    said = "a file or installed module with methods of your own (docs/plugins.md); may be repeated"
    command.add_argument("--plugin", action="append", default=[], dest="plugins", metavar="FILE", help=said)


def _number(text: str, kind: type[float], least: float, most: float, allowed: str) -> float:
    with suppress(ValueError):
        if least <= (value := kind(text)) <= most:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} must be {allowed}")


def _share(text: str) -> float:
    return _number(text, float, 0, 1, "a number from 0 to 1")


def _folder(text: str) -> Path:
    if "://" not in text:
        return Path(text)
    from broker.trace.disk import folder_at  # loads numpy, which --help must not

    try:
        return folder_at(text)
    except CoverlayError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _positive(text: str) -> float:
    return _number(text, int, 1, math.inf, "a whole number of at least 1")


def main(arguments: Sequence[str] | None = None) -> int:
    known, words = parser(), sys.argv[1:] if arguments is None else [*arguments]
    for number, word in enumerate(words):  # alone it may stand before the folders too
        if word == EXPECT_EQUAL and words[number + 1 :][:1] not in [[kind] for kind in KINDS_OF_EQUAL]:
            words[number] = f"{EXPECT_EQUAL}=traces"
    options = known.parse_args(words)
    if options.verb is None:
        known.print_help()
        return 0
    # Without a handler Python would print what libraries log, e.g. stack traces when Spark is interrupted.
    logging.getLogger().addHandler(logging.NullHandler())
    with _sigterm_as_ctrl_c() as terminated:
        return _status_of(options, terminated)


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[list[int]]:
    """`kill`, `timeout` and a system that shuts down end a command as Ctrl-C does; the list then holds the signal.

    What else Ctrl-C does at that moment, e.g. cancel Spark's jobs, is done too. A shell may have told a command in the
    background to ignore Ctrl-C; this it does not ignore.
    """
    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)
        on_ctrl_c = signal.getsignal(signal.SIGINT)
        if callable(on_ctrl_c):
            on_ctrl_c(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only there can signals be handled
        yield received
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def _status_of(options: argparse.Namespace, terminated: list[int]) -> int:
    try:
        refuse_other_systems()
        if options.verb in COMPILING:
            from sim.cli.compiling import announce  # imports numba, as these verbs will; the others must not

            announce()
        status: int = options.verb_function(options)
        return status
    except CoverlayError as error:
        print(f"coverlay: {error}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, SystemError) as error:
        # A kernel that is interrupted while it is called raises SystemError.
        if isinstance(error, SystemError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        print(f"coverlay: stopped; {_kept(options)}", file=sys.stderr)
        return 128 + (terminated[0] if terminated else signal.SIGINT)  # as shells report it
    except BrokenPipeError:  # `coverlay list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        print(f"coverlay: {quoted(error.filename)} is too long for a path", file=sys.stderr)
        return 2


def _kept(options: argparse.Namespace) -> str:
    """What a command that was stopped leaves behind."""
    if "resume" not in options:  # only verbs that can be resumed have the option; the others leave what was there
        return "nothing was changed"
    if options.out is None or not any((*options.out.glob("runs/run=*"), *options.out.glob("*/points-*.jsonl"))):
        return "nothing was finished"
    return "finished runs are kept, --resume goes on from there"


if __name__ == "__main__":
    sys.exit(main())
