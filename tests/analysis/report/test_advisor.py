"""The ε advisor on sweeps whose right answer is plain to see."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.report.advisor import Option, advise, pareto_front
from analysis.report.places import IN_MEMORY
from tests.analysis.report.summaries import made, make, search


def sweep(*settings: tuple[float, float, float], **keys: Any) -> list[Any]:
    """(ε, probes per check, entries) per setting."""
    return [
        ({"covering.epsilon": eps, **keys}, {"probes_per_check": cost, "entries": size, "recall": 0.9})
        for eps, cost, size in settings
    ]


def test_a_cheap_epsilon_that_hardly_grows_tables_is_advised() -> None:
    (advice,) = advise(make(sweep((0.0, 1000, 100), (0.01, 50, 104), (0.3, 40, 400))))
    assert advice.advised.epsilon == 0.01
    assert "Use scan, ε = 0.01 of the volume: it searches 95.0 % less" in advice.sentence
    assert "4.0 % more entries" in advice.sentence
    assert "90.0 % of the covers" in advice.sentence


def test_exact_covering_is_advised_when_nothing_searches_less() -> None:
    (advice,) = advise(make(sweep((0.0, 10, 100), (0.1, 12, 150))))
    assert advice.advised.epsilon == 0
    assert "no approximation searches less here" in advice.sentence
    assert [option.on_front for option in advice.options] == [True, False]


def test_exact_covering_is_advised_when_tables_grow_faster_than_search_shrinks() -> None:
    (advice,) = advise(make(sweep((0.0, 10, 100), (0.1, 5, 250))))
    assert advice.advised.epsilon == 0
    assert "nothing saves at least 10.0 % more of the search than it adds" in advice.sentence


def test_a_saving_of_a_few_percent_is_no_reason_to_give_up_exact_answers() -> None:
    (advice,) = advise(make(sweep((0.0, 100, 100), (0.1, 96, 100))))
    assert advice.advised.epsilon == 0


@pytest.mark.parametrize(("cost", "size"), [(0.0, 100.0), (10.0, 0.0)])
def test_nothing_to_save_or_to_grow_from(cost: float, size: float) -> None:
    (advice,) = advise(make(sweep((0.0, cost, size), (0.1, 1.0, 5.0))))
    assert advice.advised.epsilon == 0


def test_advice_is_given_apart_for_each_setting_of_other_keys() -> None:
    points = sweep((0.0, 1000, 100), (0.1, 50, 101), **{"overlay.brokers": 10})
    points += sweep((0.0, 10, 100), (0.1, 50, 101), **{"overlay.brokers": 20})
    found = advise(make(points))
    assert [(advice.title, advice.advised.epsilon) for advice in found] == [
        ("overlay.brokers=10", 0.1),
        ("overlay.brokers=20", 0.0),
    ]


def test_equal_rows_are_never_compared() -> None:
    """A k-d tree of few entries ignores ε: its rows say nothing about ε, at no ε."""
    (advice,) = advise(make(sweep((0.0, 10, 100), (0.1, 10, 100), (0.3, 10, 100))))
    assert [option.epsilon for option in advice.options] == [0.0]
    assert advice.sentence.startswith("Approximation makes no difference here")
    (advice,) = advise(make(sweep((0.0, 1000, 100), (0.01, 1000, 100), (0.1, 50, 104), (0.3, 50, 104))))
    assert [option.epsilon for option in advice.options] == [0.0, 0.1]
    assert advice.advised.epsilon == 0.1


def test_no_advice_without_exact_covering_or_without_a_choice() -> None:
    assert advise(make(sweep((0.1, 5, 100), (0.3, 4, 120)))) == []
    assert advise(make(sweep((0.0, 5, 100)))) == []


def test_the_front_has_no_dominated_option() -> None:
    costs = ((5, 1), (5, 2), (3, 3), (4, 4))
    options = [Option(str(i), "", i / 10, cost, cost, size, None, IN_MEMORY) for i, (cost, size) in enumerate(costs)]
    assert [option.point for option in pareto_front(options)] == ["2", "0"]


def test_an_epsilon_has_to_beat_the_best_exact_method() -> None:
    points = sweep((0.0, 1000, 100), (0.1, 50, 101), **{"covering.method": "greedy"})
    points += sweep((0.0, 10, 100), **{"covering.method": "tree"})
    (advice,) = advise(make(points))
    assert advice.advised.epsilon == 0
    assert advice.advised.cost == 10


def in_time(*settings: tuple[dict[str, Any], float, float, float], **metrics: float) -> list[Any]:
    """(keys, µs per check, probes per check, entries) per setting."""
    return [
        (keys, {"check_time": cost, "probes_per_check": probes, "entries": size, "recall": 0.4, **metrics})
        for keys, cost, probes, size in settings
    ]


EXACT, BUDGET = {"covering.epsilon": 0.0}, {"covering.epsilon": float("nan"), "covering.budget": 32}


def test_time_decides_where_work_takes_time_and_budgets_are_options() -> None:
    (advice,) = advise(make(in_time((EXACT, 0.27, 101, 100), (BUDGET, 0.3, 26, 101))))
    assert advice.advised.exact
    assert "no approximation searches faster here. It needs 0.27 µs (101 probes) per check" in advice.sentence
    assert "Probes mislead: scan, budget 32 needs 26 instead of 101 and yet 0.3 µs instead" in advice.sentence
    (advice,) = advise(make(in_time((EXACT, 16.7, 5000, 100), (BUDGET, 0.42, 1024, 104))))
    assert advice.advised.name == "scan, budget 32"
    assert "Use scan, budget 32: it searches 97.5 % faster than exact covering" in advice.sentence


def test_what_a_slow_search_does_and_why_recall_misleads_is_said() -> None:
    exact = in_time((EXACT, 0.27, 101, 100), convergence_p95=50.0, latency_p95=32.0, reduction=0.7)
    rough = {"covering.epsilon": 0.1}
    slow = in_time((rough, 83000.0, 1e5, 120), convergence_p95=5000.0, latency_p95=32.1, reduction=0.6)
    (advice,) = advise(make(exact + slow))
    assert (
        "With scan, ε = 0.1 of the volume, 83 ms per check, 95 % of the subscriptions have settled" in advice.sentence
    )
    assert "within 5 s instead of 50 ms." in advice.sentence, "latency is about the same"
    assert "finds 40.0 % of the covers per check and keeps 85.7 % of exact covering's saving" in advice.sentence
    none = [(rough, {**slow[0][1], "recall": 0.0})]
    assert "finds 0.0 % of the covers per check and keeps 85.7 %" in advise(make(exact + none))[0].sentence
    unasked = [(rough, {**slow[0][1], "recall": float("nan")})]
    assert "Recall misleads" not in advise(make(exact + unasked))[0].sentence


def test_each_place_has_advice_of_its_own_by_the_searches_that_can_live_there() -> None:
    points = [
        search("auto", 1.0, 90.0, trips=1.0),
        search("bigmin", 2.0, 90.0, trips=20.0),
        search("zorder-emulated", 9.0, 91.0, trips=5.0, epsilon=0.3),
        search("budget", 0.1, 91.0, trips=1.0, budget=16),
    ]
    memory, store = advise(made(points))
    assert (memory.title, store.title) == ("in memory", "next-key store")
    assert memory.advised.name == "budget 16"
    assert store.advised.name == "zorder-emulated, ε = 0.3 of the volume"
    assert "it searches 75.0 % less than exact covering (5 lookups per check instead of 20 lookups" in store.sentence
    assert not any("budget" in option.name or "auto" in option.name for option in store.options)
