"""`coverlay compare` and `coverlay figures`: results side by side, and charts for a paper."""

from __future__ import annotations

import argparse
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from coverlay import CoverlayError
from sim.cli.terminal import complain, print_table, say

if TYPE_CHECKING:
    from analysis.report.compare import Comparison


def compare(options: argparse.Namespace) -> int:
    from analysis.report.compare import compare_by, compare_results
    from analysis.report.numbers import and_all
    from analysis.report.summary import load

    named = [_named(text) for text in options.results]
    metrics = [name.strip() for name in options.metrics.split(",")] if options.metrics else []
    if options.by is not None:
        if len(named) != 1 or options.expect_equal:
            raise CoverlayError("--by compares settings of one folder: give one folder, without --expect-equal")
        found = compare_by(load(named[0][1]), options.by, metrics)
    else:
        if len({name for name, _ in named}) < len(named):
            raise CoverlayError("two results have the same name: write NAME=FOLDER")
        found = compare_results({name: load(folder) for name, folder in named}, metrics)
    if options.by is None:
        for name, folder in named:
            say(f"{name}: {folder}")
    else:
        say(f"{options.by}: {and_all(found.names[1:])} against {found.names[0]}")
    for line in found.lines():
        say(line)
    print_table(found.headers(), found.rows(), whole=2)
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

    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in found.headers())
    # Numbers stay in one line, the table scrolls.
    rows = (
        [*(f"<td>{escape(cell)}</td>" for cell in names), *(f'<td class="num">{escape(cell)}</td>' for cell in numbers)]
        for names, numbers in ((row[:-2], row[-2:]) for row in found.rows())
    )
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
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
