"""How charts look in print: type, colours, width; all lengths are points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

TYPE = 7
LETTER = 3.7  # width of a letter, on average
# Told apart in print and by readers who see few colours (Okabe and Ito).
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#999999"]
FIT = alt.AutoSizeParams(type="fit-x", contains="padding")  # the width is that of everything


@dataclass(frozen=True)
class Figure:
    """A chart for a paper."""

    name: str  # of its files
    spec: dict[str, Any]
    data: pd.DataFrame  # of the CSV file
    caption: str


def printed(chart: alt.LayerChart | alt.FacetChart) -> dict[str, Any]:
    """The chart as Vega-Lite."""
    fonts = {"labelFontSize": TYPE, "titleFontSize": TYPE, "titleFontWeight": "normal"}
    found: dict[str, Any] = (
        chart.configure(font="Arial, Helvetica, sans-serif", background="white", padding=2)
        .configure_view(stroke=None)
        .configure_axis(**fonts, labelOverlap="greedy", labelSeparation=4)
        .configure_legend(**fonts, symbolSize=20)
        .configure_header(labelFontSize=TYPE, labelPadding=2)
        .to_dict()
    )
    return found
