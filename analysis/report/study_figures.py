"""The pictures of a study for a paper: saving kept and covers found against cost, a chart per workload and place."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from analysis.report.print_style import COLOURS, FIT, LETTER, TYPE, Figure, printed
from analysis.report.study import Case
from analysis.report.study_pictures import Dot, pictures

HEIGHT = 150  # points
LINE = 1.2 * TYPE  # how high one is
GAP = 4.0  # points between a dot and its name
LOWEST = -0.2  # share that is drawn: of the saving a dear search may keep less than nothing
STEP = 0.2  # of the axis


def study_figures(cases: Sequence[Case], width: float) -> list[Figure]:
    """What the page of the study draws. A picture without a search, or with one alone, is left out."""
    found = []
    for picture in pictures(cases):
        rows = [row for row in picture["rows"] if row["x"] > 0]
        if len(rows) > 1:
            words = re.sub(r"(?<=\d),(?=\d)", "", f"{picture['title']} {picture['case']}").lower()
            name = re.sub(r"[^a-z0-9]+", "-", words).strip("-")
            caption = f"{name}: {picture['title']}, {picture['caption']}"
            data = pd.DataFrame(rows).drop(columns=["label", "kind", "front"])
            found.append(Figure(name, _chart(picture, rows, width), data, caption))
    return found


def _chart(picture: Mapping[str, Any], rows: Sequence[Dot], width: float) -> dict[str, Any]:
    ends = [min(row["xlow"] for row in rows) / 1.5, 1.5 * max(row["xhigh"] for row in rows)]
    x = alt.Scale(type="log", domain=ends, nice=False)
    lowest = STEP * math.floor(min(row["low"] for row in rows) / STEP)
    least = max(LOWEST, min(1 - STEP, lowest))  # also where all keep everything
    y = alt.Scale(domain=[least, 1 + (1 - least) / 10], clamp=True, nice=False)
    short = "datum.value < 1 ? format(datum.value, '~g') : format(datum.value, '~s')"
    axis = {"axis": alt.Axis(labelExpr=short, values=_ticks(*x.domain), grid=False), "title": picture["x"]}
    share = {"axis": alt.Axis(format="%", tickCount=6), "title": picture["y"]}
    colour = alt.Color(
        "series:N",
        sort=None,
        title=None,
        scale=alt.Scale(range=COLOURS),
        legend=alt.Legend(orient="top", columns=1, labelLimit=width),
    )
    base = alt.Chart(_named(rows, x.domain, y.domain, width)).encode(
        x=alt.X("x:Q", scale=x, **axis), y=alt.Y("y:Q", scale=y, **share), color=colour
    )
    measured, theory = (base.transform_filter(f"datum.kind === '{kind}'") for kind in ("measured", "theory"))
    names = [
        base.transform_filter(f"datum.at === '{side}'")
        .mark_text(align=align, dx=dx, dy=dy, fontSize=TYPE - 1)
        .encode(x=alt.X(f"{h}:Q", scale=x, **axis), y=alt.Y(f"{v}:Q", scale=y, **share), text="label:N")
        for side, (h, v, align, dx, dy) in SIDES.items()
    ]
    front = base.transform_filter("datum.front").encode(order="x:Q", color=alt.value("#888"))
    layers = [
        front.mark_line(strokeWidth=4, opacity=0.2),
        measured.mark_line(strokeWidth=1).encode(order="x:Q"),
        theory.mark_line(strokeWidth=1, strokeDash=[4, 3]).encode(order="x:Q"),
        theory.mark_point(shape="diamond", size=16),
        base.mark_rule().encode(x=alt.X("xlow:Q", scale=x, **axis), x2="xhigh:Q"),
        base.mark_rule().encode(y=alt.Y("low:Q", scale=y, **share), y2="high:Q"),
        measured.mark_point(filled=True, size=18, opacity=1),
        *names,
    ]
    return printed(alt.layer(*layers).properties(width=width, height=HEIGHT, autosize=FIT))


# Where a name may be: at which end of the dot's bars, how it is aligned, and how far off it is.
SIDES = {
    "right": ("xhigh", "y", "left", GAP, 0),
    "left": ("xlow", "y", "right", -GAP, 0),
    "above": ("x", "high", "center", 0, -LINE),
    "below": ("x", "low", "center", 0, LINE),
}


def _ticks(least: float, most: float) -> list[float]:
    """1, 2, 5, 10, …; of more than two decades their ends."""
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    steps = (1, 2, 5) if most <= 100 * least else (1,)
    return [step * 10.0**decade for decade in decades for step in steps if least <= step * 10.0**decade <= most]


def _named(rows: Sequence[Dot], x: Sequence[float], y: Sequence[float], width: float) -> pd.DataFrame:
    """With `at`: the side of a dot where its name lies on no dot and on no other name; none if there is no room."""
    inside = 0.86 * width  # the rest is the axis

    def across(value: float) -> float:
        return inside * math.log(value / x[0]) / math.log(x[1] / x[0])

    def down(value: float) -> float:
        return HEIGHT * (y[1] - value) / (y[1] - y[0])

    dots = [(across(row["x"]), down(row["y"])) for row in rows]
    taken = {("dot", i): (h - GAP, v - GAP, h + GAP, v + GAP) for i, (h, v) in enumerate(dots)}
    named = [{**row, "at": ""} for row in rows]
    for i, row in sorted(enumerate(named), key=lambda item: not item[1]["front"]):
        (h, v), long = dots[i], LETTER * len(row["label"])
        right, left = across(row["xhigh"]) + GAP, across(row["xlow"]) - GAP
        above, below = down(row["high"]), down(row["low"])
        boxes = {
            "right": (right, v - LINE / 2, right + long, v + LINE / 2),
            "left": (left - long, v - LINE / 2, left, v + LINE / 2),
            "above": (h - long / 2, above - 1.5 * LINE, h + long / 2, above - LINE / 2),
            "below": (h - long / 2, below + LINE / 2, h + long / 2, below + 1.5 * LINE),
        }
        others = [box for owner, box in taken.items() if owner != ("dot", i)]
        for side, box in boxes.items() if long else ():
            if box[0] > 0 and box[2] < inside and not any(_overlap(box, other) for other in others):
                row["at"], taken["name", i] = side, box
                break
    return pd.DataFrame(named)


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
