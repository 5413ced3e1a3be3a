"""Charts for a paper: one file per chart and format, at column width, with readable type; no browser, no network.

A chart per metric that answers and differs: a row per setting with its 95 % interval, or lines along a swept number.
Of a study of approximate covering the pictures of its page (study_figures.py), unless metrics are asked for.
The captions beside them say what is shown, how many seeds, and which settings are the same everywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import altair as alt
import pandas as pd

from analysis.report.answer import differing
from analysis.report.effects import Effects, lacks
from analysis.report.facts import facts
from analysis.report.numbers import number_text, value_text
from analysis.report.page import begin
from analysis.report.page_data import bounded
from analysis.report.print_style import COLOURS, FIT, LETTER, TYPE, Figure, printed
from analysis.report.study import is_study
from analysis.report.study_figures import study_figures
from analysis.report.summary import Summary
from analysis.report.words import title
from analysis.spark.metrics import CATALOGUE, metric
from broker.trace.disk import CURE, writing
from coverlay import CoverlayError, quoted

FORMATS = ("pdf", "svg", "png", "csv")
# A drawing's unit is a point, as in PDF; SVG files say so, and PNG files have PPI pixels per inch.
INCH = 72.0
POINTS = {"in": INCH, "cm": INCH / 2.54, "mm": INCH / 25.4, "pt": 1.0}
PPI = 300
ROW, HEIGHT = 13, 115  # points per setting with a name of one line; of a chart with lines
BROKEN = "split(datum.label, '\\n')"  # names are broken between words, never cut
BESIDE = 0.012  # of the axis: between the intervals of two series
NARROWEST, WIDEST = 1.0, 20.0  # inches
FAR = 50.0  # from this ratio on, a logarithmic scale
MOST_LINES = 6  # in one picture
MOST_NAMES = 3  # of lines that are drawn as one
NEAR = 0.01  # of the axis: lines that close hide each other
AXIS, GAP = 46.0, 8.0  # points beside panels, and between them


def points(width: str) -> float:
    """3.3in, 84mm, 8.4cm or 240pt in points."""
    found = re.fullmatch(r"([\d.]+) *(in|cm|mm|pt)", width)
    size = float(found[1]) * POINTS[found[2]] if found and found[1].count(".") < 2 else 0.0
    if not NARROWEST <= size / INCH <= WIDEST:
        raise CoverlayError(
            f"width is {quoted(width)}; give a number with in, cm, mm or pt, from {NARROWEST:g} to {WIDEST:g} inches"
        )
    return size


def write_figures(
    summary: Summary, folder: Path, formats: Sequence[str] = FORMATS, width: str = "3.3in", metrics: Sequence[str] = ()
) -> list[Path]:
    """Write every chart in every format, and captions.txt; returns the paths."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise CoverlayError(f"format {quoted(', '.join(unknown))} is not one of {', '.join(FORMATS)}")
    size = points(width)
    begun = begin(summary)
    effects = begun.effects
    if is_study(begun.cases) and not metrics:
        charts = study_figures(begun.cases, size)
    else:
        wanted = [metric(name).name for name in metrics] or differing(effects, begun.answer.metrics)
        charts = [_figure(effects, name, data, size) for name in wanted if len(data := _data(effects, name))]
    if not charts:
        raise CoverlayError(f"nothing to draw: no metric that answers differs between the settings of {summary.out}")
    found = []
    with writing(folder, f"what was written before is kept: {CURE}"):
        folder.mkdir(parents=True, exist_ok=True)
        for chart in charts:
            for kind in formats:
                path = folder / f"{chart.name}.{kind}"
                _write(path, kind, chart)
                found.append(path)
        captions = folder / "captions.txt"
        captions.write_text("\n\n".join(chart.caption for chart in charts) + "\n", encoding="utf-8")
    return [*found, captions]


def _figure(effects: Effects, name: str, data: pd.DataFrame, width: float) -> Figure:
    shown = data.drop(columns=["series", "text"]).dropna(axis=1, how="all")
    return Figure(name.replace("_", "-"), _chart(effects, name, data, width), shown, _caption(effects, name, data))


def _data(effects: Effects, name: str) -> pd.DataFrame:
    """A row per setting: its name, its level of the swept number, mean and interval."""
    summary, along = effects.summary, _along(effects)
    rows = []
    for point in summary.order:
        value = bounded(summary.value(point, name), name)
        if value["mean"] != value["mean"] or lacks(summary.labels(point), name):
            continue
        x = json.loads(along.of[point])[along.keys[0]] if along else None
        row = {"setting": effects.title(point), "series": effects.title(point, along) if along else "", "x": x}
        rows.append({**row, **value, "text": number_text(value["mean"], CATALOGUE[name].unit)})
    return pd.DataFrame(rows)


def _along(effects: Effects) -> Any:
    """The swept number with most values, for lines; None for a row per setting."""
    numbers = [factor for factor in effects.factors if len(factor.numbers) > 2]
    return max(numbers, key=lambda factor: len(factor.levels), default=None)


def _chart(effects: Effects, name: str, data: pd.DataFrame, width: float) -> dict[str, Any]:
    unit, along = CATALOGUE[name].unit, _along(effects)
    log = unit != "share" and _is_far(data["mean"])
    short = alt.Undefined if unit == "share" else "format(datum.value, datum.value < 1000 ? '~g' : '~s')"
    label = title(name) if unit in title(name) or unit == "share" else f"{title(name)}, {unit}"
    tens = [10.0**i for i in range(-12, 13) if data["mean"].min() / 2 <= 10.0**i <= 2 * data["mean"].max()]
    ticks = tens if log and len(tens) > 1 else alt.Undefined
    quantity = {
        "title": label,
        "scale": alt.Scale(type="log", nice=True) if log else alt.Scale(zero=True, nice=True),
        "axis": alt.Axis(
            format="%" if unit == "share" else alt.Undefined, labelExpr=short, tickCount=4, values=ticks, grid=True
        ),
    }
    shown = data.assign(low=data["low"].clip(lower=data["mean"].min() / 10)) if log else data
    chart = _rows(shown, quantity, width) if along is None else _lines(_as_one(shown), along.title, quantity, width)
    return printed(chart)


def _is_far(numbers: pd.Series[float]) -> bool:
    return bool(0 < FAR * numbers.min() < numbers.max())


def _rows(shown: pd.DataFrame, quantity: dict[str, Any], width: float) -> alt.LayerChart:
    """A row per setting: its mean and interval."""
    broken = _broken(shown["setting"], 0.5 * width)
    row = ROW + (max(name.count("\n") for name in broken)) * TYPE
    axis = alt.Axis(labelExpr=BROKEN, labelLimit=0, ticks=False, domain=False)
    base = alt.Chart(shown.assign(setting=broken)).encode(y=alt.Y("setting:N", sort=None, title=None, axis=axis))
    intervals = base.mark_rule(color=COLOURS[0]).encode(x=alt.X("low:Q", **quantity), x2="high:Q")
    points = base.mark_point(filled=True, size=16, color=COLOURS[0]).encode(x=alt.X("mean:Q", **quantity))
    layers = [intervals, points] if shown["low"].notna().any() else [points]
    return alt.layer(*layers).properties(width=width, height=row * len(shown), autosize=FIT)


def _lines(shown: pd.DataFrame, swept: str, quantity: dict[str, Any], width: float) -> alt.LayerChart | alt.FacetChart:
    """A line per series, told apart by colours if they are few, else each in a panel of its own."""
    several, panels = shown["series"].nunique() > 1, shown["series"].nunique() > MOST_LINES
    far = _is_far(shown["x"])
    scale = alt.Scale(type="log") if far else alt.Scale(zero=True, nice=True)
    x = alt.X("at:Q", title=swept, scale=scale, axis=alt.Axis(values=sorted({*shown["x"]}), grid=False, format="~s"))
    room = (width - AXIS - GAP) / 2 if panels else width - AXIS
    # Intervals at the same place would hide each other.
    lines = [*dict.fromkeys(shown["series"])]
    apart = 0.0 if panels or shown["low"].isna().all() else BESIDE
    moved = [apart * (lines.index(name) - (len(lines) - 1) / 2) for name in shown["series"]]
    end = float(shown["x"].max())
    at = [x * (end / shown["x"].min()) ** by if far else x + by * end for x, by in zip(shown["x"], moved, strict=True)]
    shown = shown.assign(series=_broken(shown["series"], room), at=at)
    legend = alt.Legend(orient="top", columns=1, labelLimit=0, labelExpr=BROKEN)
    named = alt.Color("series:N", sort=None, title=None, scale=alt.Scale(range=COLOURS), legend=legend)
    line = alt.Chart(shown).encode(x=x, color=named if several and not panels else alt.value(COLOURS[0]))
    mean = line.encode(y=alt.Y("mean:Q", **quantity))
    dash = alt.StrokeDash("series:N", sort=None, legend=None) if several and not panels else alt.value([1, 0])
    layers = [mean.mark_line(strokeWidth=1).encode(strokeDash=dash), mean.mark_point(filled=True, size=12)]
    if shown["low"].notna().any():
        layers.insert(0, line.mark_rule().encode(y=alt.Y("low:Q", **quantity), y2="high:Q"))
    if not panels:
        return alt.layer(*layers).properties(width=width, height=HEIGHT, autosize=FIT)
    header = alt.Header(title=None, labelLimit=0, labelExpr=BROKEN)
    each = alt.layer(*layers).properties(width=room, height=HEIGHT / 2)
    return each.facet(facet=alt.Facet("series:N", sort=None, header=header), columns=2, spacing=GAP)


def _broken(names: pd.Series[str], width: float) -> list[str]:
    """Names in lines that are at most so wide if their words are; a key and its number stay together."""
    whole = (re.sub(r" (?=[\d=])", "\u00a0", name) for name in names)
    return [fill(name, int(width / LETTER), break_long_words=False, break_on_hyphens=False) for name in whole]


def _as_one(data: pd.DataFrame) -> pd.DataFrame:
    """Lines that hide each other are one, named by the first or few of them; captions have all names."""
    parts = []
    for names in _hidden(data):
        more = len(names) // 2  # names and signs take turns
        called = "".join(names) if more < MOST_NAMES else f"{names[0]} and {more} like it"
        parts.append(data[data["series"] == names[0]].assign(series=called))
    return pd.concat(parts, ignore_index=True)


def _hidden(data: pd.DataFrame) -> list[list[str]]:
    """The lines in groups that hide each other: name, = if means are equal or ≈ if none are NEAR apart, name, …"""
    near = NEAR * float(data["mean"].max() - min(0.0, data["mean"].min()))
    lines = {
        str(name): dict(zip(mine["x"], mine["mean"], strict=True)) for name, mine in data.groupby("series", sort=False)
    }
    groups: list[list[str]] = []
    for name, mine in lines.items():
        for names in groups:
            first = lines[names[0]]
            if first.keys() == mine.keys() and all(abs(first[x] - mine[x]) <= near for x in mine):
                names += [" = " if first == mine else " ≈ ", name]
                break
        else:
            groups.append([name])
    return groups


def _write(path: Path, kind: str, chart: Figure) -> None:
    import vl_convert

    version = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
    if kind == "csv":
        chart.data.to_csv(path, index=False)
    elif kind == "svg":
        drawing = vl_convert.vegalite_to_svg(chart.spec, vl_version=version)
        path.write_text(re.sub(r' (width|height)="([\d.]+)"', r' \1="\2pt"', drawing, count=2), encoding="utf-8")
    elif kind == "pdf":
        path.write_bytes(vl_convert.vegalite_to_pdf(chart.spec, vl_version=version))
    else:
        path.write_bytes(vl_convert.vegalite_to_png(chart.spec, vl_version=version, ppi=PPI))


def _caption(effects: Effects, name: str, data: pd.DataFrame) -> str:
    """What a chart shows: metric, seeds, intervals, settings."""
    summary, known = effects.summary, CATALOGUE[name]
    seeds = sorted({int(seed) for seed in summary.runs["seed"]})
    several = len(seeds) > 1
    means = (
        f"Means over {len(seeds)} seeds ({', '.join(map(str, seeds))}) with 95 % t-intervals" if several else "One seed"
    )
    varied = ". ".join(f"Varied, {factor.title}: {'; '.join(_levels(factor))}" for factor in effects.factors)
    without = [effects.title(point) for point in summary.order if lacks(summary.labels(point), name)]
    none = f" Left out, because there are none: {'; '.join(without)}." if without else ""
    hidden = ["".join(names) for names in _hidden(data) if len(names) > 1] if _along(effects) else []
    one = f" Drawn as one line, = equal, ≈ within {100 * NEAR:g} % of the axis: {'; '.join(hidden)}." if hidden else ""
    moved = " Marks of several lines are a little beside their value." if several and _along(effects) else ""
    return f"{name}: {known.definition} {means}. {facts(summary)}. {varied or 'Nothing is varied'}.{one}{moved}{none}"


def _levels(factor: Any) -> list[str]:
    return [value_text(number) for number in factor.numbers] or [factor.names[level] for level in factor.levels]
