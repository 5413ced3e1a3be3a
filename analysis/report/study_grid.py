"""A study of many workloads at a glance: a row per workload, a column per number of subscriptions and index place.

A cell has the cost of the cheapest approximation that keeps enough of the saving, as a multiple of exact search's cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.report.numbers import number_text
from analysis.report.places import Place
from analysis.report.study import MAYBE, NOTHING, PAYS, Case, places_of
from analysis.report.study_words import cost_text, share_text, with_half

NOT_RUN, FEW_COVERS, NONE_KEEPS = "", "·", "none"
NEARLY = 0.9  # of exact search's cost: above this an approximation is hardly cheaper
LEGEND = (
    "Cost of the cheapest approximation that keeps enough of the saving, as a multiple of exact search’s; none: none "
    "keeps enough; ·: hardly any covers; empty: not run."
)


@dataclass(frozen=True)
class Cell:
    text: str  # 0.58
    tone: str  # pays, maybe, below (costs at most NEARLY), above, none, nothing
    words: str  # the same as a sentence
    case: int | None  # its number in the study


@dataclass(frozen=True)
class Grid:
    places: tuple[str, ...]  # one group of columns each
    sizes: tuple[int, ...]  # the columns of a group; a single 0 if the number of subscriptions is not swept
    rows: tuple[tuple[str, str, tuple[Cell, ...]], ...]  # workload, what exact covering keeps away, cells


def grid(cases: Sequence[Case]) -> Grid:
    sizes = sorted({case.size for case in cases})
    places = places_of(cases)
    numbered: dict[str, dict[int, tuple[int, Case]]] = {}
    for number, case in enumerate(cases):
        numbered.setdefault(case.workload, {})[case.size] = number, case
    rows = []
    for workload, by_size in numbered.items():
        away = [share_text(by_size[size][1].away) for size in sizes if size in by_size]
        cells = [
            _cell(*by_size[size], place) if size in by_size else Cell(NOT_RUN, "nothing", "not run", None)
            for place in places
            for size in sizes
        ]
        rows.append((workload, away[0] if len(set(away)) == 1 else f"{away[0]} → {away[-1]}", tuple(cells)))
    return Grid(tuple(place.title for place in places), tuple(sizes), tuple(rows))


def _cell(number: int, case: Case, place: Place) -> Cell:
    verdict = case.verdict(place)
    if verdict is None:
        return Cell(NOT_RUN, "nothing", "nothing was compared there", number)
    if verdict.what == NOTHING:
        return Cell(FEW_COVERS, "nothing", f"exact covering keeps {share_text(case.away)} of the messages away", number)
    # `best` of what pays keeps enough with certainty, `keeper` only by its mean.
    row = verdict.best if verdict.what == PAYS else verdict.keeper
    if row is None:
        closest = "" if verdict.best is None else f"; {verdict.best.name} keeps {with_half(verdict.best.kept)}"
        return Cell(NONE_KEEPS, "none", f"none keeps enough{closest}", number)
    ratio = row.ratio[place.title].mean
    tone = {PAYS: "pays", MAYBE: "maybe"}.get(verdict.what, "below" if ratio <= NEARLY else "above")
    exact = f"{verdict.exact.searched_by}'s {cost_text(verdict.exact, place)}"
    words = f"{verdict.what}: {row.name} keeps {with_half(row.kept)} of the saving for {share_text(ratio)} of {exact}"
    return Cell(f"{ratio:.2g}" if ratio < 10 else number_text(ratio, ""), tone, words, number)


def in_text(cases: Sequence[Case]) -> list[tuple[list[str], list[list[str]]]]:
    """A table per place of the index, headers and rows, for a terminal; ✓ where it pays, ? where it may."""
    found, marks = grid(cases), {"pays": " ✓", "maybe": " ?"}
    width, tables = len(found.sizes), []
    for number, place in enumerate(found.places):
        columns = [f"n = {size:,}" if size else "× exact" for size in found.sizes]
        rows = [
            [name, away, *(cell.text + marks.get(cell.tone, "") for cell in cells[number * width :][:width])]
            for name, away, cells in found.rows
        ]
        tables.append(([place, "exact covering saves", *columns], rows))
    return tables
