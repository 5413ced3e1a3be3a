"""What a browser draws where marks would hide each other, or where there is nothing to draw."""

from __future__ import annotations

import html
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.report.page import render
from tests.analysis.report.summaries import make, with_counts
from tests.analysis.report.test_page import browser, needs_browser


def rendered(tmp_path: Path, points: list[Any], script: str = "") -> str:
    """What a browser makes of a page about these settings: its elements, drawn pictures included, after a script."""
    summary = with_counts(make(points))
    runs = summary.runs.assign(engine="none", trace_hash="00", wall_seconds=1.0, made="2026-11-17", machine="here")
    nobody = pd.DataFrame(columns=["run", "messages", "subscription"])
    page = tmp_path / "page.html"
    text = render(replace(summary, runs=runs, brokers=nobody, misses=nobody))
    page.write_text(f"{text}<script>{script}</script>", encoding="utf-8")
    command = browser(tmp_path, "--virtual-time-budget=30000", "--dump-dom", page.as_uri())
    return subprocess.run(command, capture_output=True, timeout=120, check=True, text=True).stdout


def of_chart(dom: str, name: str) -> list[str]:
    """The texts that are drawn in a picture."""
    drawn = dom.partition(f'id="{name}"')[2].partition("</svg>")[0]
    inside = re.findall(r"<text[^>]*>(.*?)</text>", drawn)
    return [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split()) for text in inside]


@needs_browser
def test_lines_too_close_to_tell_apart_are_one_with_all_names(tmp_path: Path) -> None:
    near = {"simple": 1.0, "identity": 1.001, "covering": 0.4}
    keys = [(name, size) for name in near for size in (100, 200, 300)]
    dom = rendered(
        tmp_path,
        [
            ({"routing.strategy": name, "workload.subscriptions": size}, {"entries": size * near[name]})
            for name, size in keys
        ],
    )
    legend = " ".join(of_chart(dom, "answer-0"))
    assert "simple routing ≈ identity routing" in legend
    assert "covering" in of_chart(dom, "answer-0")
    data = dom.partition('id="answer-0-data"')[2].partition("</table>")[0]
    assert ">identity routing</td>" in data, "the data have each"


@needs_browser
def test_none_has_a_row_and_no_mark(tmp_path: Path) -> None:
    names = {"flooding": 0.0, "simple": 90.0, "covering": 30.0}
    dom = rendered(tmp_path, [({"routing.strategy": name}, {"entries": value}) for name, value in names.items()])
    texts = of_chart(dom, "answer-0")
    assert texts.count("none") == 1
    assert {"flooding", "90", "30"} <= {*texts}


@needs_browser
def test_many_names_of_one_line_are_counted_and_an_equals_sign_in_a_name_parts_nothing(tmp_path: Path) -> None:
    files = {"/a/ring.gml": 1.0, "/b/ring.gml": 1.0, "/c/ring.gml": 1.0, "/d/ring.gml": 1.0, "/tree.gml": 0.2}
    points: list[Any] = [
        ({"overlay.file": file, "workload.subscriptions": size}, {"entries": size * share})
        for file, share in files.items()
        for size in (100, 200, 300)
    ]
    legend = " ".join(of_chart(rendered(tmp_path, points), "answer-0"))
    assert "ring (overlay.file = /a/ring.gml) and 3 like it" in legend


@needs_browser
def test_ticked_settings_are_the_only_ones_in_every_picture(tmp_path: Path) -> None:
    values = {"simple": (90.0, 20.0), "identity": (60.0, 30.0), "covering": (30.0, 40.0)}
    points: list[Any] = [
        ({"routing.strategy": name}, {"entries": entries, "event_messages": events})
        for name, (entries, events) in values.items()
    ]
    tick = "addEventListener('load', () => document.querySelectorAll('#table .pick')[1].click())"
    dom = rendered(tmp_path, points, tick)
    for chart in ("answer-0", "answer-1", "explore"):
        assert [
            text for text in of_chart(dom, chart) if text in {"simple routing", "identity routing", "covering"}
        ] == ["identity routing"], chart


@needs_browser
def test_names_have_rows_of_their_own_and_what_changes_nothing_is_no_part_of_a_name(tmp_path: Path) -> None:
    kinds, strategies = (
        ("line", "star", "an overlay with an uncommonly long name of many words"),
        ("simple", "covering"),
    )
    points: list[Any] = [
        (
            {"overlay.file": f"/{kind}.gml", "routing.strategy": name, "workload.width": width},
            {"entries": 11.0 * entries},
        )
        for entries, kind in enumerate(kinds, 1)
        for name in strategies
        for width in ("wide", "narrow", "any")
    ]
    texts = of_chart(rendered(tmp_path, points), "answer-0")
    assert "an overlay with an uncommonly long name of many words" in texts, "whole, whatever the width"
    dots = sorted(text for text in texts if text in {"11", "22", "33"})
    assert dots == ["11", "22", "33"], ("one dot, not one for each strategy and width", texts)
    assert not any("wide" in text or "simple" in text for text in texts)


@needs_browser
def test_many_lines_have_numbers_and_their_names_are_whole_below(tmp_path: Path) -> None:
    names = [f"overlay number {number} with an uncommonly long name" for number in range(8)]
    points: list[Any] = [
        ({"overlay.file": f"/{name}.gml", "workload.subscriptions": size}, {"entries": size * (1.0 + number)})
        for number, name in enumerate(names)
        for size in (100, 200, 300)
    ]
    texts = of_chart(rendered(tmp_path, points), "answer-0")
    for number, name in enumerate(names, 1):
        assert f"{number} {name}" in texts, "the legend"
        assert str(number) in ", ".join(texts).split(", "), "the end of the line"
    assert not any("…" in text for text in texts)
