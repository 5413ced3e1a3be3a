"""The table and the verdicts of a study in Markdown, written into a text.

A text has a block per study, between `<!-- study NAME -->` and `<!-- end of study -->`; `coverlay report DIR --into
FILE` rewrites the block of the experiment in DIR.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from analysis.report.facts import made
from analysis.report.places import ABOUT_STORES, STORES
from analysis.report.study import Case, places_of
from analysis.report.study_grid import LEGEND, grid
from analysis.report.study_words import by_size, kinds, overall, sensitivity_sentence, share_text
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
    """When, where and what was run; a row per workload and size, a column per place of the index; verdicts."""
    found = grid(cases)
    width = len(found.sizes)
    lines = [f"| workload | exact saves | {' | '.join(found.places)} |", "|---" * (2 + len(found.places)) + "|"]
    few: list[Case] = []
    for _, _, cells in found.rows:
        for number in range(width):
            here = cells[number::width]
            case = next((cases[cell.case] for cell in here if cell.case is not None), None)
            if case is None:
                continue
            if case.nothing:
                few.append(case)
                continue
            texts = [_marked(cell.text, cell.tone) for cell in here]
            lines.append(f"| {case.title} | {share_text(case.away)} | {' | '.join(texts)} |")
    places = f"{LEGEND} Bold: it pays; *: it may pay; these seeds do not settle it."
    nothing = f"Hardly anything to cover: {kinds(few)}." if few else ""
    stores = ABOUT_STORES if any(place in STORES for place in places_of(cases)) else ""
    words = [f"{made(summary)}. {_complete(cases)}", " ".join(filter(None, [places, stores, nothing]))]
    verdicts = [overall(cases), *by_size(cases), sensitivity_sentence(cases)]
    return "\n".join([*map(_broken, words), "", *lines, "", *map(_broken, verdicts), ""])


def _marked(text: str, tone: str) -> str:
    short = text.removeprefix("0") if text.startswith("0.") else text
    return {"pays": f"**{short}**", "maybe": f"{short}*"}.get(tone, short)


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
