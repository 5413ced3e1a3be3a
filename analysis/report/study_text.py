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
from analysis.report.study_words import LEGEND, in_text, sensitivity_sentence, verdicts
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
    headers, rows = in_text(cases, "**{}**", "{}*")
    table = [headers, ["---"] * len(headers), *([_short(cell) for cell in row] for row in rows)]
    lines = [f"| {' | '.join(row)} |" for row in table]
    legend = f"{LEGEND} Bold: it pays; *: it may pay; these seeds do not settle it."
    stores = ABOUT_STORES if any(place in STORES for place in places_of(cases)) else ""
    words = [f"{made(summary)}. {_complete(cases)}", " ".join(filter(None, [legend, stores]))]
    said = [f"- {sentence}" for sentence in (*verdicts(cases), sensitivity_sentence(cases))]
    return "\n".join([*map(_broken, words), "", *lines, "", *map(_broken, said), ""])


def _short(cell: str) -> str:
    """.4 for 0.4, with marks around it."""
    return re.sub(r"(?<!\d)0\.(?=\d)", ".", cell)


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
