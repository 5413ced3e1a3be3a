"""The pictures of a report, as Vega-Lite specifications without data.

Altair builds and validates each of them here; the page's script fills in the data and the axis titles, so that a
menu can show another metric in the same picture. Field names and expressions are fixed: text from files (names of
brokers, values of swept keys) is only ever data, which Vega does not evaluate.
"""

from __future__ import annotations

from typing import Any

import altair as alt

# Placeholders for axis titles, which the page's script replaces.
X_TITLE, Y_TITLE = "__x_title__", "__y_title__"
HEIGHT = 260
LINE = 15  # of text; report.js makes rows as high

Spec = dict[str, Any]


def _layered(*layers: alt.Chart, height: float = HEIGHT) -> Spec:
    spec: Spec = alt.layer(*layers).properties(width="container", height=int(height)).to_dict()
    spec.pop("config", None)  # colours and fonts follow the page's light or dark theme
    return spec


def _rows(name: str = "rows") -> alt.Chart:
    """A chart of the data that the page supplies under this name."""
    return alt.Chart(alt.NamedData(name))


def _legend() -> alt.Legend:
    return alt.Legend(orient="top", columns=3, offset=8)


def _tips(*shown: tuple[str, str] | tuple[str, str, str]) -> list[alt.Tooltip]:
    """Tooltips: field, title, and optionally a number format."""
    return [alt.Tooltip(field, title=title, format=form[0] if form else alt.Undefined) for field, title, *form in shown]


def _series(legend: alt.Legend) -> alt.Color:
    return alt.Color("series:N", title=None, sort=None, legend=legend)


def lines() -> Spec:
    """A metric against a swept number, one line per series, with 95 % intervals.

    Data: x, y, low, high, series, metric, seeds, and label: its number at the end of a line, if lines are numbered.
    A row without x belongs to a series that the swept key does not
    affect (simple routing in a sweep of ε); it is drawn as a dashed line across.
    """
    base = _rows()
    pick = alt.selection_point(name="pick", fields=["series"], bind="legend")
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["y"])
    at = {"title": X_TITLE, "sort": None, "scale": alt.Scale(type="band", padding=0.7)}
    x, right = alt.X("x:N", **at), alt.X("x:N", bandPosition=1, **at)
    beside = alt.XOffset("series:N", sort=None)  # intervals at the same place would hide each other
    y = alt.Y("y:Q", title=Y_TITLE, scale=alt.Scale(zero=True, nice=True))
    colour = _series(_legend())
    dash = alt.StrokeDash("metric:N", title=None, sort=None, legend=None)  # the shapes say it already
    shape = alt.Shape("metric:N", title=None, sort=None, legend=_legend())
    visible = alt.condition(pick, alt.value(1.0), alt.value(0.12))
    named = ("series:N", "series"), ("xText:N", X_TITLE), ("metric:N", "metric")
    tips = _tips(*named, ("text:N", "mean ± 95 %"), ("seeds:Q", "seeds"))
    swept = base.transform_filter("datum.x !== null").encode(x=x, xOffset=beside, y=y, color=colour, opacity=visible)
    whole = base.transform_filter("datum.x === null").encode(y=y, color=colour, opacity=visible, tooltip=tips)
    return _layered(
        # First, because Vega-Lite makes a legend clickable only if the layer that defines it has the selection.
        swept.mark_point(size=60, filled=True).encode(shape=shape, tooltip=tips).add_params(pick, zoom),
        swept.mark_errorbar(ticks=alt.MarkConfig(size=9), thickness=1.5).encode(
            y=alt.Y("low:Q", title=Y_TITLE), y2="high:Q", tooltip=alt.value(None)
        ),
        swept.mark_line(strokeWidth=2).encode(strokeDash=dash, tooltip=tips),
        whole.mark_rule(strokeWidth=2, strokeDash=[6, 4]),
        base.transform_filter("datum.label")
        .mark_text(align="left", dx=8, fontSize=12)
        .encode(x=right, y=y, text="label:N"),
    )


def bounds() -> Spec:
    """Counts per check against ε (of the volume) on a logarithmic scale: measured as dots, theory as dashed lines.

    Data: x, y, series, kind (measured or theory), text.
    """
    base = _rows().encode(
        x=alt.X("x:N", title="ε: share of the volume left out", sort=None, scale=alt.Scale(type="point", padding=0.4)),
        y=alt.Y("y:Q", title="per check", scale=alt.Scale(type="log", nice=True)),
        color=_series(_legend()),
        tooltip=_tips(("series:N", "series"), ("x:N", "ε"), ("text:N", "per check")),
    )
    theory = base.transform_filter("datum.kind === 'theory'")
    measured = base.transform_filter("datum.kind === 'measured'")
    return _layered(
        theory.mark_line(strokeWidth=2, strokeDash=[6, 4]),
        theory.mark_point(shape="diamond", size=50),
        measured.mark_line(strokeWidth=1, opacity=0.5),
        measured.mark_point(size=70, filled=True),
        height=1.4 * HEIGHT,
    )


def rows() -> Spec:
    """A metric with a row per setting or level: its name, and below it a dot, its interval and a bar for each series.

    Data: setting, name (broken into lines; of the first dot of a row), series, metric, lane (where a dot is in it),
    y, low, high, end (where the number is written), text, short, seeds, and zero (where the bar begins).
    """
    pick = alt.selection_point(name="pick", fields=["series"], bind="legend")
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"])
    y = alt.Y("setting:N", title=None, sort=None, axis=None, scale=alt.Scale(type="band", padding=0))
    plain = _rows().encode(
        y=y,
        yOffset=alt.YOffset("lane:N", sort=None, scale=alt.Scale(type="point")),
        opacity=alt.condition(pick, alt.value(1.0), alt.value(0.12)),
        tooltip=_tips(
            ("setting:N", "setting"),
            ("series:N", "series"),
            ("metric:N", "metric"),
            ("text:N", "mean ± 95 %"),
            ("seeds:Q", "seeds"),
        ),
    )
    base = plain.encode(color=_series(_legend()))
    shape = alt.Shape("metric:N", title=None, sort=None, legend=_legend())
    zero = alt.X("zero:Q", title=Y_TITLE)
    number = plain.mark_text(align="left", dx=9, fontSize=12).encode(x=alt.X("end:Q", title=Y_TITLE), text="short:N")
    name = {"align": "left", "baseline": "top", "fontSize": 12, "lineBreak": "\n", "lineHeight": LINE}
    return _layered(
        base.mark_point(size=70, filled=True).encode(x=alt.X("y:Q", title=Y_TITLE), shape=shape).add_params(pick, zoom),
        base.mark_rule(strokeWidth=6, opacity=0.25).encode(x=zero, x2="y:Q", opacity=alt.value(0.25)),
        base.mark_errorbar(ticks=alt.MarkConfig(size=9), thickness=1.5).encode(
            x=alt.X("low:Q", title=Y_TITLE), x2="high:Q", tooltip=alt.value(None)
        ),
        number,
        _rows()
        .transform_filter("datum.name")
        .mark_text(**name)
        .encode(x=alt.value(0), y=alt.Y("setting:N", sort=None, axis=None, bandPosition=0), text="name:N"),
    )


def times() -> Spec:
    """A quantity over simulated time, a line per series, with marks for failures and repairs.

    Data: rows (x, y, series, text, label: its number where a line is highest), marks (x, kind, name).
    """
    x = alt.X("x:Q", title="simulated time, ms", scale=alt.Scale(nice=False))
    base = _rows().encode(
        x=x,
        y=alt.Y("y:Q", title=Y_TITLE, scale=alt.Scale(zero=True, nice=True)),
        color=_series(_legend()),
        tooltip=_tips(("series:N", "series"), ("x:Q", "from, ms", ",.0f"), ("text:N", "here")),
    )
    marks = _rows("marks").encode(
        x=x,
        opacity=alt.condition("datum.kind === 'crash' || datum.kind === 'cut'", alt.value(0.9), alt.value(0.25)),
        tooltip=_tips(("kind:N", "what"), ("name:N", "where"), ("x:Q", "ms", ",.0f")),
    )
    return _layered(
        base.mark_line(strokeWidth=2, interpolate="step-after"),
        marks.mark_rule(strokeWidth=1, strokeDash=[2, 3]),
        base.mark_point(size=18, filled=True, opacity=1),
        base.mark_text(dy=-9, fontSize=12).encode(text="label:N", tooltip=alt.value(None)),
    )


def curve() -> Spec:
    """Metrics against a numeric rate: a line per series, a shape per metric, and levels to compare with.

    Data: rows (x, y, series, metric, text, label as in `lines`), marks (y, name).
    """
    base = _rows().encode(
        x=alt.X("x:Q", title=X_TITLE, scale=alt.Scale(zero=True, nice=False)),
        y=alt.Y("y:Q", title=Y_TITLE, scale=alt.Scale(zero=True, nice=True)),
        color=_series(_legend()),
        tooltip=_tips(("series:N", "series"), ("x:Q", X_TITLE, ","), ("metric:N", "metric"), ("text:N", "mean ± 95 %")),
    )
    levels = _rows("marks").encode(y=alt.Y("y:Q", title=Y_TITLE))
    return _layered(
        base.mark_point(size=60, filled=True, opacity=1).encode(
            shape=alt.Shape("metric:N", title=None, sort=None, legend=_legend())
        ),
        base.mark_line(strokeWidth=2).encode(strokeDash=alt.StrokeDash("metric:N", sort=None, legend=None)),
        base.mark_text(align="left", dx=8, fontSize=12).encode(text="label:N", tooltip=alt.value(None)),
        levels.mark_rule(strokeWidth=1.5, strokeDash=[6, 4]),
        levels.mark_text(align="left", baseline="bottom", dy=-3, fontSize=12).encode(x=alt.value(4), text="name:N"),
    )


# 0.1 as it is, 10,000 as 10k: the usual short form would write 0.1 as 100m.
_LARGE_AND_SMALL = alt.Axis(
    labelExpr="datum.value < 1 ? format(datum.value, '~g') : format(datum.value, '~s')", tickCount=6, grid=False
)


def trade() -> Spec:
    """What is kept against what it costs: a dot per search with 95 % intervals, a line per method, the Pareto front.

    Data: x, y, low, high, xlow, xhigh, series, name, label, text, front, kind (measured or theory), and at: where its
    label has room.
    """
    cost = alt.Scale(type="log", nice=True)
    base = _rows().encode(
        x=alt.X("x:Q", title=X_TITLE, axis=_LARGE_AND_SMALL, scale=cost),
        y=alt.Y("y:Q", title=Y_TITLE, axis=alt.Axis(format="%"), scale=alt.Scale(zero=True, nice=True)),
        color=_series(_legend()),
        tooltip=_tips(("name:N", "search"), ("text:N", "cost and saving")),
    )
    measured, theory = (base.transform_filter(f"datum.kind === '{kind}'") for kind in ("measured", "theory"))
    joined = base.transform_filter("datum.front").encode(order="x:Q", color=alt.value("#888"))
    return _layered(
        joined.mark_line(strokeWidth=5, opacity=0.2),
        measured.encode(order="x:Q").mark_line(strokeWidth=1.5),
        theory.encode(order="x:Q").mark_line(strokeWidth=1.5, strokeDash=[6, 4]),
        theory.mark_point(shape="diamond", size=60),
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", title=Y_TITLE), y2="high:Q"),
        base.mark_rule(strokeWidth=1.5).encode(x=alt.X("xlow:Q", title=X_TITLE, scale=cost), x2="xhigh:Q"),
        measured.mark_point(size=70, filled=True, opacity=1),
        base.transform_filter("datum.at")
        .mark_text(align="left")
        .encode(
            x=alt.X("at.x:Q", title=X_TITLE), y=alt.Y("at.y:Q", title=Y_TITLE), text="label:N", tooltip=alt.value(None)
        ),
        height=1.3 * HEIGHT,
    )
