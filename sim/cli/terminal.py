"""Results on standard output; progress on standard error, as a bar on a terminal or in a notebook with ipywidgets, and
as a line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from rich import progress as bars
from rich.console import Console
from rich.table import Table

EVERY = 10.0  # seconds between two lines where there is no terminal
PIPE_WIDTH = 320  # columns when the output is not a terminal: tables in files and logs stay unbroken
OUT = Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, soft_wrap=not sys.stdout.isatty())
ERR = Console(stderr=True, soft_wrap=True)


def say(line: str) -> None:
    OUT.print(line, markup=False, highlight=False)


def complain(line: str, style: str | None = None) -> None:
    ERR.print(line, style=style, markup=False, highlight=False)


def print_table(headers: list[str], rows: list[list[str]], whole: int = 0) -> None:
    """The last `whole` columns are never broken."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, header in enumerate(headers):
        table.add_column(header, no_wrap=number >= len(headers) - whole, overflow="fold")
    for row in rows:
        table.add_row(*(cell(value).replace("[", "\\[") for value in row))
    OUT.print(table)


def cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class _Lines(threading.Thread):
    """Prints progress at regular intervals."""

    def __init__(self, what: str) -> None:
        super().__init__(daemon=True)
        self.what, self.now, self._began, self._ended = what, "", time.monotonic(), threading.Event()

    def run(self) -> None:
        while not self._ended.wait(EVERY):
            said = f"{self.what}: {self.now}" if self.now else self.what
            ERR.print(f"{said} ({time.monotonic() - self._began:.0f} s)", markup=False, highlight=False)

    def end(self) -> None:
        self._ended.set()
        self.join()


@contextmanager
def _shown(what: str, *columns: bars.ProgressColumn) -> Iterator[tuple[bars.Progress, bars.TaskID, _Lines]]:
    # Without ipywidgets rich would warn at every step of a bar in a notebook: plain lines there.
    lines, drawn = _Lines(what), ERR.is_terminal or (ERR.is_jupyter and find_spec("ipywidgets") is not None)
    with bars.Progress(*columns, console=ERR, disable=not drawn, transient=True) as shown:
        if not drawn:
            lines.start()
        try:
            yield shown, shown.add_task(what, total=None, said=""), lines
        finally:
            if not drawn:
                lines.end()


@contextmanager
def progress(what: str) -> Iterator[Callable[[float, int], None]]:
    """A bar with the share that is done and the remaining time; `done` may count parts of runs."""
    columns = bars.TextColumn(what), bars.BarColumn(), bars.TextColumn("{task.fields[said]}")
    times = bars.TaskProgressColumn(), bars.TimeElapsedColumn(), bars.TimeRemainingColumn()
    with _shown(what, *columns, *times) as (shown, task, lines):

        def update(done: float, total: int) -> None:
            said = f"{int(done)} of {total} runs"
            lines.now = f"{said}, {100 * done / total:.0f} %" if total else said
            shown.update(task, completed=done, total=total, said=said)

        yield update


@contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner that says what is being done."""
    columns = bars.SpinnerColumn(), bars.TextColumn("{task.description}"), bars.TimeElapsedColumn()
    with _shown(what, *columns) as (shown, task, lines):

        def update(now: str) -> None:
            lines.now = now
            shown.update(task, description=f"{what}: {now}")

        yield update
