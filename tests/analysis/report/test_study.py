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
    CHEAPER,
    EXACT,
    MAYBE,
    NOTHING,
    PAYS,
    Case,
    against_one,
    is_study,
    places_of,
    sensitivity,
    study,
)
from analysis.report.study_pictures import bound_rows, found_rows, kept_rows, pictures
from analysis.report.study_words import (
    bound,
    grid,
    in_text,
    in_words,
    kinds,
    row_cells,
    sensitivity_rows,
    sensitivity_sentence,
    verdicts,
)
from analysis.report.summary import Summary
from analysis.report.thresholds import Thresholds
from coverlay import CoverlayError
from tests.analysis.report.summaries import BUDGETS, NONE, made, search, sweep


def sentence(case: Case) -> str:
    return " ".join(str(in_words(case, verdict)) for verdict in case.verdicts)


def overall(cases: list[Case]) -> str:
    return " ".join(map(str, verdicts(cases)))


EPSILONS = (0.001, 0.01, 0.1, 0.2, 0.5)


def test_it_pays_where_a_cheap_search_keeps_nearly_all_away() -> None:
    (case,) = study(made(sweep(0.2, 100.0)))
    (verdict,) = case.verdicts
    assert verdict.what == PAYS
    assert case.away == pytest.approx(0.9)
    row = case.rows[1]
    assert row.kept.value == pytest.approx((NONE - 100) / (NONE - 90))
    assert row.costs["in memory"].mean() == pytest.approx(0.4), "two checks per subscription"
    assert row.ratio["in memory"].value == pytest.approx(0.2)
    assert sentence(case) == (
        "In memory budget 16 = budget 32 = budget 64 and 2 more pay: 98.8 % of the saving for 20 % of the cost of "
        "exact search (auto, 2 µs per subscription)."
    )


def test_equal_searches_share_the_first_place_and_so_do_those_that_seeds_do_not_tell_apart() -> None:
    def cheapest(*costs: float, wobble: float = 0.0) -> str:
        points = [search("auto", 1.0, 90.0, recall=1.0)]
        points += [search("budget", cost, 100.0, budget=budget) for budget, cost in zip(BUDGETS, costs, strict=True)]
        summary = made(points)
        apart = summary.runs["point"].str.contains('"covering.budget": 32')
        noisy = summary.runs["check_time"] + apart * wobble * (summary.runs["seed"] - 2)
        (case,) = study(replace(summary, runs=summary.runs.assign(check_time=noisy)))
        return sentence(case)

    assert "In memory budget 16 = budget 64 pay:" in cheapest(0.2, 0.3, 0.2, 0.3, 0.3)
    assert "In memory budget 16 pays" in cheapest(0.2, 0.22, 0.3, 0.3, 0.3)
    assert "In memory budget 16 ≈ budget 32 pay:" in cheapest(0.2, 0.22, 0.3, 0.3, 0.3, wobble=0.05)


def test_a_search_that_costs_as_much_as_exact_search_is_a_tie_and_one_that_may_is_chance() -> None:
    (case,) = study(made(sweep(1.0, 90.0)))
    assert case.verdicts[0].what == EXACT
    assert "costs as much with every seed." in sentence(case)
    assert [cell.text for cell in grid([case])[1][0][2]] == ["="]
    assert [cell.text for cell in grid(study(made(sweep(0.998, 90.0))))[1][0][2]] == ["0.998"], "no tie"
    summary = made(sweep(0.9, 90.0))
    noisy = summary.runs["check_time"] * (1 + 0.1 * (summary.runs["seed"] - 2) * (summary.runs["method"] == "budget"))
    (case,) = study(replace(summary, runs=summary.runs.assign(check_time=noisy)))
    assert case.verdicts[0].what == EXACT
    assert "costs 90 % ± 17.7 of that, which may be chance." in sentence(case)
    assert [cell.text for cell in grid([case])[1][0][2]] == ["~0.9"]


def test_simple_routing_sends_what_the_record_says_not_everything_everywhere() -> None:
    (case,) = study(made(sweep(0.2, 100.0), simple_entries=450))  # as where each source has a tree of its own
    assert case.away == pytest.approx(1 - 90 / 450)
    assert case.rows[1].kept.value == pytest.approx((450 - 100) / (450 - 90))


@pytest.mark.parametrize(
    ("cost", "messages", "what", "said"),
    [
        (
            0.6,
            100.0,
            CHEAPER,
            "and 2 more are cheaper than exact search, but too little to pay: 98.8 % of the saving for 60 %",
        ),
        (
            0.2,
            200.0,
            EXACT,
            "In memory use exact search (auto, 2 µs per subscription): no approximation keeps at least 95 %",
        ),
    ],
)
def test_it_does_not_pay_where_it_costs_or_loses_too_much(cost: float, messages: float, what: str, said: str) -> None:
    (case,) = study(made(sweep(cost, messages)))
    assert [verdict.what for verdict in case.verdicts] == [what]
    assert said in sentence(case)
    kinder = Thresholds(keeps=0.8, cheaper=0.7)
    assert [verdict.what for verdict in study(made(sweep(cost, messages)), kinder)[0].verdicts] == [PAYS]


def test_an_approximation_has_to_beat_the_cheapest_exact_search() -> None:
    points = [*sweep(0.2, 100.0), search("packed", 0.3, 90.0)]
    (case,) = study(made(points))
    assert case.verdicts[0].exact.row.method == "packed"
    assert case.verdicts[0].what == CHEAPER
    assert [row.exact for row in case.rows[:3]] == [True, True, False]


def test_what_seeds_do_not_show_does_not_pay() -> None:
    (sure,), (unsure,) = (study(made(sweep(0.2, 110.0, wobble=wobble))) for wobble in (0.0, 0.2))
    assert sure.verdicts[0].what == PAYS
    assert unsure.rows[1].kept.value == pytest.approx(sure.rows[1].kept.value)
    assert unsure.verdicts[0].what == MAYBE, "the interval reaches below the threshold"
    assert "; 5 seeds do not settle it." in sentence(unsure)
    assert "in none of 2 workloads; it may pay in 2 (all); nothing that keeps enough is cheaper." in overall(
        [unsure] * 2
    )


def test_one_seed_makes_nothing_sure() -> None:
    summary = made(sweep(0.2, 100.0))
    (case,) = study(replace(summary, runs=summary.runs[summary.runs["seed"] == 0]))
    assert case.seeds == 1
    assert case.verdicts[0].what == MAYBE
    assert "; one seed does not settle it." in sentence(case)
    assert all(row["low"] == row["y"] == row["high"] for row in kept_rows(case, places_of([case])[:1]))
    assert not any(count[places_of([case])[0]] for _, count in sensitivity([case]))


def test_intervals_are_those_of_student() -> None:
    found = against_one(np.array([1.0, math.nan, 2.0, 3.0]))
    assert (found.n, found.value) == (3, 2.0)
    assert found.high - 2.0 == pytest.approx(4.303 / math.sqrt(3), rel=1e-3)
    one = against_one(np.array([4.0]))
    assert one.value == 4.0
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert math.isnan(against_one(np.array([math.nan])).value)


def test_storage_is_charged_from_the_counts_of_the_same_runs(tmp_path: Path) -> None:
    points = [search("auto", 1.0, 90.0, pages=10.0, trips=10.0)]
    points += [search("budget", 0.9, 95.0, budget=budget, pages=2.0, trips=1.0) for budget in BUDGETS]
    prices = {"xeon": {"page": 0.0, "round_trip": 0.0}, "disk": {"page": 90.0, "round_trip": 0.0}}
    (tmp_path / BOUNDS_FILE).write_text(json.dumps({"families": [], "profiles": prices}))
    (case,) = study(replace(made(points), out=tmp_path))
    assert [verdict.what for verdict in case.verdicts] == [CHEAPER, PAYS]
    assert case.rows[1].costs["on disk"].mean() == pytest.approx(2 * (0.9 + 180))
    assert "On disk budget 16 = budget 32 = budget 64 and 2 more pay: 99.4 % of the saving for 20.1 %" in sentence(case)
    in_memory, on_disk, _ = verdicts([case] * 4)
    assert str(in_memory) == (
        "In memory approximation pays in none of 4 workloads; in 4 what keeps enough is cheaper than exact search, at "
        "90 % of its cost."
    )
    assert (
        str(on_disk) == "On disk approximation pays in 4 of 4 workloads (all), for 20.1 % of the cost of exact search."
    )
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
    costs = [row.costs["on another machine"].mean() for row in case.rows]
    assert costs[0] == pytest.approx(2 * (1.0 + 3.0)), "only a round trip is charged besides"
    assert costs[1] == pytest.approx(2 * (1.5 * 0.4 + 1000 * 0.0001 + 3.0))
    with pytest.raises(CoverlayError, match="cannot be worked out for covering method 'budget'"):
        study(summary, profiles={"new": Price(0.0, 0.0, {"packed": new})})


def test_rows_compared_inside_ranges_are_charged_under_another_profile(tmp_path: Path) -> None:
    """10 probes of 1 µs and 100 candidates of .01 µs take 11 of 12 µs; the one search takes 1 µs."""
    names = ("kdtree", "kdtree-epsilon")
    old, new = ({"check": 1.0, "probe": 1.0, "candidate": price} for price in (0.01, 0.02))
    charged = {"page": 0.0, "round_trip": 0.0, "covering": dict.fromkeys(names, old)}
    (tmp_path / BOUNDS_FILE).write_text(json.dumps({"families": [], "profiles": {"old": charged}}))
    points = [search("kdtree", 12.0, 90.0), *(search("kdtree", 12.0, 95.0, epsilon=e) for e in EPSILONS)]
    runs = made(points).runs.assign(probes_per_check=10.0, candidates_per_check=100.0)
    summary = replace(made(points), out=tmp_path, runs=runs)
    (case,) = study(summary, profiles={"new": Price(0.0, 0.0, dict.fromkeys(names, new))})
    assert case.rows[0].costs["in memory"].mean() == pytest.approx(2 * (1 + 10 + 2))


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
        costs = [case.rows[0].costs[place].mean() for place in ("in memory", "on disk")]
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
    assert str(verdicts(cases)[0]) == (
        "In memory approximation pays in 1 of 2 workloads: n = 20,000, by budget 16 = budget 32 = budget 64 and 2 more "
        "(98.8 % of the saving for 20 % of the cost)."
    )
    headers, rows = in_text(cases)
    assert headers == ["workload", "exact saves", "in memory"]
    assert rows == [["n = 1,000", "90 %", "0.6"], ["n = 20,000", "90 %", "0.2 ✓"]]
    assert [[cell.tone for cell in cells] for _, _, cells in grid(cases)[1]] == [["below"], ["pays"]]


def test_the_grid_says_where_nothing_keeps_enough_where_nothing_is_covered_and_what_was_not_run() -> None:
    wide, narrow = ({"workload.width": width, "workload.attributes": 4} for width in ("wide", "narrow"))
    few = [search("auto", 1.0, NONE - 1.0), *(search("budget", 0.1, NONE, budget=b) for b in BUDGETS)]
    points = []
    for fixed, size, settings in ((wide, 10, sweep(0.2, 500.0)), (wide, 99, few), (narrow, 99, sweep(2.0, 90.0))):
        points += [({**keys, **fixed, "workload.subscriptions": size}, metrics) for keys, metrics in settings]
    cases = study(made(points))
    rows = {name: [(cell.text, cell.tone) for cell in cells] for name, _, cells in grid(cases)[1]}
    assert rows == {
        "narrow, d = 4, n = 99": [("2", "plain")],
        "wide, d = 4, n = 10": [("none", "nothing")],
        "wide, d = 4, n = 99": [("·", "nothing")],
    }
    assert "Hardly anything is covered in 1 of 3: wide, d = 4." in overall(cases)
    assert kinds(cases) == "narrow, d = 4; wide, d = 4"


def test_nothing_to_find_is_nothing_to_save() -> None:
    points = [search("auto", 1.0, NONE - 1.0), *(search("budget", 0.1, NONE, budget=b) for b in BUDGETS)]
    (case,) = study(made(points))
    assert case.verdicts[0].what == NOTHING
    assert sentence(case) == "In memory exact covering saves 0.111 % of the messages: hardly anything is covered."
    assert "Hardly anything is covered in 1 of 1" in overall([case])


def test_where_simple_routing_is_unknown_entries_stand_in() -> None:
    (case,) = study(made(sweep(0.2, 100.0), unsubscribe_messages=3.0))
    assert case.rows[1].kept.value == pytest.approx((1 - 100 / NONE) / (1 - 90 / NONE))


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
    assert str(sensitivity_sentence(cases)) == (
        "With other thresholds (from 99 % of the saving for 25 % of the cost to 80 % for 90 %) it pays in "
        "memory 0 to 1 of 1."
    )


def test_titles_say_what_was_held_fixed() -> None:
    fixed = {"workload.kind": "uniform", "workload.width": "narrow", "workload.attributes": 1}

    def titles(*equality: float) -> list[str]:
        settings = [{**fixed, "workload.equality": share} for share in equality]
        return [case.title for case in study(made([({**k, **s}, m) for s in settings for k, m in sweep(0.2, 100.0)]))]

    assert titles(0.5, 0.8) == [f"narrow uniform, d = 1, equality = {share}" for share in (0.5, 0.8)]
    assert titles(0.8) == ["narrow uniform, d = 1"], "what all share tells none from another"


def test_no_study_without_enough_approximations_or_without_exact() -> None:
    points = sweep(0.2, 100.0)
    assert is_study(study(made(points)))
    assert not is_study(study(made(points[:5]))), "it has verdicts, but is about something else too"
    assert study(made(points[:5]))[0].verdicts[0].what == PAYS
    assert study(made(points[1:])) == study(made(points[:1])) == []


def test_what_routes_otherwise_is_not_compared() -> None:
    """Active covering keeps fewer entries and sends more messages, whatever searches for covers."""
    points = sweep(0.2, 100.0)
    active = [({**keys, "routing.mode": "active"}, metrics | {"control_messages": 300.0}) for keys, metrics in points]
    lazy = [({**keys, "routing.mode": "lazy"}, metrics) for keys, metrics in points]
    summary = made([*lazy, *active[:1]])
    (case,) = study(summary)
    assert len(case.rows) == 6
    assert case.away == pytest.approx(0.9)
    assert case.title == "all"
    assert [case.title for case in study(made([*lazy, *active]))] == ["active", "lazy"]


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
    assert (memory.what, memory.best and memory.best.row.name) == (PAYS, "budget 16")
    assert (next_key.exact.row.method, next_key.what) == ("bigmin", EXACT)
    assert next_key.best is not None
    assert next_key.best.row.ratio["next-key store"].value == pytest.approx(30.0 / 20.0)
    assert (yes_or_no.exact.row.method, yes_or_no.what) == ("zorder-emulated", PAYS)
    assert yes_or_no.best is not None
    assert yes_or_no.best.row.name == "zorder-emulated, ε = 0.2 of the volume"
    assert yes_or_no.best.row.ratio["yes-or-no store"].value == pytest.approx(0.3)
    bigmin = next(row for row in case.rows if row.method == "bigmin")
    assert set(bigmin.costs) == {"in memory", "next-key store"}
    assert (
        "In a store that says yes or no of a range zorder-emulated at ε = 0.2 of the volume pays: 98.8 % of the saving "
        "for 30 % of the cost of exact search (zorder-emulated, 200 lookups per subscription)."
    ) in sentence(case)
    cells = {title: text for title, _, text in row_cells(case, bigmin, places_of([case]))}
    assert (cells["lookups/subscription"], cells["× exact, next-key store"]) == ("40", "1")
    assert cells["× exact, yes-or-no store"] == "–"


def test_in_the_slides_model_searches_are_compared_at_the_resolution_that_is_given(tmp_path: Path) -> None:
    coarse = [on_curve(10.0, 90.0, recall=1.0), *(on_curve(9.0, 95.0, epsilon=e) for e in EPSILONS)]
    coarse.append(on_curve(20.0, 90.0, recall=1.0, bits=8))  # given too, but not comparable with finer keys
    fine = [on_curve(1000.0, 90.0, recall=1.0, bits=16), *(on_curve(100.0, 95.0, epsilon=e, bits=16) for e in EPSILONS)]
    (case,) = study(with_theory(made([search("auto", 1.0, 90.0), *coarse, *fine]), tmp_path, bits=5.0, bits16=500.0))
    verdicts = {verdict.place.title: verdict for verdict in case.verdicts}
    assert verdicts["yes-or-no store"].what == CHEAPER, (
        "exact search with coarse keys is cheaper than all with fine ones"
    )
    model = verdicts["slides’ model"]
    assert (model.what, model.exact.row.name) == (PAYS, "exact (zorder-emulated, bits 16)")
    assert {row.given_bits for row in case.rows if "slides’ model" in row.costs} == {"8", "16"}
    drawn = kept_rows(case, STORES)
    assert {row["series"] for row in drawn if row["kind"] == "measured"} == {
        "zorder-emulated, ε of the volume",
        "zorder-emulated, 8 bits",
        "zorder-emulated, 16 bits, ε of the volume",
    }
    (lower,) = (row for row in drawn if row["series"] == "slides’ lower bound, exact, 16 bits")
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
        "zorder-emulated, cap of 64, 20.0 % searched",
        "zorder-emulated, cap of 64, 20.0 % searched",
        "zorder-emulated, ε = 0.1 of the volume, probe cap 64",
        "zorder-emulated, ε = 0.2 of the volume, probe cap 64",
        "zorder-emulated, ε = 0.5 of the volume, probe cap 64",
    ]
    assert [math.isnan(row.epsilon) for row in found] == [True, True, False, False, False]
    assert not any("ε = 0.01" in row["name"] for row in kept_rows(case, places_of([case])[:1]))
