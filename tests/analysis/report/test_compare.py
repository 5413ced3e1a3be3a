"""Results compared: by setting and seed, the first is the baseline; ties, chance, and what only one of them has."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.report.compare import Comparison, compare_by, compare_results
from analysis.report.effects import Effects
from analysis.report.summary import Summary
from coverlay import CoverlayError
from tests.analysis.report.checker import verdict
from tests.analysis.report.test_effects import STATE, STRATEGY, point, summary_of, sweeps


def results(covering: float, seeds: Any = (1, 2, 3), strategies: Any = ("simple", "covering")) -> Summary:
    entries = {"simple": 90.0, "covering": covering, "identity": 50.0}
    runs = {
        (point(**{STRATEGY.replace(".", "__"): name}), seed): {"entries": entries[name] + seed, "event_messages": 7.0}
        for name in strategies
        for seed in seeds
    }
    summary = summary_of(runs)
    hashes = [f"{row['entries']:g}" for row in summary.runs.to_dict("records")]
    return replace(summary, runs=summary.runs.assign(trace_hash=hashes))


def verdicts(found: Comparison, metric: str) -> dict[str, tuple[float, float, str]]:
    rows = found.table[found.table["metric"] == metric].to_dict("records")
    return {row["setting"]: (row["a"], row["b"], row["verdict"]) for row in rows}


def test_what_changed_and_what_did_not() -> None:
    found = compare_results({"old": results(30.0), "new": results(20.0)}, ["entries", "event_messages"])
    assert verdicts(found, "entries") == {"simple routing": (92.0, 92.0, "equal"), "covering": (32.0, 22.0, "differs")}
    assert found.rows() == [
        ["covering", "table entries", "32 → 22", "−31.2 %"],
        ["", "event msgs", "=", ""],
        ["1 other setting", "all", "=", ""],
    ]
    assert not found.equal
    assert found.first_difference["traces"].startswith("seed 1 of ")
    assert "entries is 31.0 in old, 21.0 in new" in found.first_difference["metrics"]


def test_what_the_experiment_asks_about_is_shown(tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").write_text('asks = ["event_messages"]')
    one = replace(results(30.0), out=tmp_path)
    assert compare_results({"one": one, "other": results(20.0)}).metrics == ("event_messages",)
    assert compare_by(one, STRATEGY).metrics == ("event_messages",)
    assert compare_results({"one": one, "other": results(20.0)}, ["entries"]).metrics == ("entries",)
    assert "entries" in compare_results({"one": results(20.0), "other": one}).metrics, "the baseline's question"


def test_equal_results_are_equal_and_their_clock_does_not_count() -> None:
    slow = results(30.0)
    slow = replace(slow, runs=slow.runs.assign(wall_seconds=9.0))
    found = compare_results({"one": results(30.0), "other": slow}, ["entries"])
    assert found.equal
    assert found.first_difference == {}
    assert found.rows() == [["2 settings", "all", "=", ""]]


def test_a_seed_or_a_setting_that_only_one_has_is_a_difference() -> None:
    one, fewer = results(30.0), results(30.0, seeds=(1, 2))
    assert "seed 3" in compare_results({"one": one, "fewer": fewer}).first_difference["traces"]
    more = results(30.0, strategies=("simple", "covering", "identity"))
    found = compare_results({"one": one, "more": more})
    assert found.only == ("only in more: identity routing",)
    assert not found.equal


def test_without_common_seeds_the_interval_is_wider_and_that_is_said() -> None:
    paired = compare_results({"a": results(30.0), "b": results(20.0)}, ["entries"])
    alone = compare_results({"a": results(30.0), "b": results(20.0, seeds=(4, 5, 6))}, ["entries"])
    assert any("not paired" in line for line in alone.lines())
    assert not any("not paired" in line for line in paired.lines())

    def width(found: Comparison) -> float:
        row = found.table[(found.table["metric"] == "entries") & (found.table["setting"] == "covering")].iloc[0]
        return float(row["high"] - row["low"])

    assert width(paired) == pytest.approx(0)
    assert width(alone) == pytest.approx(2 * 2.7764 * (1 / 3 + 1 / 3) ** 0.5, rel=1e-3)


def test_the_values_of_one_key_are_compared_within_one_folder() -> None:
    runs = {
        (point(**{STATE.replace(".", "__"): state, STRATEGY.replace(".", "__"): name}), seed): {
            "entries": {"kept": 10.0, "lost": 12.0}[state] * seed * (1 + (name == "simple"))
        }
        for state in ("kept", "lost")
        for name in ("simple", "covering")
        for seed in (1, 2, 3)
    }
    summary = summary_of(runs)
    found = compare_by(summary, STATE, ["entries"])
    assert found.names == ("kept", "lost")
    assert found.title == "faults.state: kept and lost"
    assert found.rows()[0] == ["strategy simple", "table entries", "~ 40 → 48", "+20.0 % ± 24.8"]
    assert {ends[:2] for ends in verdicts(found, "entries").values()} == {(20.0, 24.0), (40.0, 48.0)}
    with pytest.raises(CoverlayError, match=r"unknown swept key 'routing\.mode'"):
        compare_by(summary, "routing.mode")


def test_the_values_of_a_key_are_compared_with_the_one_that_effects_start_from() -> None:
    names = ("flooding", "simple", "covering")
    runs = {(point(routing__strategy=name), seed): {"entries": 5.0 * seed} for name in names for seed in (1, 2)}
    assert compare_by(summary_of(runs), STRATEGY, ["entries"]).names[0] == "simple", "flooding has no tables"


def test_a_case_that_does_not_set_the_key_has_the_value_of_the_experiment() -> None:
    runs = {(point(**keys), 1): {"entries": 20.0} for keys in ({}, {"covering__method": "kdtree"})}
    assert set(compare_by(summary_of(runs), "covering.method", ["entries"]).names) == {"kdtree", "scan"}


@settings(max_examples=30, deadline=None)
@given(sweeps(), st.sampled_from([0.0, 0.0, 2.0, 50.0]), st.booleans(), st.booleans())
def test_no_comparison_contradicts_the_pairs(summary: Summary, more: float, noisy: bool, one_alone: bool) -> None:
    """What a row says is recomputed from the runs, seed by seed; ties are ties, and nothing is left out."""
    runs = summary.runs.assign(trace_hash="00")
    changed = runs.assign(latency_p99=runs["latency_p99"] + more * (runs["seed"] % 2 if noisy else 1))
    changed = changed.iloc[1:] if one_alone and runs["point"].nunique() > 1 else changed
    results = {"a": replace(summary, runs=runs), "b": replace(summary, runs=changed)}
    common = {*runs["point"]} & {*changed["point"]}
    found = compare_results(results, ["latency_p99"])
    titles = {Effects(summary).title(point): point for point in summary.order}
    told = found.table[found.table["metric"] == "latency_p99"]
    expected = {}
    for setting in common:
        ones, others = (
            dict(zip(*of[of["point"] == setting][["seed", "latency_p99"]].to_numpy().T, strict=True))
            for of in (runs, changed)
        )
        both = [(ones[seed], others[seed]) for seed in sorted(ones.keys() & others.keys())]
        expected |= {setting: verdict(both)} if both else {}
    paired = told[told["paired"]]
    said = dict(zip(paired["setting"], paired["verdict"], strict=True))
    if len(common) > 1:
        assert {titles[setting]: of for setting, of in said.items()} == expected
    assert {row[0] for row in found.rows()} >= {setting for setting, of in said.items() if of != "equal"}, "no tie"
    for row in found.rows():
        assert (row[-2] == "=") == (said.get(row[0], "equal") == "equal"), "a tie is a tie"
        assert row[-2].startswith("~") == (said.get(row[0]) == "chance")
    alone = {*runs["point"]} ^ {*changed["point"]}
    assert len(found.only) == len(alone)
    assert bool(found.first_difference) == (
        len(changed) < len(runs) or bool(more and (changed["latency_p99"] != runs["latency_p99"]).any())
    )


def test_one_result_is_nothing_to_compare() -> None:
    with pytest.raises(CoverlayError, match="nothing to compare"):
        compare_results({"one": results(30.0)})


@pytest.mark.spark
def test_the_command_writes_a_table_and_a_page_and_says_whether_all_is_equal(
    analysed: Summary, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from sim.cli.comparing import compare

    def run(*folders: str, by: str | None = None, expect: str | None = None) -> int:
        out = tmp_path / "compared"
        return compare(argparse.Namespace(results=[*folders], by=by, metrics="entries", expect_equal=expect, out=out))

    folder = str(analysed.out)
    assert run(f"a={folder}", f"b={folder}", expect="traces") == 0
    assert run(folder, by="covering.epsilon") == 0
    assert "covering.epsilon: 0.1 against 0" in capsys.readouterr().out
    assert (tmp_path / "compared" / "compare.csv").stat().st_size > 1000
    assert "<img" not in (tmp_path / "compared" / "compare.html").read_text()
    with pytest.raises(CoverlayError, match="same name"):
        run(folder, folder)
    with pytest.raises(CoverlayError, match="--by compares settings of one folder"):
        run(f"a={folder}", f"b={folder}", by="covering.epsilon")
