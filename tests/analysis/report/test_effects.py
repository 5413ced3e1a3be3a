"""Effects in words: nothing contradicts the pairs or is compared across factors, and no tie has a winner."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from analysis.report import factors
from analysis.report.answer import RATE, asked
from analysis.report.effects import CHANCE, DIFFERS, EQUAL, UNSURE, Best, Effect, Effects, baselines
from analysis.report.factors import factors_of
from analysis.report.page import Begun, begin
from analysis.report.summary import Summary
from analysis.report.table import alike, answering, table
from analysis.report.words import InTable, Missing, cards, comparisons, sentences
from analysis.spark import statistics
from analysis.spark.metrics import CATALOGUE
from sim.experiment.shipped import shipped
from tests.analysis.handmade import facts
from tests.analysis.report.checker import complaints

METRICS = ("entries", "event_messages", "latency_p99", "delivery_ratio", "switchover_mean", "unsubscribe_mean")
STRATEGY, STATE, BROKERS = "routing.strategy", "faults.state", "overlay.brokers"
FAILOVER, MODE, K = "routing.failover", "routing.mode", "matching.k"
LEVELS: dict[str, list[Any]] = {
    STRATEGY: ["simple", "covering", "flooding", "identity"],
    STATE: ["kept", "lost"],
    BROKERS: [10, 20, 40],
    FAILOVER: ["none", "recompute", "replace"],
    MODE: ["lazy", "active", "prune"],
    K: [1, 10],
}


@cache
def declared(strategy: str, method: str) -> dict[str, Any]:
    return facts({"routing": {"strategy": strategy}, "covering": {"method": method}})


def summary_of(values: dict[tuple[str, int], dict[str, float]]) -> Summary:
    """A summary of runs: (point, seed) → metrics."""
    runs = []
    for (point, seed), metrics in values.items():
        keys = json.loads(point)
        given_keys = {
            key: keys.get(key, default) for key, default in ((STRATEGY, "covering"), ("routing.mode", "lazy"))
        }
        labels = {"strategy": given_keys[STRATEGY], "mode": given_keys["routing.mode"], "overlay": "line"}
        labels |= {"method": keys.get("covering.method", "scan"), "epsilon": keys.get("covering.epsilon", 0.0)}
        labels |= declared(labels["strategy"], labels["method"])
        in_force = {STRATEGY: "covering", "routing.mode": "lazy", "covering.method": "scan"} | keys
        run = {"run": f"{point}-{seed}", "point": point, "seed": seed, "experiment": "e"}
        run |= {"settings": json.dumps(in_force)}
        runs.append({**run, **labels, **metrics})
    frame = pd.DataFrame(runs)
    given_metrics = sorted({name for metrics in values.values() for name in metrics})
    long = frame.melt(["point", "seed"], given_metrics, "metric", "value").astype({"value": float})
    unknown = [(one, name) for one in dict.fromkeys(frame["point"]) for name in CATALOGUE if name not in given_metrics]
    points = pd.concat([statistics.over_seeds(long), pd.DataFrame(unknown, columns=["point", "metric"])])
    empty = pd.DataFrame()
    return Summary(Path("out"), frame, points, empty, empty, empty, empty)


def point(**keys: Any) -> str:
    return json.dumps({key.replace("__", "."): value for key, value in keys.items()}, sort_keys=True)


@st.composite
def sweeps(draw: st.DrawFn) -> Summary:
    """Ties, interactions, constants, one seed, missing seeds, missing settings."""
    keys = draw(st.lists(st.sampled_from([*LEVELS]), min_size=1, max_size=3, unique=True))
    seeds = range(1, draw(st.integers(1, 4)) + 1)
    values = st.sampled_from([0.0, 1.0, 10.0, 10.0, 12.0, 500.0])  # few, so that ties are common
    effect = {key: {str(level): draw(values) for level in LEVELS[key]} for key in keys}
    noise, interacts = draw(st.sampled_from([0.0, 0.0, 3.0])), draw(st.booleans())
    found: dict[tuple[str, int], dict[str, float]] = {}
    for combination in product(*(LEVELS[key] for key in keys)):
        name = json.dumps(dict(zip(keys, combination, strict=True)), sort_keys=True)
        if draw(st.integers(0, 12)) == 0:
            continue
        for seed in seeds:
            total = sum(effect[key][str(level)] for key, level in zip(keys, combination, strict=True))
            total += 7.0 * interacts * (combination[0] == LEVELS[keys[0]][0]) * (combination[-1] == LEVELS[keys[-1]][0])
            luck = noise * draw(st.integers(-2, 2))
            if draw(st.integers(0, 15)):
                chosen = dict(zip(keys, combination, strict=True))
                found[name, seed] = {
                    "entries": total + 5 * seed + luck,
                    "event_messages": 9.0,
                    "latency_p99": luck + 20,
                    "delivery_ratio": 1.0 if chosen.get(STATE) == "kept" else 1.0 - total / 2000,
                    "switchover_mean": math.nan if chosen.get(FAILOVER, "none") == "none" else 7.0 + luck / 1e4,
                    "unsubscribe_mean": 30.0 + luck / 1e4,
                }
    return summary_of(found or {("{}", 1): dict.fromkeys(METRICS, 1.0)})


@settings(max_examples=40, deadline=None)
@given(sweeps())
def test_no_sentence_contradicts_the_pairs(summary: Summary) -> None:
    effects = Effects(summary)
    said = sentences(effects, METRICS)
    assert complaints(summary.runs, said) == []
    for sentence in said:
        for claim in sentence.of:
            if isinstance(claim, Missing):
                every = math.prod(len(factor.levels) for factor in effects.factors)
                assert claim.count == every - len(summary.order)
            if not isinstance(claim, Effect | Best):
                continue
            others = {key for factor in effects.factors if factor is not claim.factor for key in factor.keys}
            assert not others & {*claim.factor.keys}, "a comparison is about one factor"
    for card in cards(effects, METRICS):
        claim = card["of"]
        partly = getattr(claim, "verdict", "") == DIFFERS and {part.verdict for part in claim.parts} != {DIFFERS}
        assert ("beyond chance in" in card["text"]) == partly
        assert any(claim in sentence.of for sentence in said) or getattr(claim, "verdict", "") in (DIFFERS, UNSURE)
    constant = alike(effects, METRICS)
    assert "event messages" not in constant or "event_messages" not in answering(effects, METRICS)


@settings(max_examples=40, deadline=None)
@given(sweeps())
def test_keys_of_different_parts_are_one_factor_only_if_their_values_do_not_hang_together(summary: Summary) -> None:
    points = [json.loads(point) for point in summary.order]
    for factor in Effects(summary).factors:
        parts = {key.partition(".")[0].replace("covering", "routing") for key in factor.keys}
        hang_together = [
            nx.is_connected(nx.Graph([(("one", str(of.get(one))), ("other", str(of.get(other)))) for of in points]))
            for one, other in combinations(factor.keys, 2)
            if one.partition(".")[0] != other.partition(".")[0]
        ]
        assert len(parts) == 1 or not all(hang_together)


def test_a_missing_combination_makes_no_winner_of_the_smaller_workload() -> None:
    sizes = {("simple", 60): 900.0, ("simple", 240): 3600.0, ("covering", 60): 313.0, ("covering", 240): 1000.0,
             ("merging", 240): 800.0}  # fmt: skip
    runs = {
        (point(routing__strategy=name, workload__subscriptions=number), seed): {"entries": entries + seed}
        for (name, number), entries in sizes.items()
        for seed in (1, 2, 3)
    }
    summary = summary_of(runs)
    said = [str(sentence) for sentence in sentences(Effects(summary), ["entries"])]
    assert complaints(summary.runs, sentences(Effects(summary), ["entries"])) == []
    assert not any(sentence.startswith("Fewest") for sentence in said), "merging might have fewer with 60 too"
    change = "routing-table entries −72.2 % (subscriptions 240) to −65.1 % (subscriptions 60)"
    assert f"Covering against simple routing: {change}." in said
    only = "routing-table entries 3,602 → 802 (−77.7 %) with subscriptions 240"
    assert f"Merging against simple routing: {only}." in said
    assert said[-1] == "Not run: merging, subscriptions 60."


def test_a_change_of_the_same_size_may_be_chance_in_some_settings() -> None:
    runs = {}
    for state, noise in (("kept", 0.0), ("lost", 40.0)):
        for seed in (1, 2, 3):
            runs[point(routing__strategy="simple", faults__state=state), seed] = {"entries": 100.0}
            covering = 80.0 + noise * (seed - 2)
            runs[point(routing__strategy="covering", faults__state=state), seed] = {"entries": covering}
    summary = summary_of(runs)
    said = sentences(Effects(summary), ["entries"])
    assert complaints(summary.runs, said) == []
    change = "routing-table entries −20.0 % ± 99.4 whatever the state, beyond chance in 1 of 2"
    assert f"Covering against simple routing: {change}." in map(str, said)


def test_where_a_cap_ended_searches_a_level_has_its_name_whatever_the_other_keys() -> None:
    """And the share searched is that of all its settings; the level with an ε of 0 is not exact."""
    runs = {
        (point(covering__epsilon=epsilon, covering__method="zorder-emulated", overlay__brokers=n), seed): {
            "entries": 9.0 + n, "capped": 0.9, "volume": 0.2 if n == 3 else 0.3,
        }
        for epsilon in (0.0, 0.1)
        for n in (3, 4)
        for seed in (1, 2)
    }  # fmt: skip
    effects = Effects(summary_of(runs))
    search = next(factor for factor in effects.factors if "covering.epsilon" in factor.keys)
    name = "covering, cap, 20.0 % to 30.0 % searched"
    assert [*search.names.values()] == [f"{name} (covering.epsilon = {epsilon})" for epsilon in ("0", "0.1")]
    assert (search.title, search.numbers) == ("search", [])
    shown = table(effects, ["entries"])
    assert {row[0] for row in shown.rows} == {*search.names.values()}


def test_a_swept_epsilon_says_of_what_it_is_a_share() -> None:
    runs = {
        (point(covering__epsilon=epsilon, covering__method="zorder-emulated"), seed): {"entries": 9.0 + epsilon}
        for epsilon in (0.0, 0.1)
        for seed in (1, 2)
    }
    effects = Effects(summary_of(runs))
    assert table(effects, ["entries"]).headers[0] == "ε of the volume"
    assert str(sentences(effects, ["entries"])[0]).startswith("ε of the volume 0 → 0.1: routing-table entries")


@pytest.mark.parametrize("sizes", [(10,), (10, 20)])
def test_many_comparisons_of_one_of_several_factors_are_a_table(sizes: tuple[int, ...]) -> None:
    runs = {
        (point(overlay__kind=kind, overlay__brokers=size), seed): {"entries": ord(kind) * size + seed}
        for kind in "abcdefgh"
        for size in sizes
        for seed in (1, 2)
    }
    summary = summary_of(runs)
    found = sentences(Effects(summary), ["entries"])
    assert complaints(summary.runs, found) == []
    said = [str(sentence) for sentence in found]
    table = "Overlay kind: the 7 comparisons are in the table of effects and in results/differences.csv."
    assert (table in said) == (len(sizes) > 1)
    assert sum(" against a" in sentence for sentence in said) == (0 if len(sizes) > 1 else 7)
    assert any(sentence.startswith("Fewest routing-table entries: a (") for sentence in said)


def test_a_file_is_called_by_its_name_without_folders_unless_two_share_it() -> None:
    """Graphs given in Python are files too, named as in the dict that they were given in."""
    files = ["/a/tree.gml", "/a/ring.gml", "/b/ring.gml"]
    summary = summary_of({(json.dumps({"overlay.file": file}), 1): {"entries": 1.0} for file in files})
    (factor,) = Effects(summary).factors
    shared = [f"ring (overlay.file = {file})" for file in files[1:]]
    assert sorted(factor.names.values()) == [*shared, "tree"]


@settings(max_examples=30, deadline=None)
@given(sweeps())
def test_settings_are_compared_along_a_tree_of_each_factor(summary: Summary) -> None:
    factors = Effects(summary).factors
    for factor in factors:
        assert len(factor.base) == len(factor.levels) - 1
        for level in factor.levels:
            steps = [level]
            while steps[-1] in factor.base:
                steps.append(factor.base[steps[-1]])
                assert len(steps) <= len(factor.levels), "no circle"
        assert len(set(factor.names.values())) == len(factor.levels), "no two levels have one name"
    for one, title, other in baselines(summary.order, factors):
        keys = next(factor.keys for factor in factors if factor.title == title)
        a, b = ({key: value for key, value in json.loads(of).items() if key not in keys} for of in (one, other))
        assert a == b
        assert one != other


def test_a_wrong_number_in_a_sentence_is_noticed() -> None:
    runs = {
        (point(routing__strategy=name), seed): {"entries": entries + seed, "event_messages": 5.0}
        for name, entries in (("simple", 90.0), ("covering", 30.0))
        for seed in (1, 2, 3)
    }
    summary = summary_of(runs)
    said = sentences(Effects(summary), METRICS)
    assert complaints(summary.runs, said) == []
    for change in ({"entries": 31.0}, {"entries": 92.0}):
        other = summary.runs.copy()
        other.loc[other["strategy"] == "covering", "entries"] = change["entries"]
        assert complaints(other, said), "the sentences are of other runs"


def by_state(entries: dict[tuple[str, str], float], seeds: int = 3) -> Summary:
    return summary_of(
        {
            (point(routing__strategy=name, faults__state=state), seed): {"entries": value + seed}
            for (name, state), value in entries.items()
            for seed in range(seeds)
        }
    )


def test_an_effect_that_depends_on_another_factor_is_a_range_with_its_ends_named() -> None:
    values = {
        ("simple", "kept"): 99.0,
        ("covering", "kept"): 49.0,
        ("simple", "lost"): 99.0,
        ("covering", "lost"): 24.0,
    }
    said = [str(sentence) for sentence in sentences(Effects(by_state(values)), ["entries"])]
    assert said[0] == "Over all settings: routing-table entries 25 to 100."
    assert said[1] == "Covering against simple routing: routing-table entries −75.0 % (lost) to −50.0 % (kept)."
    one, other = "−50.0 % (covering)", "unchanged (simple routing)"
    assert said[2] == f"State lost against kept: routing-table entries {one} to {other}, beyond chance in 1 of 2."


@pytest.mark.parametrize(("middle", "told"), [((50.0, 51.0, 52.0), ", most at brokers 20: 51"), ((5.0, 6.0, 99.0), "")])
def test_what_a_number_does_between_its_ends_is_told_if_it_is_sure(middle: tuple[float, ...], told: str) -> None:
    values = {10: (5.0, 6.0, 7.0), 20: middle, 40: (5.0, 6.0, 8.0)}
    runs = {
        (point(overlay__brokers=brokers), seed): {"entries": entries}
        for brokers, of in values.items()
        for seed, entries in enumerate(of)
    }
    (said,) = sentences(Effects(summary_of(runs)), ["entries"])
    chance = "6 → 6.33 (+5.6 % ± 23.9)"
    start = f"Brokers 10 → 40{':' if told else ', not beyond chance:'} routing-table entries"
    assert str(said) == f"{start} {chance}{f' (may be chance){told}' if told else ''}."


def by_strategy(values: dict[str, dict[str, Any]], seeds: int = 3) -> Effects:
    """Values per seed, or one for all."""
    return Effects(
        summary_of(
            {
                (json.dumps({STRATEGY: name}), seed): {
                    metric: value[seed] if isinstance(value, tuple) else value for metric, value in metrics.items()
                }
                for name, metrics in values.items()
                for seed in range(seeds)
            }
        )
    )


def test_what_no_level_changes_is_said_once_and_what_only_looks_alike_is_no_tie() -> None:
    shared = {"event_messages": 9.0}
    effects = by_strategy(
        {
            "simple": {**shared, "entries": 90.0, "latency_p99": (20.0, 30.0, 40.0)},
            "covering": {**shared, "entries": 30.0, "latency_p99": (20.001, 29.999, 40.0)},
            "identity": {**shared, "entries": 60.0, "latency_p99": (20.0, 30.0, 40.0)},
        }
    )
    said = [str(sentence) for sentence in sentences(effects, ("entries", "event_messages", "latency_p99"))]
    whatever = "Whatever the strategy, equal with every seed: event messages; alike in all digits shown: latency p99."
    assert whatever in said
    assert sum("latency" in sentence for sentence in said) == 1


def test_levels_are_compared_though_their_base_has_no_such_thing() -> None:
    runs: dict[tuple[str, int], dict[str, float]] = {
        (point(routing__failover=name), seed): {"entries": 5.0, "switchover_mean": took + seed}
        for name, took in (("none", math.nan), ("recompute", 20.0), ("replace", 10.0))
        for seed in range(3)
    }
    said = [str(sentence) for sentence in sentences(Effects(summary_of(runs)), ["entries", "switchover_mean"])]
    assert "Failover replace against recompute: switch-over mean 21 ms → 11 ms (−47.6 %)." in said


def test_a_setting_that_a_level_does_not_name_has_its_default() -> None:
    """Threshold off differs in one choice from the way to visit that is the default, whether that is named or not."""
    cases = [
        {STRATEGY: "simple"},
        {STRATEGY: "covering"},
        {STRATEGY: "covering", "routing.rank": "cover", "routing.threshold": False},
        {STRATEGY: "covering", "routing.rank": "cover", "routing.visit": "parallel"},
        {STRATEGY: "covering", "routing.rank": "cover", "routing.visit": "waves"},
    ]
    defaults = {"routing.rank": "none", "routing.visit": "parallel", "routing.threshold": True}
    summary = summary_of({(json.dumps(case, sort_keys=True), 1): {"entries": 1.0} for case in cases})
    in_force = [json.dumps({**defaults, **json.loads(case)}) for case in summary.runs["point"]]
    (factor,) = factors_of(replace(summary, runs=summary.runs.assign(settings=in_force)))
    named = {factor.names[level]: factor.names[base] for level, base in factor.base.items()}
    parallel = "covering, rank cover, visit parallel"
    assert named == {
        "covering": "simple routing",
        parallel: "covering",
        "covering, rank cover, threshold false": parallel,
        "covering, rank cover, visit waves": parallel,
    }
    assert len(comparisons(factor)) == 4


@pytest.mark.parametrize(("seeds", "said"), [(1, "simple routing (5, by one seed)"), (2, "simple routing (5)")])
def test_one_seed_is_said_where_somebody_is_the_best(seeds: int, said: str) -> None:
    effects = by_strategy(
        {name: {"entries": 5.0 + i} for i, name in enumerate(("simple", "covering", "identity"))}, seeds
    )
    assert any(said in str(sentence) for sentence in sentences(effects, ["entries"]))


def test_ratios_beside_each_other_have_as_many_digits() -> None:
    values = {
        ("simple", "kept"): 1000.0,
        ("simple", "lost"): 1000.0,
        ("covering", "kept"): 1001.0,
        ("covering", "lost"): 5000.0,
    }
    said = [str(sentence) for sentence in sentences(Effects(by_state(values, 1)), ["entries"])]
    assert "Covering against simple routing: routing-table entries 1.00 times (kept) to 5.00 times (lost)." in said


def test_ties_share_the_first_place_and_the_next_metric_decides_among_them() -> None:
    found = {"simple": (90.0, 90.0), "covering": (30.0, 30.0), "identity": (30.0, 60.0)}
    runs = {
        (point(routing__strategy=name), seed): {"entries": entries + seed, "control_messages": messages + seed}
        for name, (entries, messages) in found.items()
        for seed in (1, 2, 3)
    }
    said = [str(sentence) for sentence in sentences(Effects(summary_of(runs)), ["entries", "control_messages"])]
    first = "Fewest routing-table entries: identity routing = covering (32)"
    assert f"{first}; of these, fewest control messages: covering (32)." in said


@pytest.mark.parametrize(
    ("covering_kept", "told"),
    [
        (99.0, "Fewest routing-table entries: no strategy has it whatever the state."),
        (50.0, "Fewest routing-table entries: covering (25 to 51, in some settings equal to others)."),
    ],
)
def test_the_best_is_one_that_nobody_beats_whatever_the_other_factors(covering_kept: float, told: str) -> None:
    values = {("simple", "kept"): 50.0, ("covering", "kept"): covering_kept, ("identity", "kept"): 120.0}
    values |= {("simple", "lost"): 99.0, ("covering", "lost"): 24.0, ("identity", "lost"): 120.0}
    assert told in [str(sentence) for sentence in sentences(Effects(by_state(values)), ["entries"])]


def test_the_best_is_found_among_seeds_that_all_have() -> None:
    """Seeds differ more than settings: a level that lacks the dear seed is not cheap for that."""
    runs = {
        (point(routing__strategy=name), seed): {"latency_p99": 100.0 * seed + extra}
        for name, extra in (("simple", 0.0), ("identity", 1.0), ("covering", 2.0))
        for seed in (1, 2, 3)
        if (name, seed) != ("covering", 3)
    }
    effects = Effects(summary_of(runs))
    best = effects.best(effects.factors[0], "latency_p99")
    assert best is not None
    assert [best.factor.names[level] for level in best.levels] == ["simple routing"]


def test_flooding_wins_nothing_with_tables_that_it_does_not_have() -> None:
    runs = {
        (point(routing__strategy=name), seed): {"entries": entries, "event_messages": events}
        for name, entries, events in (("flooding", 0.0, 50.0), ("simple", 90.0, 9.0), ("covering", 30.0, 9.0))
        for seed in (1, 2, 3)
    }
    effects = Effects(summary_of(runs))
    best = effects.best(effects.factors[0], "entries")
    assert best is not None
    assert [best.factor.names[level] for level in best.levels] == ["covering"]
    said = [str(sentence) for sentence in sentences(effects, ["entries"])]
    assert not any("Flooding" in sentence for sentence in said)
    assert "Fewest routing-table entries: covering (30; none with flooding)." in said


@pytest.mark.parametrize(
    ("others", "verdict"),
    [((11.0, 12.0, 13.0), DIFFERS), ((10.0, 11.0, 12.0), EQUAL), ((9.0, 14.0, 12.0), CHANCE), ((11.0,), UNSURE)],
)
def test_verdicts(others: tuple[float, ...], verdict: str) -> None:
    runs = {(point(routing__strategy="simple"), seed): {"entries": 10.0 + seed} for seed in range(3)}
    runs |= {(point(routing__strategy="covering"), seed): {"entries": value} for seed, value in enumerate(others)}
    effects = Effects(summary_of(runs))
    (factor,) = effects.factors
    ((base, level),) = comparisons(factor)
    effect = effects.compare(factor, base, level, "entries")
    assert effect is not None
    assert effect.verdict == verdict


def test_a_pair_of_levels_is_held_against_each_other_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study has a thousand levels. The tree is that of the slow twin, which looks at all pairs for each level."""
    levels = [json.dumps({"matching.k": k // 2, "workload.events": k % 11, "run.samples": k % 5}) for k in range(80)]
    labels = {level: {"searches": False, "sends_to": "all", "holds_back": True} for level in levels}
    choices = {level: json.loads(level) for level in levels}
    pairs: list[tuple[str, str]] = []

    def distance(one: str, other: str, *_: Any) -> float:
        pairs.append((one, other))
        return float(sum(choices[one][key] != choices[other][key] for key in choices[one]))

    monkeypatch.setattr(factors, "_distance", distance)
    base, apart = factors._compared(levels, labels, choices, dict.fromkeys(levels, ("",)))
    assert len(pairs) == 80 * 79 / 2
    placed, others = levels[:1], levels[1:]
    while others:
        found = [(distance(new, old), others.index(new), placed.index(old)) for new in others for old in placed]
        far, new, old = min(found)
        assert (base[others[new]], apart[others[new]]) == (placed[old], far)
        placed.append(others.pop(new))


def test_cases_are_one_factor_and_a_level_is_compared_with_the_nearest() -> None:
    cases = [
        {"routing.strategy": "simple"},
        {"routing.strategy": "covering", "covering.method": "auto"},
        {"routing.strategy": "covering", "covering.method": "auto", "routing.mode": "active"},
        {"routing.strategy": "covering", "covering.method": "zorder", "covering.epsilon": 0.1},
        {"routing.strategy": "flooding"},
    ]
    runs = {(json.dumps(case, sort_keys=True), 1): {"entries": 1.0} for case in cases}
    (factor,) = Effects(summary_of(runs)).factors
    named = {factor.names[level]: factor.names[base] for level, base in factor.base.items()}
    assert named == {
        "exact covering": "simple routing",
        "flooding": "simple routing",
        "exact covering, mode active": "exact covering",
        "covering, ε = 0.1 of the volume": "exact covering",
    }


def test_the_rates_that_a_search_tries_in_each_setting_are_a_factor_of_their_own() -> None:
    tried = {"simple": (1.0, 2.0), "covering": (1.1, 2.1)}
    points = [point(routing__strategy=name, arrivals__publish_rate=rate) for name, of in tried.items() for rate in of]
    summary = summary_of({(one, seed): {"latency_p99": 5.0} for one in points for seed in (1, 2)})
    assert [factor.keys for factor in factors_of(summary)] == [(RATE, STRATEGY)]
    assert [factor.keys for factor in factors_of(summary, apart=(RATE,))] == [(STRATEGY,), (RATE,)]
    assert factors_of(summary, apart=(RATE,))[1].numbers == [1.0, 1.1, 2.0, 2.1]


def test_what_is_swept_or_happened_is_asked_about_and_what_an_experiment_asks_wins() -> None:
    rates = {(point(arrivals__publish_rate=rate), 1): {"latency_p99": rate, "event_load": rate} for rate in (1.0, 2.0)}
    assert asked(Effects(summary_of(rates))) == ("latency_p99", "event_load")
    failed = {(point(), 1): {"failures": 2.0, "delivery_ratio": 0.9, "entries": 4.0}}
    assert asked(Effects(summary_of(failed))) == ("delivery_ratio",)
    assert asked(Effects(summary_of(failed)), ["entries"]) == ("entries",)


def test_one_setting_has_its_numbers_as_an_answer() -> None:
    (said,) = sentences(Effects(summary_of({("{}", 1): {"entries": 12340.0, "latency_p99": 9.0}})), METRICS)
    assert str(said) == "Routing-table entries 12,340, latency p99 9 ms."


def from_files(begun: Begun) -> list[str]:
    """What is wrong with all sentences, by the files that users read, not by the frames that they were made of."""
    results = begun.effects.summary.out / "results"
    runs, times = (pd.read_csv(results / f"{name}.csv") for name in ("run_metrics", "broker_times"))
    return complaints(runs, begun.sentences, times)


@pytest.mark.spark
def test_every_sentence_of_a_page_is_in_the_results(analysed: Summary) -> None:
    begun = begin(analysed)
    assert len(begun.sentences) >= 3
    assert from_files(begun) == []
    doubled = replace(analysed, runs=analysed.runs.assign(entries=lambda frame: frame["entries"] * (frame["seed"] + 1)))
    assert from_files(begin(doubled)), "a planted wrong effect is noticed"


SHIPPED = sorted({*shipped()} - {"epsilon", "epsilon-full", "scale", "ranked-scale", "matching", "matching-sparse"})


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", SHIPPED)
def test_every_sentence_of_a_shipped_experiment_is_in_its_results(name: str, tmp_path: Path) -> None:
    """At a small size; every metric that the experiment asks about is in a sentence of every factor, if it is known."""
    small = {"overlay.brokers": 10, "workload.subscriptions": 60, "workload.events": 20, "seeds": [1, 2]}
    if "overlay.file" in shipped()[name].read_text(encoding="utf-8"):
        del small["overlay.brokers"]
    begun = begin(sim.run(name, small, out=tmp_path, jobs=1, progress=False))
    assert from_files(begun) == []
    for factor in begun.effects.factors:
        if any(isinstance(claim, InTable) and claim.factor is factor for s in begun.sentences for claim in s.of):
            continue
        claims = [claim for sentence in begun.answer.sentences for claim in sentence.of]
        told = {claim.metric for claim in claims if isinstance(claim, Effect | Best) and claim.factor is factor}
        ends = comparisons(factor)
        known = {m for m in begun.answer.metrics if any(begun.effects.compare(factor, *pair, m) for pair in ends)}
        assert known <= told
