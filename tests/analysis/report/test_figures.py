"""Charts for a paper: the asked formats at the asked width, the numbers of the results, captions, no network."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.image
import pandas as pd
import pytest

from analysis.report.effects import Effects
from analysis.report.figures import _as_one, _broken, _caption, _chart, _data, points, write_figures
from analysis.report.print_style import LETTER
from analysis.report.summary import Summary
from coverlay import CoverlayError
from tests.analysis.report.summaries import make, with_counts


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


def along_k(slopes: dict[str, float]) -> Effects:
    points: list[Any] = [
        ({"workload.kind": name, "matching.k": k}, {"entries": 10.0 + slope * k})
        for name, slope in slopes.items()
        for k in (1, 10, 100)
    ]
    return Effects(with_counts(make(points)))


def test_lines_that_hide_each_other_are_one_and_the_caption_has_all_names() -> None:
    effects = along_k({"a": 1.0, "b": 1.0, "c": 1.001, "d": 3.0})
    data = _data(effects, "entries")
    drawn = _as_one(data)
    assert [*dict.fromkeys(drawn["series"])] == ["a = b ≈ c", "d"]
    assert len(data) == 12, "the file has each"
    assert "≈ within 1 % of the axis: a = b ≈ c." in _caption(effects, "entries", data)
    many = _as_one(_data(along_k({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 9.0}), "entries"))
    assert [*dict.fromkeys(many["series"])] == ["a and 3 like it", "e"]


def test_a_name_is_broken_between_words_and_never_cut() -> None:
    points_of: list[Any] = [
        ({"overlay.file": f"/{name}.gml"}, {"entries": size})
        for name, size in (("an uncommonly long name of an overlay that nobody would ever give", 1.0), ("short", 2.0))
    ]
    effects = Effects(with_counts(make(points_of)))
    spec = _chart(effects, "entries", _data(effects, "entries"), points("3.3in"))
    rows = next(iter(spec["datasets"].values()))
    names = [row["setting"] for row in rows]
    assert "\n" in names[0]
    assert names[0].replace("\n", " ") == effects.title(effects.summary.order[0])
    assert spec["layer"][0]["encoding"]["y"]["axis"]["labelLimit"] == 0
    numbered = pd.Series(["covering, barabasi-albert, brokers 20"])
    assert _broken(numbered, 36.5 * LETTER) == ["covering, barabasi-albert,\nbrokers\u00a020"]


def test_intervals_of_two_lines_do_not_hide_each_other() -> None:
    effects = along_k({"a": 1.0, "b": 3.0})
    data = _data(effects, "entries")
    rows = next(iter(_chart(effects, "entries", data, points("3.3in"))["datasets"].values()))
    places = {(row["x"], row["at"]) for row in rows}
    assert len(places) == len(rows) == 6
    assert all(at == pytest.approx(x, rel=0.05) for x, at in places)
    seeds = effects.summary.runs.assign(seed=range(len(effects.summary.runs)))
    several = Effects(replace(effects.summary, runs=seeds))
    assert "a little beside" in _caption(several, "entries", data)


@pytest.mark.parametrize(("lines", "panels"), [(6, False), (7, True)])
def test_more_lines_than_a_legend_holds_have_panels_of_their_own(lines: int, panels: bool) -> None:
    effects = along_k({f"workload {number}": float(number) for number in range(lines)})
    spec = _chart(effects, "entries", _data(effects, "entries"), points("3.3in"))
    assert ("facet" in spec) == panels
    layer = (spec["spec"] if panels else spec)["layer"][-1]
    assert ("field" in layer["encoding"]["color"]) != panels, "no colour means two lines"
    assert layer["encoding"]["x"]["scale"]["type"] == "log"
