"""A sweep of hundreds of settings: its page, table and Markdown are short, and say what they leave out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.report import shown_settings
from analysis.report.effects import Effects
from analysis.report.page import render
from analysis.report.study import study
from analysis.report.study_text import END, write_into
from analysis.report.summary import Summary
from analysis.report.table import table
from coverlay import CoverlayError
from tests.analysis.report.summaries import made, sweep, with_counts

SIZES, WORKLOADS = (1000, 20_000), range(1, 16)  # of six settings each: 180, and thirty cases


@pytest.fixture(scope="module")
def large() -> Summary:
    points: list[Any] = []
    for size in SIZES:
        for attributes in WORKLOADS:
            fixed = {"workload.subscriptions": size, "workload.attributes": attributes, "workload.kind": "zipf"}
            points += [({**keys, **fixed}, metrics) for keys, metrics in sweep(0.2 if size > 1000 else 0.6, 100.0)]
    summary = with_counts(made(points))
    runs = summary.runs.assign(engine="none", trace_hash="00", wall_seconds=1.0, made="2026-11-17", machine="here")
    runs["run"] = [f"{number}" for number in range(len(runs))]
    nobody = pd.DataFrame(columns=["run", "messages", "subscription"])
    empty = pd.DataFrame(columns=["point", "baseline", "metric", "differs"])
    return replace(summary, runs=runs, brokers=nobody, misses=nobody, differences=empty)


@pytest.fixture(scope="module")
def page(large: Summary) -> str:
    return render(large)


def test_of_a_large_sweep_the_settings_that_verdicts_name_are_listed(large: Summary) -> None:
    cases = study(large)
    points = shown_settings.rows(large, cases)
    assert {json.loads(point)["covering.method"] for point in points} == {"auto", "budget"}
    assert len(points) == 2 * len(cases) == 60
    assert len(table(Effects(large), ["entries"], points).rows) == 60
    assert shown_settings.left_out(large, points) == "60 of 180 settings; results/summary.csv has all."
    assert len(shown_settings.rows(large, ())) == shown_settings.MOST_ROWS
    assert len(shown_settings.pictures(points)) == shown_settings.MOST_PICTURES
    assert shown_settings.pictures(points[:2]) == points[:2]


def test_a_large_page_has_a_grid_one_workload_at_a_time_and_no_line_per_setting(page: str) -> None:
    data = json.loads(page.partition('id="report-data">')[2].partition("</script>")[0])
    assert data["points"] == data["charts"] == data["answer"] == []
    assert len(data["cases"]) == 30
    assert data["cases"][data["defaultCase"]]["title"] == "zipf, d = 1, n = 20,000", "the first that pays"
    assert all(len(picture["of"]) == 30 for picture in data["studyCharts"])
    assert len(re.findall('data-case="', page)) == 30
    assert page.count('class="num pays') == 15
    for words in ("180 settings are too many", "60 of 180 settings", "run_metrics.csv</code> lists them"):
        assert words in page


def test_a_study_is_put_into_a_text_at_its_place(large: Summary, tmp_path: Path) -> None:
    path, cases = tmp_path / "text.md", study(large)
    path.write_text(f"before\n<!-- study e -->\nearlier\n{END}\nbetween\n<!-- study f -->\n{END}\nafter\n")
    write_into(path, large, cases)
    found = path.read_text()
    assert found.startswith("before\n<!-- study e -->\nRun on 17 November 2026 (UTC) on here: 15 minutes")
    assert "n = 1,000: 15 workloads with 5 seeds; n = 20,000: 15 workloads with 5 seeds." in " ".join(found.split())
    assert "| zipf, d = 2, n = 1,000 | 90 % | .6 |" in found
    assert "| zipf, d = 2, n = 20,000 | 90 % | **.2** |" in found
    assert found.endswith(f"{END}\nbetween\n<!-- study f -->\n{END}\nafter\n")
    assert "earlier" not in found
    write_into(path, large, cases)
    assert path.read_text() == found
    with pytest.raises(CoverlayError, match="has no place for study e"):
        write_into(_written(tmp_path / "other.md", "nothing"), large, cases)
    with pytest.raises(CoverlayError, match="cannot be read: No such file or directory"):
        write_into(tmp_path / "absent.md", large, cases)


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
