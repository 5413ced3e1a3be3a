"""The `coverlay` command: arguments in, sentences and exit status out.

Exit status: 0 all well; 1 a run broke a guarantee or failed by our fault; 2 a mistake in what was given.
Each verb is one small function here; the work is done in the modules it calls.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from coverlay import CoverlayError, __version__
from sim import cli_verbs as verbs


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="coverlay",
        description="A laboratory for content-based publish/subscribe broker networks.",
        epilog="Start with `coverlay demo`; then `coverlay list experiments` and `coverlay run NAME`.",
    )
    top.add_argument("--version", action="version", version=f"coverlay {__version__}")
    commands = top.add_subparsers(dest="verb", required=True, metavar="VERB")

    demo = commands.add_parser("demo", help="a small experiment end to end, with table and report")
    _run_options(demo, "out/demo")
    demo.set_defaults(verb_function=verbs.demo)

    run = commands.add_parser("run", help="simulate an experiment, aggregate it on Spark, write the report")
    run.add_argument("experiment", metavar="NAME-or-FILE.toml", help="a shipped experiment or your own file")
    _run_options(run, None)
    run.set_defaults(verb_function=verbs.run)

    analyze = commands.add_parser("analyze", help="only the Spark aggregation of an output folder")
    analyze.add_argument("folder", type=Path, metavar="DIR")
    analyze.add_argument("--master", help="Spark master, e.g. spark://host:7077 (default: this machine)")
    analyze.set_defaults(verb_function=verbs.analyze)

    report = commands.add_parser("report", help="only the report page of an aggregated output folder")
    report.add_argument("folder", type=Path, metavar="DIR")
    report.set_defaults(verb_function=verbs.report)

    reproduce = commands.add_parser("reproduce", help="regenerate a source document's tables and figures")
    reproduce.add_argument("document", choices=[*verbs.documents(), "all"])
    reproduce.add_argument("--quick", action="store_true", help="smaller sizes, a few minutes")
    reproduce.add_argument("--out", type=Path, default=Path("out/reproduce"), metavar="DIR")
    reproduce.set_defaults(verb_function=verbs.reproduce)

    bench = commands.add_parser("bench", help="side-by-side benchmarks, as ratios from one run")
    bench.add_argument("family", choices=[*verbs.benchmarks(), "all"])
    bench.add_argument("--quick", action="store_true", help="smaller sizes")
    bench.add_argument("--json", action="store_true", help="rows as JSON instead of a table")
    bench.set_defaults(verb_function=verbs.bench)

    listing = commands.add_parser("list", help="what there is to choose from")
    listing.add_argument("what", nargs="?", choices=[*verbs.LISTS], help="one list only")
    listing.set_defaults(verb_function=verbs.list_names)

    explain = commands.add_parser(
        "explain", help="why an event did or did not reach a subscriber, hop by hop"
    )
    explain.add_argument("folder", type=Path, metavar="DIR")
    explain.add_argument("--event", type=int, required=True, metavar="E")
    explain.add_argument("--subscription", type=int, metavar="S")
    explain.add_argument("--run", metavar="ID", help="which run of a sweep (default: the first)")
    explain.set_defaults(verb_function=verbs.explain)
    return top


def _run_options(command: argparse.ArgumentParser, out: str | None) -> None:
    command.add_argument("--out", type=Path, default=out and Path(out), metavar="DIR",
                         help=f"output folder (default: {out or 'out/NAME'})")  # fmt: skip
    command.add_argument("--set", action="append", default=[], dest="settings", metavar="key=value",
                         help="change a setting, e.g. covering.epsilon=0.1; may be repeated")  # fmt: skip
    command.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N",
                         help="runs at the same time (default: all cores)")  # fmt: skip
    command.add_argument("--spark", metavar="MASTER", help="simulate and aggregate on this Spark cluster")
    command.add_argument("--resume", action="store_true", help="keep the runs that are complete already")


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        status: int = options.verb_function(options)
        return status
    except CoverlayError as error:
        print(f"coverlay: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("coverlay: stopped; finished runs are kept, --resume goes on from there", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `coverlay list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
