"""The k best of the whole network in random stories: come, rank differently, leave, crash and publish at any time.

The oracle judges: nobody who had settled is missed, nobody is served who must not be, nobody twice.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.language.schema import Schema, degrees
from broker.trace import MUST_BE_ZERO
from sim.experiment import oracle
from sim.experiment.build import inputs_of, overlay_of, rules_of
from sim.experiment.config import parse
from sim.experiment.engines import run_simpy
from sim.random_streams import streams
from sim.workloads import Workload

SIDE = 4.0
MOST = 12.0  # ms between two things that a client does
VISITS = ("parallel", "waves", "best-first")
WAYS = [
    {"strategy": "flooding"},
    {"strategy": "covering", "mode": "prune"},
    {"strategy": "merging"},
    {"strategy": "simple", "rank": "cover"},
    *({"rank": "cover", "mode": mode, "visit": visit} for mode in ("lazy", "active") for visit in VISITS),
    {"rank": "cover", "threshold": False},
    {"rank": "skyband"},
]
KINDS = [
    {"kind": kind, "method": "auto" if kind == "boxes" else "scan", "semantics": semantics}
    for kind in ("boxes", "predicates", "places")
    for semantics in ("exact", "relaxed")
]


@st.composite
def workloads(draw):
    """Subscriptions on a small grid that come, rank differently up to twice and may leave; events all the time."""
    count, luck = draw(st.integers(1, 12)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low = luck.integers(0, int(SIDE), (count, 2)).astype(float)
    high = np.minimum(low + luck.integers(0, int(SIDE) + 1, (count, 2)), SIDE)
    rows, reranks, came, left = list(range(count)), [-1] * count, list(luck.random(count) * 4 * MOST), [np.inf] * count
    for first in range(count):
        row = first
        for _ in range(draw(st.integers(0, 2))):
            rows.append(first)
            reranks.append(row)
            came.append(came[row] + luck.random() * MOST + 0.001)
            left[row], row = came[-1], len(rows) - 1
            left.append(np.inf)
        if draw(st.booleans()):
            left[row] = came[row] + luck.random() * 2 * MOST + 0.001
    events = draw(st.integers(1, 12))
    shape = (len(rows), 2)
    weights = luck.integers(1, 4, shape).astype(float)
    return Workload(
        Schema((degrees("north", "latitude", 0.0, SIDE), degrees("east", "longitude", 0.0, SIDE))),
        low[rows],
        high[rows],
        np.ones(shape, dtype=bool),
        luck.integers(0, 4, len(rows)).astype(float),
        weights,
        luck.integers(0, int(SIDE) + 1, (events, 2)).astype(float),
        came=np.array(came),
        left=np.array(left),
        times=np.sort(luck.random(events) * 6 * MOST),
        reranks=np.array(reranks),
        event_weights=luck.integers(0, 3, (events, 2)).astype(float),
        near=np.column_stack([luck.integers(0, 2, shape), luck.choice([0.0, 0.5], len(rows))]).astype(float),
    )


@settings(max_examples=12)
@given(st.data())
@pytest.mark.parametrize("routing", WAYS, ids=str)
def test_the_oracle_finds_nothing_wrong(routing, data):
    workload, k = data.draw(workloads()), data.draw(st.integers(1, 4))
    workload.check()
    matching = data.draw(st.sampled_from(KINDS))
    experiment = {
        "name": "a story",
        "overlay": {"kind": data.draw(st.sampled_from(["random-tree", "line", "star"])), "brokers": 5},
        "routing": {**routing, "trees": data.draw(st.sampled_from(["spanning", "per-source"]))},
        "matching": {**matching, "k": k, "scope": "network"},
        "links": {"jitter": data.draw(st.sampled_from([0.0, 3.0]))},
        "broker": {"service": data.draw(st.sampled_from([{"kind": "none"}, {"kind": "constant", "value": 0.7}]))},
    }
    if routing.get("rank") == "cover" and routing.get("strategy", "covering") == "covering":
        approximate = [{}, {"method": "kdtree", "epsilon": 0.3}, {"method": "zorder-emulated", "epsilon": 0.2}]
        experiment["covering"] = data.draw(st.sampled_from(approximate))
    if data.draw(st.booleans()):
        failing = {"crash_fraction": 0.4, "cut_fraction": 0.3, "downtime": 2 * MOST, "window": [0.0, 0.7]}
        experiment["faults"] = {**failing, "state": data.draw(st.sampled_from(["lost", "kept"]))}
    parsed, stream = parse(experiment, "it"), streams(data.draw(st.integers(0, 99)))
    inputs = inputs_of(parsed, overlay_of(parsed, stream), workload, stream)
    tables = run_simpy(inputs).tables
    verdict = oracle.judge(workload, tables, rules_of(inputs.settings))
    assert {name: getattr(verdict, name) for name in MUST_BE_ZERO} == dict.fromkeys(MUST_BE_ZERO, 0)
    changed = sum(kind == "rerank" for kind in tables["operations"].column("kind").to_pylist())
    assert changed == (workload.reranks >= 0).sum()
