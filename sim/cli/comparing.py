"""`coverlay compare` and `coverlay figures`: results side by side, and charts for a paper."""

from __future__ import annotations

import argparse
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from coverlay import CoverlayError, quoted
from sim.cli.terminal import complain, print_table, say

if TYPE_CHECKING:
    from analysis.report.compare import Comparison


def compare(options: argparse.Namespace) -> int:
    from analysis.report.compare import compare_by, compare_results
    from analysis.report.summary import load
    from broker.trace.disk import CURE, writing

    named = [_named(text) for text in options.results]
    metrics = [name.strip() for name in options.metrics.split(",")] if options.metrics else []
    if options.by is not None:
        if len(named) != 1 or options.expect_equal:
            many = "--expect-equal" if options.expect_equal else f"{len(named)} folders"
            raise CoverlayError(f"--by compares settings of one folder, {many} does not fit: give one folder alone")
        found = compare_by(load(named[0][1]), options.by, metrics)
    else:
        names = [name for name, _ in named]
        if twice := [name for name in names if names.count(name) > 1]:
            raise CoverlayError(
                f"two results have the same name, {quoted(twice[0])}: write NAME=FOLDER for one of them"
            )
        found = compare_results({name: load(folder) for name, folder in named}, metrics)
    for line in found.lines():
        say(line)
    print_table(found.headers(), found.rows(), whole=2)
    with writing(options.out, f"the results are as they were: {CURE}"):
        options.out.mkdir(parents=True, exist_ok=True)
        found.table.to_csv(options.out / "compare.csv", index=False)
        _write_page(found, options.out / "compare.html")
    say(f"all metrics: {options.out / 'compare.csv'}; page: {options.out / 'compare.html'}")
    if options.expect_equal and (first := found.first_difference.get(options.expect_equal)):
        complain(f"not equal: {first}", style="red")
        return 1
    return 0


def _named(text: str) -> tuple[str, Path]:
    """NAME=FOLDER, or a folder, which is then its own name."""
    name, equals, folder = text.partition("=")
    if text.startswith("="):
        raise CoverlayError(f"{quoted(text)} has no name: write NAME=FOLDER, or the folder alone")
    return (name, Path(folder)) if equals and not Path(text).exists() else (text, Path(text))


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{names} · Coverlay</title><style>{css}</style></head>
<body><main style="padding-top: 1.2rem">
<div class="bar"><h1>{names}</h1><button id="theme" type="button">Dark</button></div><ul>{notes}</ul>
<div class="scroll first"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></main>
<script>{theme}</script></body></html>
"""


def _write_page(found: Comparison, path: Path) -> None:
    from analysis.report.assets import asset

    headers = found.headers()
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in headers)

    def cell(number: int, text: str) -> str:
        """Numbers, the last two columns, stay in one line; on a phone a cell is a line with its column's name."""
        kind = ' class="num"' if number >= len(headers) - 2 else ""
        return f'<td{kind} data-name="{escape(headers[number])}">{escape(text)}</td>'

    body = "".join(f"<tr>{''.join(cell(*one) for one in enumerate(row))}</tr>" for row in found.rows())
    notes = "".join(f"<li>{escape(line)}</li>" for line in found.lines())
    names, look = escape(found.title), {"css": asset("report.css"), "theme": asset("theme.js")}
    path.write_text(PAGE.format(names=names, **look, notes=notes, head=head, body=body), encoding="utf-8")


def figures(options: argparse.Namespace) -> int:
    from analysis.report.figures import write_figures
    from analysis.report.summary import load

    formats, metrics = (
        [name.strip() for name in given.split(",")] if given else [] for given in (options.format, options.metrics)
    )
    for path in write_figures(load(options.folder), options.out, formats, options.width, metrics):
        say(str(path))
    return 0
