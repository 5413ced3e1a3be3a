"""Every sentence of a study is recomputed from the runs by a reader of its own: drawn studies, and planted mistakes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from analysis.report.costs import BOUNDS_FILE
from analysis.report.study import Case, study
from analysis.report.study_words import in_words, sensitivity_sentence, verdicts
from analysis.report.summary import Summary
from analysis.report.words import Sentence
from tests.analysis.report.study_checker import complaints
from tests.analysis.report.summaries import BUDGETS, made, search

PRICES = {"here": {"page": 0.0, "round_trip": 0.0}, "disk": {"page": 90.0, "round_trip": 0.0}}


def every_sentence(cases: list[Case]) -> list[Sentence]:
    alone = [in_words(case, verdict) for case in cases for verdict in case.verdicts]
    return [*verdicts(cases), *alone, *([sensitivity_sentence(cases)] if cases else [])]


def with_disk(summary: Summary, folder: Path) -> Summary:
    (folder / BOUNDS_FILE).write_text(json.dumps({"families": [], "profiles": PRICES}))
    return replace(summary, out=folder)


def noisy(summary: Summary, noise: list[float]) -> Summary:
    """The times and lookups of some runs change, the same in none and another in each."""
    changed = [noise[number % len(noise)] for number in range(len(summary.runs))]
    runs = summary.runs.assign(
        check_time=summary.runs["check_time"] * changed,
        round_trips_per_check=summary.runs["round_trips_per_check"] * changed[::-1],
    )
    return replace(summary, runs=runs)


costs, sent = (
    st.sampled_from([0.1, 0.3, 0.49, 0.51, 0.89, 1.0, 1.5]),
    st.sampled_from([90.0, 99.0, 130.0, 140.0, 500.0]),
)
rows = st.tuples(costs, sent, st.sampled_from([0.0, 0.05, 0.2]), st.sampled_from([1.0, 4.0, 20.0]))
workloads = st.lists(st.lists(rows, min_size=5, max_size=5), min_size=1, max_size=3)
noises = st.lists(st.sampled_from([1.0, 1.0, 0.9713, 1.0417, 1.3109]), min_size=1, max_size=7)


def drawn(workloads: list[list[tuple[float, float, float, float]]], noise: list[float], seeds: int) -> Summary:
    points: list[Any] = []
    for attributes, of in enumerate(workloads, 1):
        some = [search("auto", 1.0, 90.0, trips=9.0), search("bigmin", 2.0, 90.0, trips=10.0)]
        for (cost, messages, wobble, pages), budget in zip(of, BUDGETS, strict=True):
            given = {"wobble": wobble, "pages": pages, "trips": 10 * cost}
            some.append(search("budget", cost, messages, budget=budget, **given))
            some.append(search("density", 2 * cost, messages, epsilon=budget / 1000, **given))
        points += [({**keys, "workload.attributes": attributes}, metrics) for keys, metrics in some]
    summary = noisy(made(points), noise)
    return replace(summary, runs=summary.runs[summary.runs["seed"] < seeds])


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(workloads, noises, st.integers(1, 5))
def test_no_sentence_contradicts_the_runs(
    tmp_path_factory: pytest.TempPathFactory,
    workloads: list[list[tuple[float, float, float, float]]],
    noise: list[float],
    seeds: int,
) -> None:
    summary = with_disk(drawn(workloads, noise, seeds), tmp_path_factory.getbasetemp())
    cases = study(summary)
    assert len(cases) == len(workloads)
    assert complaints(summary.runs, every_sentence(cases)) == []


@pytest.fixture
def one(tmp_path: Path) -> Summary:
    """On disk one pays, in memory the cheapest costs more, in a store it may cost less."""
    dear = [(1.2, 99.0, 0.0, 0.1)] * 4 + [(1.1, 99.0, 0.0, 0.1)]
    return with_disk(drawn([dear, dear], [1.0, 1.1, 0.9], 5), tmp_path)


@pytest.mark.parametrize(
    ("column", "of"),
    [("check_time", "budget"), ("pages_per_check", "budget"), ("round_trips_per_check", "density"), ("checks", "auto")],
)
def test_a_wrong_number_is_noticed(one: Summary, column: str, of: str) -> None:
    said = every_sentence(study(one))
    wrong = one.runs[column].where(one.runs["method"] != of, 1.3 * one.runs[column])
    assert complaints(one.runs, said) == []
    assert complaints(one.runs.assign(**{column: wrong}), said)


def test_what_is_said_of_several_searches_holds_for_each(tmp_path: Path) -> None:
    """Two that are not told apart keep more and less; of two that cost as much as exact search one does every time."""

    def said(*some: tuple[float, float]) -> str:
        points = [search("auto", 1.0, 90.0, recall=1.0)]
        points += [search("budget", *of, budget=budget) for budget, of in zip(BUDGETS, some, strict=False)]
        summary = with_disk(made(points), tmp_path)
        second = summary.runs["point"].str.contains('"covering.budget": 32')
        noisy = summary.runs["check_time"] * (1 + 0.1 * second * (summary.runs["seed"] - 2))
        summary = replace(summary, runs=summary.runs.assign(check_time=noisy))
        sentences = every_sentence(study(summary))
        assert complaints(summary.runs, sentences) == []
        wrong = [
            Sentence(str(s).replace("98.1 % to 98.8 %", "98.8 %").replace("16,", "16 ≈ budget 32,"), s.of)
            for s in sentences
        ]
        assert complaints(summary.runs, wrong)
        return str(sentences[0])

    assert "budget 16 ≈ budget 32 pay: 98.1 % to 98.8 % of the saving for 20 % to 20.2 % of" in said(
        (0.2, 100.0), (0.202, 105.0)
    )
    assert "budget 16, the cheapest that keeps at least 95 % of the saving, costs as much with" in said(
        (1, 90.0), (1.001, 90.0)
    )


def test_no_verdict_against_an_exact_search_that_nobody_would_use(tmp_path: Path) -> None:
    """The slides' search alone: judged where it lives, elsewhere it is said what to add."""
    slides = [search("zorder-emulated", 9.0 - e, 90.0, trips=9 - e, epsilon=e) for e in (0.0, 0.1, 0.2)]
    alone, rough = (
        with_disk(made(slides), tmp_path),
        with_disk(made([search("auto", 1.0, 90.0), *slides[1:]]), tmp_path),
    )
    for summary, judged, lacking in (
        (alone, ["yes-or-no store"], ["In memory and on disk", "auto", "returns the next key", "bigmin"]),
        (rough, ["in memory", "on disk"], ["returns the next key", "bigmin", "yes or no", "covering.epsilon = 0 to"]),
    ):
        cases = study(summary)
        sentences = every_sentence(cases)
        assert [verdict.place.title for verdict in cases[0].verdicts] == judged
        assert complaints(summary.runs, sentences) == []
        refused = [sentence for sentence in sentences if "Not judged" in str(sentence)]
        assert len(refused) == 2
        words = " ".join(map(str, refused)).replace("Not judged in", "In")
        assert all(part in words for part in lacking)
    usual = with_disk(made([search("auto", 1.0, 90.0), search("bigmin", 1.0, 90.0), *slides]), tmp_path)
    (case,) = study(usual)
    assert not case.unjudged
    assert complaints(usual.runs, every_sentence(study(alone))), "one that one would use is there"
    assert complaints(alone.runs, every_sentence([case]))


@pytest.mark.parametrize(("kept", "paid"), [(1.15, True), (1.0, False)])
def test_a_wrong_verdict_is_noticed(one: Summary, kept: float, paid: bool) -> None:
    """Of the right numbers, but that of another case: more messages, or another threshold."""
    runs = one.runs.assign(control_messages=one.runs["control_messages"] * kept ** (one.runs["epsilon"] != 0))
    said = every_sentence(study(replace(one, runs=runs)))
    assert complaints(runs, said) == []
    assert bool(complaints(one.runs, said)) is paid


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" pays in 2 of 2", " pays in 1 of 2"),
        (" pay: ", " may pay: "),
        ("On disk", "In memory"),
        ("use exact", "use no"),
    ],
)
def test_a_wrong_word_is_noticed(one: Summary, right: str, wrong: str) -> None:
    said = every_sentence(study(one))
    changed = [
        replace(sentence, text=sentence.text.replace(right, wrong)) for sentence in said if right in str(sentence)
    ]
    assert changed
    assert all(complaints(one.runs, [sentence]) for sentence in changed)


def test_an_unrelated_frame_is_noticed(one: Summary) -> None:
    other: pd.DataFrame = one.runs.assign(seed=one.runs["seed"], check_time=1.0)
    assert complaints(other, every_sentence(study(one)))
