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


def rendered(tmp_path: Path, points: list[Any]) -> str:
    """What a browser makes of a page about these settings: its elements, drawn pictures included."""
    summary = with_counts(make(points))
    runs = summary.runs.assign(engine="none", trace_hash="00", wall_seconds=1.0, made="2026-11-17", machine="here")
    nobody = pd.DataFrame(columns=["run", "messages", "subscription"])
    page = tmp_path / "page.html"
    page.write_text(render(replace(summary, runs=runs, brokers=nobody, misses=nobody)), encoding="utf-8")
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
