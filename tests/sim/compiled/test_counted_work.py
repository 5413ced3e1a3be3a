"""What the compiled engine counts is what the contract of topk/first_matches.py says, after every step of a run.

The twin replays the trace: control messages fill tables, which are sorted anew for every event and compared with it one
entry after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from routing.filter import Filter
from sim.experiment.build import workload_of
from sim.experiment.engines import filter_of
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from sim.random_streams import streams

CLIENTS = -1


def width_of(filter: Filter, domain: Any) -> tuple[int, float]:
    """(unbounded sides, size), side by side in the order of attributes."""
    unbounded, size = 0, 0.0
    for (low, high), (lo, hi) in zip(domain.tolist(), filter.box.tolist(), strict=True):
        width = high - low if 0.0 < high - low < np.inf else 1.0
        for bounded, distance in ((np.isfinite(lo), high - lo), (np.isfinite(hi), hi - low)):
            unbounded += not bounded
            size += distance / width if bounded else 0.0
    return unbounded, size


def compared(filters: list[Filter], event: Any, k: int | None, relaxed: bool) -> int:
    """The place of the k-th match, or all."""
    matches = 0
    for place, filter in enumerate(filters, 1):
        matches += filter.relaxed_score(event) is not None if relaxed else filter.matches(event)
        if matches == k:
            return place
    return len(filters)


@st.composite
def experiments(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "name": "counted",
        "seeds": [draw(st.integers(0, 2**20))],
        "overlay": {"kind": draw(st.sampled_from(["random-tree", "line", "star"])), "brokers": draw(st.integers(2, 6))},
        "workload": {
            "kind": draw(st.sampled_from(["zipf", "mixture", "stocks", "uniform"])),
            "attributes": draw(st.integers(2, 3)),
            "subscriptions": draw(st.integers(1, 60)),
            "events": 20,
        },
        "arrivals": draw(
            st.sampled_from(
                [{"kind": "churn", "lifetime": 30.0}, {"kind": "static", "unsubscribe": 0.3, "subscribe_rate": 2.0}]
            )
        ),
        "routing": {"strategy": draw(st.sampled_from(["simple", "covering"]))},
        "matching": {
            "semantics": draw(st.sampled_from(["exact", "exact", "relaxed"])),
            **draw(st.sampled_from([{}, {"k": 1}, {"k": 3}])),
        },
        "run": {"engine": "compiled"},
    }


def steps(tables: dict[str, Any]) -> Iterator[tuple[bool, dict[str, Any]]]:
    """(is it an event?, row of the trace), in the order in which messages were processed."""
    rows = [(name == "publications", row) for name in ("control", "publications") for row in tables[name].to_pylist()]
    return iter(sorted(rows, key=lambda one: one[1]["step"]))


@settings(max_examples=40, phases=[Phase.generate])  # smaller examples say no more and take minutes to find
@given(experiments())
def test_counts_follow_the_contract_after_every_step(data: dict[str, Any]) -> None:
    (run,) = plan(data).runs
    workload, matching = workload_of(run.experiment, streams(run.seed)), run.experiment.matching
    filters = [filter_of(workload, row) for row in range(len(workload.lo))]
    domain, relaxed = workload.schema.domain, matching.semantics == "relaxed"
    stored: dict[tuple[int, int], set[int]] = defaultdict(set)  # broker and neighbour: subscriptions
    for is_event, row in steps(simulate(run)[0]):
        here, source = row["target"], row["source"]
        if not is_event:
            change = stored[here, source].add if row["kind"] == "subscribe" else stored[here, source].remove
            change(row["subscription"])
            continue
        event = workload.events[row["event"]]
        own = sorted(stored[here, CLIENTS], key=lambda s: (-filters[s].score, s))
        k = None if relaxed else matching.k
        assert row["matcher_entries"] == compared([filters[s] for s in own], event, k, relaxed)
        others = [ids for (at, of), ids in stored.items() if at == here and of not in (CLIENTS, source) and ids]
        looked = 0
        for ids in others:
            sides = {s: width_of(filters[s], domain) for s in ids}
            widest = sorted(ids, key=lambda s: (-sides[s][0], -sides[s][1], s))
            looked += compared([filters[s] for s in widest], event, 1, relaxed)
        assert (row["tables_asked"], row["compared"]) == (len(others), looked)
        assert (row["matcher_nodes"], row["sliced"], row["blocks"]) == (0, 0, 0)
