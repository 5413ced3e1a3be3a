"""Receiver-side pruning: the table that events are held against gets smaller, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.pruning import PrunedTable
from coverlay import CoverlayError
from routing.contract import RoutingOptions
from routing.filter import Filter
from sim.experiment.plan import plan
from sim.experiment.runner import simulate

OPTIONS = RoutingOptions(np.array([[0.0, 100.0]]))


def interval(low: float, high: float, score: float = 1.0) -> Filter:
    return Filter.of_box(np.array([[low, high]]), score=score)


def table_of(*intervals: tuple[float, float]) -> PrunedTable:
    table = PrunedTable(OPTIONS)
    for subscription, bounds in enumerate(intervals):
        table.add(subscription, interval(*bounds))
        table.check()
    return table


def test_a_pruned_entry_comes_back_when_its_cover_leaves():
    table = table_of((10, 20), (0, 50), (5, 8))
    assert (len(table), table.pruned) == (1, 2)
    assert list(table.filters) == [0, 1, 2]
    assert 0 in table, "a pruned entry is still known"
    table.remove(1)
    table.check()
    assert (len(table), table.pruned) == (2, 0)
    assert [table.matches(np.array([x]))[0] for x in (6.0, 9.0, 15.0)] == [True, False, True]


def test_chains_are_handed_over():
    """0 is pruned by 1, 1 by 2; when 2 leaves, 1 comes back and covers 0 again."""
    table = table_of((10, 20), (5, 30), (0, 50))
    assert (len(table), table.pruned) == (1, 2)
    table.remove(2)
    table.check()
    assert (len(table), table.pruned) == (1, 1)
    table.remove(1)
    table.check()
    assert table.matches(np.array([15.0]))[0]
    assert not table.matches(np.array([7.0]))[0]


def test_a_pruned_entry_leaves_and_equal_ones_are_active_once():
    table = table_of((0, 50), (10, 20), (0, 50))
    assert (len(table), table.pruned) == (1, 2)
    table.remove(1)
    table.remove(0)
    table.check()
    assert (len(table), table.pruned) == (1, 0)
    assert list(table.filters) == [2]


def test_a_pruned_entry_still_counts_for_what_an_event_is_worth():
    table = table_of((0, 50))
    table.add(7, interval(10, 20, score=9.0))
    assert table.best_score(lambda filter: filter.score) == 9.0


@settings(max_examples=12)
@given(
    st.integers(0, 2**20),
    st.sampled_from(["simpy", "compiled"]),
    st.sampled_from(["covering", "hierarchical"]),
    st.sampled_from(["zipf", "mixture"]),  # the latter has residues
    st.sampled_from(["static", "preloaded"]),
    st.sampled_from([0.0, 0.3]),
)
def test_pruning_has_lazy_messages_and_where_nobody_leaves_active_tables(
    seed: int, engine: str, strategy: str, workload: str, arrivals: str, leave: float
) -> None:
    data: dict[str, Any] = {
        "name": "modes",
        "seeds": [seed],
        "overlay": {"brokers": 6},
        "workload": {"kind": workload, "subscriptions": 120, "events": 10},
        "arrivals": {"kind": arrivals, "unsubscribe": leave},
        "sweep": {"routing.mode": ["lazy", "active", "prune"]},
        "routing": {"strategy": strategy},
        "covering": {"method": "packed"},
        "run": {"engine": engine},
    }
    sizes, records, traffic = {}, {}, {}
    for run in plan(data).runs:
        tables, _ = simulate(run)
        mode = run.experiment.routing.mode
        final = tables["tables"].filter(tables["tables"].column("final"))
        sizes[mode] = final.column("entries").to_numpy(), final.column("pruned").to_numpy()
        records[mode] = tables["run"].to_pylist()[0]
        traffic[mode] = [tables[name].drop_columns(["time"]) for name in ("control", "decisions")]
    entries, pruned = sizes["prune"]
    assert pruned.any() or workload != "zipf"
    assert (entries + pruned == sizes["lazy"][0]).all()
    if not leave:
        assert (entries == sizes["active"][0]).all()
    assert traffic["prune"] == traffic["lazy"], "not a message or decision differs"
    for record in records.values():
        assert record["engine"] == engine
        assert record["missed"] == record["duplicates"] == 0
        assert not record["strays"], "unknown where subscriptions are preloaded"
        assert record["event_messages"] == records["lazy"]["event_messages"]


def test_mergers_are_not_pruned():
    with pytest.raises(CoverlayError, match=r'"merging" goes with .*, not with "prune"'):
        plan({"name": "refused", "routing": {"strategy": "merging", "mode": "prune"}})
