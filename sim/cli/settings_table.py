"""The table of settings that a sweep ends with: it fits the terminal, and no number is ever shortened.

A column per factor and as many of the metrics that answer as fit, at most MOST; what is the same in every setting is a
line above it. All metrics, if they are asked for, are as many tables as it takes. The names of settings may be broken
into lines, numbers may not.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from sim.cli.terminal import OUT, say

NARROW = 100  # columns that a table takes at most, unless all are asked for
MOST = 6  # metrics
GAP = 2  # columns between two columns
LEAST_NAME = 16  # columns to which the name of a setting is broken


def print_settings(begun: Any, points: Sequence[str], wide: bool) -> None:
    from analysis.report.shown_settings import left_out
    from analysis.report.table import alike, answering, table, table_metrics

    effects, metrics = begun.effects, begun.answer.metrics
    every = table_metrics(effects.summary, metrics)
    answers, same = answering(effects, metrics)[:MOST], alike(effects, metrics)
    if same and not wide:
        say(same)
    shown = table(effects, every if wide else answers or metrics[:MOST], points)
    names = sum(column.metric is None for column in shown.columns)
    limit = OUT.width if sys.stdout.isatty() else sys.maxsize if wide else NARROW
    blocks = _blocks(shown, names, limit if wide else min(limit, NARROW))
    if answers or wide or not same:  # else the line has said it all
        for columns in blocks if wide else blocks[:1]:
            _print(shown, names, columns, limit)
    missing = 0 if wide else len(every) - (len(blocks[0]) - names)
    if left := left_out(effects.summary, points):
        say(left)
    more = f"{missing} more columns with --wide. " if missing > 0 else ""
    say(
        f"{more}In {effects.summary.out / 'results'}: summary.csv (per setting: metric, n, mean, low, high), "
        "run_metrics.csv (per run), differences.csv (per setting and factor, paired)"
    )


def _header(title: str) -> list[str]:
    """In two lines if it has several words, so that columns are as narrow as their numbers."""
    words = title.split(" ")
    cut = min(range(1, len(words)), key=lambda i: max(len(" ".join(words[:i])), len(" ".join(words[i:]))), default=0)
    return [" ".join(words[:cut]), " ".join(words[cut:])] if cut else [title]


def _width(shown: Any, column: int) -> int:
    lines = [*_header(shown.headers[column]), *(row[column] for row in shown.rows)]
    return max(map(len, lines))


def _blocks(shown: Any, names: int, limit: int) -> list[list[int]]:
    """The columns of one table after the other: those of names, and as many metrics as fit beside them."""
    rest = list(range(names, len(shown.columns)))
    blocks = [_fitting(shown, names, rest, limit)]
    while rest := rest[len(blocks[-1]) - names :]:
        blocks.append(_fitting(shown, names, rest, limit))
    return blocks


def _fitting(shown: Any, names: int, metrics: Sequence[int], limit: int) -> list[int]:
    """The columns of names, and the first metrics that fit beside them; at least one."""
    wanted = [_width(shown, column) for column in range(names)]
    least = sum(min(width, LEAST_NAME) + GAP for width in wanted)
    # Whole names if most of the metrics fit beside them, else broken ones.
    for room in (limit - sum(wanted) - GAP * names, limit - least):
        columns = list(range(names))
        for column in metrics:
            room -= _width(shown, column) + GAP
            if room < -GAP and len(columns) > names:
                break
            columns.append(column)
        if len(columns) == names + len(metrics):
            break
    return columns


def _print(shown: Any, names: int, columns: Sequence[int], limit: int) -> None:
    widths = {column: _width(shown, column) for column in columns}
    numbers = sum(widths[column] + GAP for column in columns[names:])
    if sum(widths[column] + GAP for column in range(names)) + numbers > limit:
        widths |= _shared({column: widths[column] for column in columns[:names]}, limit - numbers - GAP * names)
    # With a width of its own rich does not make columns narrower to fit the terminal, which would cut numbers.
    width = sum(widths.values()) + GAP * (len(widths) - 1)
    printed = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0), width=width)
    for column in columns:
        printed.add_column(
            "\n".join(_header(shown.headers[column])),
            justify="right" if shown.columns[column].numeric else "left",
            width=widths[column],
            overflow="fold",
            no_wrap=column >= names,
        )
    for row in shown.rows:
        printed.add_row(*(row[column].replace("[", "\\[") for column in columns))
    OUT.print(printed, crop=False)


def _shared(widths: dict[int, int], room: int) -> dict[int, int]:
    """Columns of names get what they need, the widest what is left; none less than LEAST_NAME of it."""
    found: dict[int, int] = {}
    for left, column in zip(range(len(widths), 0, -1), sorted(widths, key=lambda column: widths[column]), strict=True):
        found[column] = min(widths[column], max(LEAST_NAME, room // left))
        room -= found[column]
    return found
