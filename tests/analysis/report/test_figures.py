"""Charts for a paper: the asked formats at the asked width, the numbers of the results, captions, no network."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import matplotlib.image
import pandas as pd
import pytest

from analysis.report.figures import points, write_figures
from analysis.report.summary import Summary
from coverlay import CoverlayError


@pytest.mark.parametrize(("width", "size"), [("3.3in", 237.6), ("84mm", 238.1), ("8.4 cm", 238.1), ("240pt", 240.0)])
def test_a_width_is_a_length(width: str, size: float) -> None:
    assert points(width) == pytest.approx(size, abs=0.1)


@pytest.mark.parametrize("width", ["3.3", "wide", "0.1in", "99in", "1.2.3cm", "-3in"])
def test_no_other_width_is_taken(width: str) -> None:
    with pytest.raises(CoverlayError, match=f"width is '{re.escape(width)}'"):
        points(width)


@pytest.mark.spark
def test_one_file_per_chart_and_format_as_wide_as_asked(analysed: Summary, tmp_path: Path) -> None:
    from sim.cli.comparing import figures

    given = {"format": "pdf,svg,png,csv", "width": "3.3in", "metrics": "entries,event_messages"}
    out = tmp_path / "new" / "paper"
    assert figures(argparse.Namespace(folder=analysed.out, out=out, **given)) == 0
    names = {path.name for path in out.iterdir()}
    assert names == {f"{m}.{k}" for m in ("entries", "event-messages") for k in given["format"].split(",")} | {
        "captions.txt"
    }
    box = re.search(rb"MediaBox *\[ *0 0 ([\d.]+)", (out / "entries.pdf").read_bytes())
    assert box is not None
    assert float(box[1]) == pytest.approx(3.3 * 72, abs=2)
    drawing = (out / "entries.svg").read_text()
    assert re.search(r'<svg[^>]* width="237\.\d+pt"', drawing)
    assert 'href="http' not in drawing
    assert matplotlib.image.imread(out / "entries.png").shape[1] == pytest.approx(3.3 * 300, abs=10)
    assert pd.read_csv(out / "entries.csv")["mean"].tolist() == [16.5, 4.5, 8.5]
    captions = (out / "captions.txt").read_text()
    assert "Means over 2 seeds (1, 2) with 95 % t-intervals" in captions
    assert "Varied, routing: simple routing; exact covering" in captions


@pytest.mark.spark
def test_what_cannot_be_drawn_is_said(analysed: Summary, tmp_path: Path) -> None:
    with pytest.raises(CoverlayError, match="format 'gif' is not one of pdf, svg, png, csv"):
        write_figures(analysed, tmp_path, ["gif"])
    with pytest.raises(CoverlayError, match="unknown metric 'speed'"):
        write_figures(analysed, tmp_path, ["svg"], metrics=["speed"])
