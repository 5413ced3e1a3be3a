"""The table and the verdicts of a study in Markdown, written into a text.

A text has a block per study, between `<!-- study NAME -->` and `<!-- end of study -->`; `coverlay report DIR --into
FILE` rewrites the block of the experiment in DIR.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from analysis.report.facts import made
from analysis.report.study import Case
from analysis.report.study_grid import FEW_COVERS, LEGEND, grid
from analysis.report.study_words import by_size, kinds, overall, sensitivity_sentence
from analysis.report.summary import Summary
from broker.trace.disk import replaced_file, writing
from coverlay import CoverlayError

END = "<!-- end of study -->"
WIDTH = 128  # characters of a line


def write_into(path: Path, summary: Summary, cases: Sequence[Case]) -> None:
    """Replace the study's block in the text."""
    name = str(summary.runs["experiment"].iloc[0])
    begin = f"<!-- study {name} -->"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise CoverlayError(f"--into {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if text.count(begin) != 1 or END not in text.partition(begin)[2]:
        raise CoverlayError(f"{path} has no place for study {name}: a line {begin} and, after it, a line {END}")
    before, _, after = text.partition(begin)
    with writing(path, "it is as it was"), replaced_file(path) as unfinished:
        unfinished.write_text(f"{before}{begin}\n{markdown(summary, cases)}{END}{after.partition(END)[2]}", "utf-8")


def markdown(summary: Summary, cases: Sequence[Case]) -> str:
    """When, where and what was run; a row per workload, with a multiple per place of the index; verdicts."""
    found = grid(cases)
    width = len(found.sizes)
    columns = [f"n = {size:,}" if size else "cost" for size in found.sizes]
    lines = [f"| workload | exact saves | {' | '.join(columns)} |", "|---" * (2 + width) + "|"]
    few: list[Case] = []
    for name, away, cells in found.rows:
        if all(cell.text in ("", FEW_COVERS) for cell in cells):
            few += [case for case in cases if case.workload == name]
            continue
        texts = [[_marked(cell.text, cell.tone) for cell in cells[number::width]] for number in range(width)]
        lines.append(f"| {name} | {away} | {' | '.join(_together(of) for of in texts)} |")
    places = f"Cells: {', '.join(found.places)}. {LEGEND} Bold: it pays; *: it may pay; these seeds do not settle it."
    nothing = f"Hardly anything to cover: {kinds(few)}." if few else ""
    words = [f"{made(summary)}. {_complete(cases)}", f"{places} {nothing}".strip()]
    verdicts = [overall(cases), *by_size(cases), sensitivity_sentence(cases)]
    return "\n".join([*map(_broken, words), "", *lines, "", *map(_broken, verdicts), ""])


def _marked(text: str, tone: str) -> str:
    short = text.removeprefix("0") if text.startswith("0.") else text
    return {"pays": f"**{short}**", "maybe": f"{short}*"}.get(tone, short)


def _together(texts: Sequence[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else ", ".join(texts)


def _complete(cases: Sequence[Case]) -> str:
    sizes: dict[int, list[int]] = {}
    for case in cases:
        sizes.setdefault(case.size, []).append(case.seeds)
    words = []
    for size, seeds in sorted(sizes.items()):
        least, most = min(seeds), max(seeds)
        with_seeds = f"{least} seed{'s' * (least != 1)}" if least == most else f"{least} to {most} seeds"
        words.append(f"{f'n = {size:,}: ' if size else ''}{len(seeds)} workloads with {with_seeds}")
    return f"Complete: {'; '.join(words)}."


def _broken(words: str) -> str:
    """Lines of at most WIDTH characters."""
    return "\n".join(re.findall(rf"\S.{{0,{WIDTH - 1}}}(?=\s|$)", words))
