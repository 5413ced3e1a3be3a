"""Results compared: by setting and seed, the first is the baseline; ties, chance, and what only one of them has."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from analysis.report.compare import Comparison, compare_by, compare_results
from analysis.report.effects import Effects
from analysis.report.summary import Summary
from coverlay import CoverlayError
from sim.cli import terminal
from sim.cli.main import main
from tests.analysis.report.checker import T, verdict
from tests.analysis.report.test_effects import STATE, STRATEGY, point, summary_of, sweeps


def results(covering: float, seeds: Any = (1, 2, 3), strategies: Any = ("simple", "covering")) -> Summary:
    entries = {"simple": 90.0, "covering": covering, "identity": 50.0, "flooding": 0.0}
    runs = {
        (point(**{STRATEGY.replace(".", "__"): name}), seed): {"entries": entries[name] + seed, "event_messages": 7.0}
        for name in strategies
        for seed in seeds
    }
    return hashed(runs)


def hashed(runs: Any) -> Summary:
    summary = summary_of(runs)
    return replace(summary, runs=summary.runs.assign(trace_hash=[f"{value:g}" for value in summary.runs["entries"]]))


def only_runs(summary: Summary, keep: Callable[[dict[str, Any]], bool]) -> Summary:
    rows = summary.runs.to_dict("records")
    return replace(summary, runs=pd.DataFrame([row for row in rows if keep(row)]))


def verdicts(found: Comparison, metric: str) -> dict[str, tuple[float, float, str]]:
    rows = found.table[found.table["metric"] == metric].to_dict("records")
    return {row["setting"]: (row["a"], row["b"], row["verdict"]) for row in rows}


def test_what_changed_and_what_did_not() -> None:
    found = compare_results({"old": results(30.0), "new": results(20.0)}, ["entries", "event_messages"])
    assert verdicts(found, "entries") == {"simple routing": (92.0, 92.0, "equal"), "covering": (32.0, 22.0, "differs")}
    assert found.rows() == [
        ["covering", "table entries", "32 → 22", "−31.2 %"],
        ["", "event msgs", "=", ""],
        ["simple routing", "all", "=", ""],
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
    assert found.rows() == [["simple routing; covering", "all", "=", ""]]
    assert found.about[-1] == "6 pairs of runs, 6 with equal traces"


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
    summary = hashed(runs)
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
    assert compare_by(hashed(runs), STRATEGY, ["entries"]).names[0] == "simple", "flooding has no tables"


def test_a_case_that_does_not_set_the_key_has_the_value_of_the_experiment() -> None:
    runs = {(point(**keys), 1): {"entries": 20.0} for keys in ({}, {"covering__method": "kdtree"})}
    assert set(compare_by(hashed(runs), "covering.method", ["entries"]).names) == {"kdtree", "scan"}


def by_hand(one: dict[int, float], other: dict[int, float]) -> tuple[bool, str]:
    """Whether it is paired, and the verdict: of Student's t over pairs, else of Welch's."""
    both = sorted(one.keys() & other.keys())
    if both:
        return True, verdict([(one[seed], other[seed]) for seed in both])
    a, b = [*one.values()], [*other.values()]
    n = min(len(a), len(b))
    if n == 1:
        return False, "one seed"
    parts = [stdev(values) ** 2 / len(values) for values in (a, b)]
    if sum(parts) == 0:
        return False, "equal" if a[0] == b[0] else "differs"
    squares = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (a, b), strict=True))
    half = T.get(max(1, int(sum(parts) ** 2 / squares)), 2.4469) * sum(parts) ** 0.5  # more than 5: at most 6 here
    return False, "differs" if abs(fmean(b) - fmean(a)) > half else "chance"


@settings(max_examples=40, deadline=None)
@given(sweeps(), st.sampled_from([0.0, 0.0, 2.0, 50.0]), st.booleans(), st.booleans(), st.integers(0, 3))
def test_no_comparison_contradicts_the_pairs(
    summary: Summary, more: float, noisy: bool, one_alone: bool, moved: int
) -> None:
    """What a row says is recomputed from the runs, seed by seed; ties are ties, and nothing is left out."""
    runs = summary.runs.assign(trace_hash="00")
    changed = runs.assign(latency_p99=runs["latency_p99"] + more * (runs["seed"] % 2 if noisy else 1))
    changed = changed.iloc[1:] if one_alone and runs["point"].nunique() > 1 else changed
    elsewhere = changed["point"].isin([*dict.fromkeys(changed["point"])][:moved])
    changed = changed.assign(seed=changed["seed"] + 10 * elsewhere)
    results = {"a": replace(summary, runs=runs), "b": replace(summary, runs=changed)}
    common = {*runs["point"]} & {*changed["point"]}
    if not common:
        with pytest.raises(CoverlayError, match="no setting in common"):
            compare_results(results)
        return
    found = compare_results(results, ["latency_p99"])
    title = Effects(summary).title
    told = found.table[found.table["metric"] == "latency_p99"]
    of = {
        point: [dict(of[of["point"] == point][["seed", "latency_p99"]].to_numpy()) for of in (runs, changed)]
        for point in common
    }
    expected = {title(point): by_hand(*values) for point, values in of.items()}
    rows = told.to_dict("records")
    assert {row["setting"]: (row["paired"], row["verdict"]) for row in rows} == expected
    lines = " ".join(found.lines())
    assert ("not paired" in lines) == any(not paired for paired, _ in expected.values())
    signs = {name: row[-2] for row in found.rows() for name in row[0].split("; ")}
    if len(signs) == len(expected):  # else they are counted
        for name, (_, verdict_) in expected.items():
            assert (signs[name] == "=") == (verdict_ == "equal"), "a tie is a tie"
            assert not signs[name].startswith("~") or verdict_ == "chance"
            assert verdict_ != "chance" or signs[name][0] in "~≈"
    alone = {*runs["point"]} ^ {*changed["point"]}
    assert bool(found.only) == bool(alone)
    unequal = more and (changed["latency_p99"] != runs["latency_p99"].reindex(changed.index)).any()
    assert bool(found.first_difference) == bool(len(changed) < len(runs) or moved or unequal)


def test_a_setting_whose_seeds_are_others_is_not_dropped() -> None:
    one, other = results(30.0), results(20.0)
    seeds = other.runs["seed"] + 10 * (other.runs["strategy"] == "covering")
    found = compare_results({"a": one, "b": replace(other, runs=other.runs.assign(seed=seeds))}, ["entries"])
    rows = found.table[found.table["metric"] == "entries"]
    assert [*zip(rows["setting"], rows["paired"], rows["n"], strict=True)] == [
        ("simple routing", True, 3),
        ("covering", False, 3),
    ]
    half = 2.7764 * (1 / 3 + 1 / 3) ** 0.5  # two variances of 1, 4 degrees of freedom
    assert (*rows.iloc[1][["low", "high"]],) == pytest.approx((-10 - half, -10 + half), rel=1e-4)
    assert "no common seeds: intervals are not paired, and wider, in covering" in found.lines()
    assert "3 pairs of runs, 3 with equal traces" in found.lines()


def test_where_only_some_seeds_are_common_the_settings_and_pairs_are_told() -> None:
    fewer = only_runs(results(30.0), lambda row: row["strategy"] == "covering" or row["seed"] == 1)
    found = compare_results({"a": results(30.0), "b": fewer}, ["entries", "event_messages"])
    assert "1 pair of 3 seeds, in simple routing" in found.lines()
    assert found.first_difference["traces"] == "seed 2 of simple routing is only in a"
    assert "4 pairs of runs, 4 with equal traces" in found.lines()


def test_a_metric_that_one_side_does_not_know_is_no_tie() -> None:
    other = results(30.0)
    other = replace(other, runs=other.runs.assign(event_messages=float("nan")))
    found = compare_results({"a": results(30.0), "b": other}, ["entries", "event_messages"])
    assert found.rows()[:2] == [["simple routing", "table entries", "=", ""], ["", "event msgs", "–", ""]]


def test_what_one_fixes_is_found_where_another_sweeps_it() -> None:
    alone = hashed({(point(), seed): {"entries": 20.0 + seed} for seed in (1, 2, 3)})  # covering, by its file
    for one, other in ((alone, results(30.0)), (results(30.0), alone)):
        found = compare_results({"a": one, "b": other}, ["entries"])
        assert {row["setting"] for row in found.table.to_dict("records")} == {"covering"}
        assert abs(found.table.iloc[0]["difference"]) == 10
        assert [line.partition(": ")[2] for line in found.only] == ["simple routing"]
        assert "differ" not in " ".join(found.lines()[:-1]), "what is matched is not what differs"


def test_a_value_that_the_other_does_not_sweep_is_compared_with_each() -> None:
    method, epsilon = {"covering__method": "zorder"}, "covering__epsilon"
    fixed = hashed({(point(**method, **{epsilon: 0.0}), seed): {"entries": 20.0 + seed} for seed in (1, 2)})
    shares = [(point(**method, **{epsilon: share}), seed) for share in (0.1, 0.3) for seed in (1, 2)]
    swept = hashed({place: {"entries": 30.0 + place[1]} for place in shares})
    found = compare_results({"a": fixed, "b": swept}, ["entries"])
    assert [row[0] for row in found.rows()] == [f"epsilon 0 → {share} of the volume" for share in (0.1, 0.3)]
    assert "differ: covering.epsilon: 0 → 0.1, 0.3" in found.lines()


def test_two_sweeps_of_other_values_have_nothing_in_common() -> None:
    one, other = results(30.0), results(30.0, strategies=("identity", "flooding"))
    with pytest.raises(CoverlayError, match=r"strategy is simple or covering, and flooding or identity; .*by = KEY"):
        compare_results({"a": one, "b": other})
    states = hashed({(point(faults__state=state), 1): {"entries": 1.0} for state in ("kept", "lost")})
    with pytest.raises(CoverlayError, match=r"^a keeps no runs, so that its faults\.state is unknown$"):
        compare_results({"a": one, "b": states})


def test_each_is_compared_with_the_first_over_what_the_two_share() -> None:
    every = ("simple", "covering", "identity")
    parts = {"a": results(30.0, strategies=every), "b": results(20.0), "c": results(25.0, strategies=every[1:])}
    found = compare_results(parts, ["entries"])
    pairs = {(row["setting"], row["of"]) for row in found.table.to_dict("records")}
    assert pairs == {("simple routing", "b"), ("covering", "b"), ("covering", "c"), ("identity routing", "c")}
    assert found.only == ("only in a, not in b: identity routing", "only in a, not in c: simple routing")
    assert {"b: 6 pairs of runs, 3 with equal traces", "c: 6 pairs of runs, 3 with equal traces"} <= {*found.lines()}


def test_single_runs_are_not_called_by_the_name_of_the_first() -> None:
    one, other = (results(30.0, strategies=(name,)) for name in ("covering", "simple"))
    found = compare_results({"a": one, "b": other}, ["entries"])
    assert found.rows()[0][0] == "strategy covering → simple"
    assert "differ: routing.strategy: covering → simple" in found.lines()
    assert compare_results({"a": one, "b": results(3.0, strategies=("covering",))}).rows()[0][0] == "covering"


def test_what_prints_alike_is_no_difference() -> None:
    one, other = results(30.0), results(30.0)
    other = replace(other, runs=other.runs.assign(event_messages=other.runs["event_messages"] + 1e-4))
    found = compare_results({"a": one, "b": other}, ["entries", "event_messages"])
    assert found.rows() == [["simple routing; covering", "all", "= or ≈", ""]]
    assert {*found.table[found.table["metric"] == "event_messages"]["verdict"]} == {"differs"}


def test_a_comparison_is_one_line_in_a_terminal_and_says_no_json() -> None:
    found = compare_results({"a": results(30.0), "b": results(20.0, seeds=(1, 2))}, ["entries"])
    assert repr(found) == "Comparison: a and b; 2 settings, 1 differ; 4 pairs of runs, 2 with equal traces"
    assert "<table" in found._repr_html_()
    texts = [*found.lines(), *found.first_difference.values(), *(cell for row in found.rows() for cell in row)]
    assert not [text for text in texts if "{" in text]
    assert found.lines()[:2] == [
        "a (out): 2 settings × 3 seeds, runs not kept",
        "b (out): 2 settings × 2 seeds, runs not kept",
    ]


@pytest.mark.parametrize("width", [80, 100])
def test_a_table_fits_and_no_number_is_shortened(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {STRATEGY.replace(".", "__"): "covering", "routing__advertisements": "covering"}
    parts = [
        hashed(
            {
                (point(**names, faults__state=state), seed): {"entries": size + seed**3}
                for state in ("kept", "lost")
                for seed in (1, 2, 3)
            }
        )
        for size in (1_234_567.0, 22_345_678.0, 33_345_678.0)
    ]
    found = compare_results(dict(zip(("out/first", "out/second", "out/third"), parts, strict=True)), ["entries"])
    written = io.StringIO()
    monkeypatch.setattr(terminal, "OUT", Console(file=written, width=width))
    terminal.print_table(found.headers(), found.rows(), whole=2)
    lines = written.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    for row in found.rows():
        assert any(row[-2] in line and row[-1] in line for line in lines), row


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
    assert "covering.epsilon: 0.1 of the volume against 0" in capsys.readouterr().out
    assert (tmp_path / "compared" / "compare.csv").stat().st_size > 1000
    assert "<img" not in (tmp_path / "compared" / "compare.html").read_text()
    with pytest.raises(CoverlayError, match="same name"):
        run(folder, folder)
    with pytest.raises(CoverlayError, match="has no name: write NAME=FOLDER"):
        run(f"={folder}", folder)
    with pytest.raises(CoverlayError, match="--by compares settings of one folder"):
        run(f"a={folder}", f"b={folder}", by="covering.epsilon")


@pytest.mark.spark
def test_expect_equal_may_come_first_and_what_cannot_be_written_is_a_sentence(
    analysed: Summary, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = f"a={analysed.out}", f"b={analysed.out}"
    out = ["--out", str(tmp_path / "compared")]
    option = "--expect-equal"
    for words in ([option, one, other], [one, other, option], [option, "metrics", one, other]):
        assert main(["compare", *words, *out]) == 0, words
    assert "3 settings × 2 seeds" in capsys.readouterr().out
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none")):
        assert main(["compare", one, other, "--out", str(path)]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"coverlay: {path} cannot be written: ")
        assert error.count("\n") == 1
