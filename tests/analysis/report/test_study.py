"""The study of approximate covering on sweeps whose right answer is plain to see, and the bounds beside it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.report.costs import BOUNDS_FILE
from analysis.report.places import IN_PROBES, STORES, Price
from analysis.report.study import (
    EXACT,
    MAYBE,
    NOTHING,
    PAYS,
    Interval,
    places_of,
    sensitivity,
    study,
)
from analysis.report.study_grid import grid, in_text
from analysis.report.study_pictures import bound_rows, found_rows, kept_rows, pictures
from analysis.report.study_words import (
    bound,
    by_size,
    kinds,
    overall,
    row_cells,
    sensitivity_rows,
    sensitivity_sentence,
    sentence,
)
from analysis.report.summary import Summary
from analysis.report.thresholds import Thresholds
from coverlay import CoverlayError
from tests.analysis.report.summaries import BUDGETS, NONE, made, search, sweep

EPSILONS = (0.001, 0.01, 0.1, 0.2, 0.5)


def test_it_pays_where_a_cheap_search_keeps_nearly_all_away() -> None:
    (case,) = study(made(sweep(0.2, 100.0)))
    (verdict,) = case.verdicts
    assert verdict.what == PAYS
    assert case.away == pytest.approx(0.9)
    row = case.rows[1]
    assert row.kept.mean == pytest.approx((NONE - 100) / (NONE - 90))
    assert row.cost["in memory"].mean == pytest.approx(0.4), "two checks per subscription"
    assert row.ratio["in memory"].mean == pytest.approx(0.2)
    assert sentence(case) == (
        "Exact covering keeps 90 % of the messages away. In memory approximation pays: exact search by auto takes 2 µs "
        "per subscription, budget 16 keeps 98.8 % of the saving for 20 % of that (400 ns)."
    ).replace("400 ns", "0.4 µs")
    said = "In memory approximation pays in 1 of 1 workloads, at 20 % of exact search's cost, by budget 16"
    assert said in overall([case])


def test_searches_that_pay_equally_often_are_named_in_the_order_of_their_workloads() -> None:
    points = []
    for attributes, cheapest in enumerate((64, 16, 256)):
        for keys, metrics in sweep(0.2, 100.0):
            cost = 0.1 if keys.get("covering.budget") == cheapest else metrics["check_time"]
            points.append(({**keys, "workload.attributes": attributes}, {**metrics, "check_time": cost}))
    assert "by budget 64; budget 16; budget 256." in overall(study(made(points)))


def test_simple_routing_sends_what_the_record_says_not_everything_everywhere() -> None:
    (case,) = study(made(sweep(0.2, 100.0), simple_entries=450))  # as where each source has a tree of its own
    assert case.away == pytest.approx(1 - 90 / 450)
    assert case.rows[1].kept.mean == pytest.approx((450 - 100) / (450 - 90))


@pytest.mark.parametrize(("cost", "messages"), [(0.6, 100.0), (0.2, 200.0)])
def test_it_does_not_pay_where_it_costs_or_loses_too_much(cost: float, messages: float) -> None:
    (case,) = study(made(sweep(cost, messages)))
    assert [verdict.what for verdict in case.verdicts] == [EXACT]
    assert "use exact covering" in sentence(case)
    assert "pays in none of 1 workloads" in overall([case])
    kinder = Thresholds(keeps=0.8, cheaper=0.7)
    assert [verdict.what for verdict in study(made(sweep(cost, messages)), kinder)[0].verdicts] == [PAYS]


def test_an_approximation_has_to_beat_the_cheapest_exact_search() -> None:
    points = [*sweep(0.2, 100.0), search("packed", 0.3, 90.0)]
    (case,) = study(made(points))
    assert case.verdicts[0].exact.method == "packed"
    assert case.verdicts[0].what == EXACT
    assert [row.exact for row in case.rows[:3]] == [True, True, False]


def test_what_seeds_do_not_show_does_not_pay() -> None:
    (sure,), (unsure,) = (study(made(sweep(0.2, 110.0, wobble=wobble))) for wobble in (0.0, 0.2))
    assert sure.verdicts[0].what == PAYS
    assert unsure.rows[1].kept.mean == pytest.approx(sure.rows[1].kept.mean)
    assert unsure.verdicts[0].what == MAYBE, "the interval reaches below the threshold"
    assert "which 5 seeds do not make sure" in sentence(unsure)
    assert "pays in none of 1 workloads, and may pay in 1" in overall([unsure])


def test_one_seed_makes_nothing_sure() -> None:
    summary = made(sweep(0.2, 100.0))
    (case,) = study(replace(summary, runs=summary.runs[summary.runs["seed"] == 0]))
    assert case.seeds == 1
    assert case.verdicts[0].what == MAYBE
    assert "which one seed does not make sure" in sentence(case)
    assert "1 of 1 workloads have one seed only" in overall([case])
    assert all(row["low"] == row["y"] == row["high"] for row in kept_rows(case, places_of([case])[:1]))
    assert not any(count[places_of([case])[0]] for _, count in sensitivity([case]))


def test_intervals_are_those_of_student() -> None:
    found = Interval.of(np.array([1.0, math.nan, 2.0, 3.0]))
    assert found.mean == 2.0
    assert found.high - 2.0 == pytest.approx(4.303 / math.sqrt(3), rel=1e-3)
    one = Interval.of(np.array([4.0]))
    assert one.mean == 4.0
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert math.isnan(Interval.of(np.array([math.nan])).mean)


def test_storage_is_charged_from_the_counts_of_the_same_runs(tmp_path: Path) -> None:
    points = [search("auto", 1.0, 90.0, pages=10.0, trips=10.0)]
    points += [search("budget", 0.9, 95.0, budget=budget, pages=2.0, trips=1.0) for budget in BUDGETS]
    prices = {"xeon": {"page": 0.0, "round_trip": 0.0}, "disk": {"page": 90.0, "round_trip": 0.0}}
    (tmp_path / BOUNDS_FILE).write_text(json.dumps({"families": [], "profiles": prices}))
    (case,) = study(replace(made(points), out=tmp_path))
    assert [verdict.what for verdict in case.verdicts] == [EXACT, PAYS]
    assert case.rows[1].cost["on disk"].mean == pytest.approx(2 * (0.9 + 180))
    assert "On disk approximation pays" in sentence(case)
    nobody = "In memory approximation pays in none of 1 workloads; what keeps enough costs 90 % of exact"
    assert nobody in overall([case])
    assert "On disk approximation pays in 1 of 1" in overall([case])
    assert len(kept_rows(case, places_of([case])[1:])) == 6
    assert [row["front"] for row in kept_rows(case, places_of([case])[1:])][:2] == [True, True]
    assert not any(row["front"] for row in kept_rows(case, places_of([case])[1:])[2:]), "equal to one that is on it"


def test_costs_under_another_profile_follow_from_the_counts_and_what_was_charged(tmp_path: Path) -> None:
    """A check searched three halves of a partition on average: 1.5 × 0.2 µs, and a probe took 0.7 / 1000 µs."""
    old, new = {"check": 0.2, "probe": 0.0007}, {"check": 0.4, "probe": 0.0001}
    points = [search("packed", 1.0, 90.0), *(search("budget", 1.0, 95.0, budget=budget) for budget in BUDGETS)]
    charged = {"page": 0.0, "round_trip": 0.0, "covering": {"packed": old, "budget": old}}
    (tmp_path / BOUNDS_FILE).write_text(json.dumps({"families": [], "profiles": {"old": charged}}))
    summary = replace(made(points), out=tmp_path)
    profiles = {"new": Price(0.0, 3.0, {"packed": old, "budget": new})}
    (case,) = study(summary, profiles=profiles)
    assert [place.column for place in places_of([case])] == ["new"]
    costs = [row.cost["on another machine"].mean for row in case.rows]
    assert costs[0] == pytest.approx(2 * (1.0 + 3.0)), "only a round trip is charged besides"
    assert costs[1] == pytest.approx(2 * (1.5 * 0.4 + 1000 * 0.0001 + 3.0))
    with pytest.raises(CoverlayError, match="cannot be worked out for covering method 'budget'"):
        study(summary, profiles={"new": Price(0.0, 0.0, {"packed": new})})


def test_rows_compared_inside_ranges_are_charged_under_another_profile(tmp_path: Path) -> None:
    """10 probes of 1 µs and 100 candidates of .01 µs take 11 of 12 µs; the one search takes 1 µs."""
    old, new = ({"check": 1.0, "probe": 1.0, "candidate": price} for price in (0.01, 0.02))
    charged = {"page": 0.0, "round_trip": 0.0, "covering": {"zorder": old}}
    (tmp_path / BOUNDS_FILE).write_text(json.dumps({"families": [], "profiles": {"old": charged}}))
    points = [search("zorder", 12.0, 90.0), *(search("zorder", 12.0, 95.0, epsilon=e) for e in EPSILONS)]
    runs = made(points).runs.assign(probes_per_check=10.0, candidates_per_check=100.0)
    summary = replace(made(points), out=tmp_path, runs=runs)
    (case,) = study(summary, profiles={"new": Price(0.0, 0.0, {"zorder": new})})
    assert case.rows[0].cost["in memory"].mean == pytest.approx(2 * (1 + 10 + 2))


@pytest.mark.parametrize("swept", ["broker.service.profile", "broker.service"])
def test_where_profiles_are_swept_each_run_is_charged_by_its_own(tmp_path: Path, swept: str) -> None:
    """One page per check: on disk its 90 µs are in the time of the run already."""
    prices = {"xeon": {"page": 0.0, "round_trip": 0.0}, "disk": {"page": 90.0, "round_trip": 0.0}}
    (tmp_path / BOUNDS_FILE).write_text(json.dumps({"families": [], "profiles": prices}))
    points = []
    for name, time in (("xeon", 1.0), ("disk", 91.0)):
        own = {swept: name if swept.endswith("profile") else {"kind": "work", "profile": name}}
        some = [search("packed", time, 90.0, pages=1.0, trips=0.0)]
        some += [search("budget", time, 95.0, budget=budget, pages=1.0, trips=0.0) for budget in BUDGETS]
        points += [({**keys, **own}, metrics) for keys, metrics in some]
    summary = replace(made(points), out=tmp_path)
    for case in study(summary):
        costs = [case.rows[0].cost[place].mean for place in ("in memory", "on disk")]
        assert costs == pytest.approx([2 * 1.0, 2 * 91.0])
    (tmp_path / BOUNDS_FILE).write_text(json.dumps({"families": [], "profiles": {"xeon": prices["xeon"]}}))
    with pytest.raises(CoverlayError, match="no prices of the profile 'disk'"):
        study(summary)
    (tmp_path / BOUNDS_FILE).write_text("{")
    with pytest.raises(CoverlayError, match="cannot be read"):
        study(summary)


def test_sizes_and_verdicts_are_told_in_sentences_and_rows() -> None:
    points = []
    for size, cost in ((1000, 0.6), (20_000, 0.2)):
        points += [({**keys, "workload.subscriptions": size}, metrics) for keys, metrics in sweep(cost, 100.0)]
    cases = study(made(points))
    assert [case.title for case in cases] == ["n = 1,000", "n = 20,000"]
    assert by_size(cases) == [
        "With 1,000 subscriptions approximation pays in none of 1 workloads.",
        "With 20,000 subscriptions approximation pays in memory in 1 (all) of 1 workloads.",
    ]
    assert by_size(cases[:1]) == []
    found = grid(cases)
    assert (found.places, found.sizes) == (("in memory",), (1000, 20_000))
    ((name, away, cells),) = found.rows
    assert (name, away) == ("all", "90 %")
    assert [(cell.text, cell.tone, cell.case) for cell in cells] == [("0.6", "below", 0), ("0.2", "pays", 1)]
    assert cells[1].words == "pays: budget 16 keeps 98.8 % of the saving for 20 % of auto's 2 µs"
    ((headers, rows),) = in_text(cases)
    assert headers == ["in memory", "exact covering saves", "n = 1,000", "n = 20,000"]
    assert rows == [["all", "90 %", "0.6", "0.2 ✓"]]


def test_the_grid_says_where_nothing_keeps_enough_where_nothing_is_covered_and_what_was_not_run() -> None:
    wide, narrow = ({"workload.width": width, "workload.attributes": 4} for width in ("wide", "narrow"))
    few = [search("auto", 1.0, NONE - 1.0), *(search("budget", 0.1, NONE, budget=b) for b in BUDGETS)]
    points = []
    for fixed, size, settings in ((wide, 10, sweep(0.2, 500.0)), (wide, 99, few), (narrow, 99, sweep(2.0, 90.0))):
        points += [({**keys, **fixed, "workload.subscriptions": size}, metrics) for keys, metrics in settings]
    cases = study(made(points))
    rows = {name: [(cell.text, cell.tone) for cell in cells] for name, _, cells in grid(cases).rows}
    assert rows == {
        "narrow, d = 4": [("", "nothing"), ("2", "above")],
        "wide, d = 4": [("none", "none"), ("·", "nothing")],
    }
    assert kinds(cases) == "narrow, d = 4; wide, d = 4"


def test_nothing_to_find_is_nothing_to_save() -> None:
    points = [search("auto", 1.0, NONE - 1.0), *(search("budget", 0.1, NONE, budget=b) for b in BUDGETS)]
    (case,) = study(made(points))
    assert case.verdicts[0].what == NOTHING
    assert "There is hardly anything to find" in sentence(case)
    assert "In 1 there is hardly anything to cover" in overall([case])


def test_where_simple_routing_is_unknown_entries_stand_in() -> None:
    (case,) = study(made(sweep(0.2, 100.0), unsubscribe_messages=3.0))
    assert case.rows[1].kept.mean == pytest.approx((1 - 100 / NONE) / (1 - 90 / NONE))


def test_without_time_probes_are_counted() -> None:
    (case,) = study(made(sweep(0.2, 100.0), check_time=math.nan))
    assert case.verdicts[0].place.column == IN_PROBES
    assert "2,000 probes per subscription" in sentence(case)


def test_the_verdict_moves_with_the_thresholds() -> None:
    cases = study(made(sweep(0.4, 150.0)))  # 92.6 % for 40 %
    counts = {(t.keeps, t.cheaper): count[places_of(cases)[0]] for t, count in sensitivity(cases)}
    assert counts[0.9, 0.5] == 1
    assert counts[0.95, 0.5] == counts[0.9, 0.25] == 0
    assert ["90 %", "50 %", "1 of 1"] in sensitivity_rows(cases)
    assert "in memory 0 to 1" in sensitivity_sentence(cases)


def test_titles_say_what_was_held_fixed() -> None:
    fixed = {"workload.kind": "uniform", "workload.width": "narrow", "workload.attributes": 1, "workload.equality": 0.8}
    points = [({**keys, **fixed}, metrics) for keys, metrics in sweep(0.2, 100.0)]
    assert study(made(points))[0].title == "narrow uniform, d = 1, equality = 0.8"


def test_no_study_without_enough_approximations_or_without_exact() -> None:
    points = sweep(0.2, 100.0)
    assert study(made(points[:5])) == []
    assert study(made(points[1:])) == []


def on_curve(trips: float, messages: float, recall: float = 0.9, **given: Any) -> Any:
    """The greedy search: lookups per check, messages."""
    return search("zorder-emulated", 9.0, messages, trips=trips, recall=recall, **given)


def with_theory(summary: Summary, folder: Path, **by_bits: float) -> Summary:
    """The same with bounds beside it, by the bits that were given: the lower bound, from which the others follow."""
    bounds = {
        bits.removeprefix("bits"): {
            "dimensions": 4,
            "bits": 8,
            "regions": 400,
            "alpha": {"low": 0, "median": 1.0, "high": 3},
            "shortest": 17.0,
            "exact_lower": lower,
            "exact_runs": 2 * lower,
            "exact_cubes": 3 * lower,
            "upper": {f"{e:g}": 7.0 / e for e in EPSILONS},
            "greedy": {f"{e:g}": 3.0 / e for e in EPSILONS},
        }
        for bits, lower in by_bits.items()
    }
    file = {"families": [{"family": "{}", "bounds": bounds}], "profiles": {}}
    (folder / BOUNDS_FILE).write_text(json.dumps(file))
    return replace(summary, out=folder)


def test_bounds_stand_beside_curve_methods_only(tmp_path: Path) -> None:
    points = [search("auto", 1.0, 90.0), *(on_curve(100.0, 99.0, epsilon=e) for e in EPSILONS)]
    summary = made(points)
    (case,) = study(summary)
    assert case.bounds == {}
    (case,) = study(with_theory(summary, tmp_path, bits=123.0))
    assert [bound(case, row) for row in case.rows[1:3]] == [7000.0, 700.0]
    assert math.isnan(bound(case, case.rows[0]))
    cells = row_cells(case, case.rows[2], places_of([case]))
    assert [text for title, _, text in cells if title == "bound"] == ["700"]
    drawn = bound_rows(case, "")
    assert {row["kind"] for row in drawn} == {"measured", "theory"}
    assert len([row for row in drawn if row["series"] == "upper bound on approximate search"]) == 5


def test_in_a_store_of_sorted_keys_only_methods_that_can_live_there_compete_in_lookups() -> None:
    """An exact search in memory that reads one record would be the best of all, but cannot live in a store."""
    points = [
        search("auto", 1.0, 90.0, trips=1.0),
        search("bigmin", 2.0, 90.0, trips=20.0),
        on_curve(100.0, 90.0, recall=1.0),
        *(on_curve(50.0 - 100 * e, 100.0, epsilon=e) for e in EPSILONS[:4]),
        search("budget", 0.1, 90.0, trips=1.0, budget=16),
    ]
    (case,) = study(made(points))
    by_place = {verdict.place.title: verdict for verdict in case.verdicts}
    assert [*by_place] == ["in memory", "next-key store", "yes-or-no store"]
    memory, next_key, yes_or_no = by_place.values()
    assert (memory.what, memory.best and memory.best.name) == (PAYS, "budget 16")
    assert (next_key.exact.method, next_key.what) == ("bigmin", EXACT)
    assert next_key.keeper is not None
    assert next_key.keeper.ratio["next-key store"].mean == pytest.approx(30.0 / 20.0)
    assert (yes_or_no.exact.method, yes_or_no.what) == ("zorder-emulated", PAYS)
    assert yes_or_no.best is not None
    assert yes_or_no.best.name == "zorder-emulated, ε = 0.2 of the volume"
    assert yes_or_no.best.ratio["yes-or-no store"].mean == pytest.approx(0.3)
    bigmin = next(row for row in case.rows if row.method == "bigmin")
    assert set(bigmin.cost) == {"in memory", "next-key store"}
    assert (
        "In a store that says yes or no of a range approximation pays: exact search by zorder-emulated takes 200 "
        in (sentence(case))
    )
    cells = {title: text for title, _, text in row_cells(case, bigmin, places_of([case]))}
    assert (cells["lookups/subscription"], cells["× exact, next-key store"]) == ("40", "1")
    assert cells["× exact, yes-or-no store"] == "–"


def test_in_the_slides_model_searches_are_compared_at_the_resolution_that_is_given(tmp_path: Path) -> None:
    coarse = [on_curve(10.0, 90.0, recall=1.0), *(on_curve(9.0, 95.0, epsilon=e) for e in EPSILONS)]
    coarse.append(on_curve(20.0, 90.0, recall=1.0, bits=8))  # given too, but not comparable with finer keys
    fine = [on_curve(1000.0, 90.0, recall=1.0, bits=16), *(on_curve(100.0, 95.0, epsilon=e, bits=16) for e in EPSILONS)]
    (case,) = study(with_theory(made([search("auto", 1.0, 90.0), *coarse, *fine]), tmp_path, bits=5.0, bits16=500.0))
    verdicts = {verdict.place.title: verdict for verdict in case.verdicts}
    assert verdicts["yes-or-no store"].what == EXACT, "exact search with coarse keys is cheaper than all with fine ones"
    model = verdicts["slides’ model"]
    assert (model.what, model.exact.name) == (PAYS, "exact (zorder-emulated, bits 16)")
    assert {row.given_bits for row in case.rows if "slides’ model" in row.cost} == {"8", "16"}
    drawn = kept_rows(case, STORES)
    assert {row["series"] for row in drawn if row["kind"] == "measured"} == {
        "zorder-emulated",
        "zorder-emulated, 8 bits",
        "zorder-emulated, 16 bits",
    }
    (lower,) = (row for row in drawn if row["series"] == "slides’ lower bound on exact search, 16 bits")
    assert (lower["x"], lower["y"]) == (2 * 500.0, 1.0), "two checks per subscription"
    assert len([row for row in found_rows(case, STORES) if row["kind"] == "measured"]) == 13
    assert [picture["title"] for picture in pictures([case])] == [
        "Saving kept against the cost of searching, in memory",
        "Saving kept against lookups, sorted keys only",
        "Covers found against lookups, sorted keys only",
    ]


def test_where_a_cap_ended_searches_no_row_says_an_epsilon() -> None:
    points = [search("auto", 1.0, 90.0), search("bigmin", 1.0, 90.0)]
    for epsilon in EPSILONS:
        capped = 0.5 if epsilon < 0.1 else 0.0
        points.append(on_curve(9.0, 99.0, epsilon=epsilon, probe_cap=64, capped=capped, volume=0.2))
    (case,) = study(made(points))
    found = [row for row in case.rows if row.method == "zorder-emulated"]
    assert [row.name for row in found] == [
        "zorder-emulated, ε = 0.1 of the volume, probe cap 64",
        "zorder-emulated, ε = 0.2 of the volume, probe cap 64",
        "zorder-emulated, ε = 0.5 of the volume, probe cap 64",
        "zorder-emulated, cap of 64, 20.0 % searched",
        "zorder-emulated, cap of 64, 20.0 % searched",
    ]
    assert [math.isnan(row.epsilon) for row in found] == [False, False, False, True, True]
    assert not any("ε = 0.01" in row["name"] for row in kept_rows(case, places_of([case])[:1]))
