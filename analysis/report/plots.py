"""The pictures of a report, as Vega-Lite specifications without data.

Each is built and validated by altair here; the page's script fills in the data and the axis titles, so that
a menu can show another metric with the same picture. Field names and expressions are ours and fixed: what
comes from files (names of brokers, values of swept keys) is only ever data, which Vega does not evaluate.
"""

from __future__ import annotations

from typing import Any

import altair as alt

# Put in place of an axis title; the page's script replaces it.
X_TITLE, Y_TITLE = "__x_title__", "__y_title__"
HEIGHT = 260
OVERLAY_HEIGHT = 520

Spec = dict[str, Any]


def _finish(chart: alt.TopLevelMixin) -> Spec:
    spec: Spec = chart.to_dict()
    spec.pop("config", None)  # colours and fonts follow the page's light or dark theme
    return spec


def lines() -> Spec:
    """A metric against a swept key, one line per series, with 95 % intervals.

    Data: x, y, low, high, series, metric, seeds. A row without x belongs to a series that the swept key does not
    concern (simple routing in a sweep of ε); it is a dashed line across.
    """
    base = alt.Chart(alt.NamedData("rows"))
    pick = alt.selection_point(name="pick", fields=["series"], bind="legend")
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["y"])
    x = alt.X("x:N", title=X_TITLE, sort=None, scale=alt.Scale(type="point", padding=0.4))
    y = alt.Y("y:Q", title=Y_TITLE, scale=alt.Scale(zero=True, nice=True))
    colour = alt.Color("series:N", title=None, sort=None, legend=alt.Legend(orient="top", columns=3, offset=4))
    dash = alt.StrokeDash("metric:N", title=None, sort=None, legend=alt.Legend(orient="top", columns=3, offset=4))
    shape = alt.Shape("metric:N", title=None, sort=None, legend=alt.Legend(orient="top", columns=3, offset=4))
    visible = alt.condition(pick, alt.value(1.0), alt.value(0.12))
    tips = [
        alt.Tooltip("series:N", title="series"),
        alt.Tooltip("xText:N", title=X_TITLE),
        alt.Tooltip("metric:N", title="metric"),
        alt.Tooltip("text:N", title="mean ± 95 %"),
        alt.Tooltip("seeds:Q", title="seeds"),
    ]
    swept = base.transform_filter("datum.x !== null").encode(x=x, y=y, color=colour, opacity=visible)
    whole = base.transform_filter("datum.x === null").encode(y=y, color=colour, opacity=visible, tooltip=tips)
    layers = [
        # First, because Vega-Lite makes a legend clickable only if the layer that brings it has the selection.
        swept.mark_point(size=60, filled=True).encode(shape=shape, tooltip=tips).add_params(pick, zoom),
        swept.mark_errorbar(ticks=True, thickness=1.5).encode(
            y=alt.Y("low:Q", title=Y_TITLE), y2="high:Q", tooltip=alt.value(None)
        ),
        swept.mark_line(strokeWidth=2).encode(strokeDash=dash, tooltip=tips),
        whole.mark_rule(strokeWidth=2, strokeDash=[6, 4]),
    ]
    return _finish(alt.layer(*layers).properties(width="container", height=HEIGHT))


def front() -> Spec:
    """Search cost against table size, one dot per ε, the Pareto front joined, the advised one ringed.

    Data: cost, entries, label, name, front (on the Pareto front), advised, text.
    """
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("cost:Q", title="probes per covering check", scale=alt.Scale(zero=True, nice=True)),
        y=alt.Y("entries:Q", title="routing-table entries", scale=alt.Scale(zero=True, nice=True)),
        tooltip=[alt.Tooltip("label:N", title="ε"), alt.Tooltip("text:N", title="cost and size")],
    )
    joined = base.transform_filter("datum.front").mark_line(strokeWidth=1.5, opacity=0.6)
    ring = base.transform_filter("datum.advised").mark_point(size=420, strokeWidth=2.5)
    dots = base.mark_point(size=70, filled=True).encode(
        opacity=alt.condition("datum.front", alt.value(1.0), alt.value(0.35))
    )
    zoom = alt.selection_interval(name="zoom", bind="scales")
    names = base.mark_text(dx=9, dy=-9, align="left").encode(text="name:N", tooltip=alt.value(None))
    chart = alt.layer(joined.encode(order="cost:Q"), dots.add_params(zoom), ring, names)
    return _finish(chart.properties(width="container", height=HEIGHT))


def bounds() -> Spec:
    """Counts per check against ε on a logarithmic scale: measured ones as dots, theory as lines over them.

    Data: x, y, series, kind (measured or theory), text.
    """
    base = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("x:N", title="ε", sort=None, scale=alt.Scale(type="point", padding=0.4)),
        y=alt.Y(
            "y:Q",
            title="per check",
            scale=alt.Scale(type="log", nice=True),
            axis=alt.Axis(format="~e", tickCount=6),
        ),
        color=alt.Color("series:N", title=None, sort=None, legend=alt.Legend(orient="top", columns=2, labelLimit=320)),
        tooltip=[
            alt.Tooltip("series:N", title="series"),
            alt.Tooltip("x:N", title="ε"),
            alt.Tooltip("text:N", title="per check"),
        ],
    )
    theory = base.transform_filter("datum.kind === 'theory'")
    measured = base.transform_filter("datum.kind === 'measured'")
    chart = alt.layer(
        theory.mark_line(strokeWidth=2, strokeDash=[6, 4]),
        theory.mark_point(shape="diamond", size=50),
        measured.mark_line(strokeWidth=1, opacity=0.5),
        measured.mark_point(size=70, filled=True),
    )
    return _finish(chart.properties(width="container", height=int(1.4 * HEIGHT)))


def overlay() -> Spec:
    """The overlay: links as lines as wide as their traffic, brokers as dots coloured by what the menu says.

    Data: links (x, y, x2, y2, routed, control, events, name), nodes (x, y, name, value, entries, processed).
    """
    legend = alt.Legend(orient="top", direction="horizontal", offset=0)  # one for colour and size together
    plain = {"axis": None, "scale": alt.Scale(zero=False, nice=False, padding=18)}
    links = (
        alt.Chart(alt.NamedData("links"))
        .mark_rule()
        .encode(
            x=alt.X("x:Q", **plain),
            y=alt.Y("y:Q", **plain),
            x2="x2:Q",
            y2="y2:Q",
            strokeWidth=alt.StrokeWidth("traffic:Q", legend=None, scale=alt.Scale(range=[1, 7], zero=True)),
            strokeDash=alt.condition("datum.routed", alt.value([1, 0]), alt.value([3, 4])),
            opacity=alt.condition("datum.routed", alt.value(0.55), alt.value(0.3)),
            tooltip=[
                alt.Tooltip("name:N", title="link"),
                alt.Tooltip("latency:Q", title="latency, ms", format=".2f"),
                alt.Tooltip("control:Q", title="control messages", format=","),
                alt.Tooltip("events:Q", title="event messages", format=","),
                alt.Tooltip("needless:Q", title="of these for nothing", format=","),
            ],
        )
    )
    nodes = (
        alt.Chart(alt.NamedData("nodes"))
        .mark_circle(opacity=1, strokeWidth=0.8)
        .encode(
            x=alt.X("x:Q", **plain),
            y=alt.Y("y:Q", **plain),
            # The domain is filled in by the page: the same colours at every time and for every setting.
            color=alt.Color(
                "value:Q",
                title=Y_TITLE,
                scale=alt.Scale(domain=[0, 1], scheme="viridis"),
                legend=legend,
            ),
            size=alt.Size(
                "value:Q",
                title=Y_TITLE,
                scale=alt.Scale(domain=[0, 1], range=[50, 500]),
                legend=legend,
            ),
            tooltip=[
                alt.Tooltip("name:N", title="broker"),
                alt.Tooltip("entries:Q", title="table entries", format=","),
                alt.Tooltip("processed:Q", title="messages processed", format=","),
            ],
        )
    )
    zoom = alt.selection_interval(name="zoom", bind="scales")
    chart = alt.layer(links, nodes.add_params(zoom))
    return _finish(chart.properties(width="container", height=OVERLAY_HEIGHT))
