"""Residues (≠, in) in the compiled engine: implied by the reference's rule, and the same trace where they decide."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covering.residue import Residue
from coverlay import kernel
from sim.compiled.covers_residues import implied_by
from sim.compiled.residues import PLAIN, residue_arrays
from sim.experiment.plan import plan
from tests.sim.compiled.both_engines import assert_same

VALUES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
LISTS = st.lists(VALUES, max_size=4)
BOUNDS = st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 1.0, 1.5, 3.0, np.inf])
ATTRIBUTES = 2


@st.composite
def residues(draw: st.DrawFn) -> Residue:
    def some() -> dict[int, list[float]]:
        return draw(st.dictionaries(st.integers(0, ATTRIBUTES - 1), LISTS, max_size=ATTRIBUTES))

    return Residue.of(some(), some())


class World(NamedTuple):
    """Of a world what residues are in."""

    residue_first: Any
    residue_attribute: Any
    residue_listed: Any
    residue_value_first: Any
    residue_values: Any
    integral: Any


@kernel
def _asked(w: Any, own: int, point: Any, other: int) -> bool:
    return implied_by(w, own, point, other)


@given(residues(), residues(), st.lists(st.tuples(BOUNDS, BOUNDS), min_size=ATTRIBUTES, max_size=ATTRIBUTES), st.data())
def test_a_residue_is_implied_as_in_the_reference(
    own: Residue, other: Residue, sides: Any, data: st.DataObject
) -> None:
    box = np.sort(np.array(sides), axis=1)
    integral = data.draw(st.tuples(st.booleans(), st.booleans()))
    numbers, arrays = residue_arrays([own, other])
    mine, its = numbers[own], numbers[other]
    if mine == PLAIN:
        return  # no index of that residue asks
    point = np.empty(2 * ATTRIBUTES)
    point[0::2], point[1::2] = -box[:, 0], box[:, 1]
    expected = own.implied_by(box, other, integral)
    assert _asked(World(**arrays, integral=np.array(integral)), mine, point, its) == expected


@pytest.mark.parametrize("strategy", ["covering", "identity"])
@pytest.mark.parametrize("mode", ["lazy", "active"])
def test_subscriptions_with_residues_leave_the_same_trace(strategy: str, mode: str) -> None:
    """The planted faults of residues are held against it."""
    data = {
        "name": "different",
        "overlay": {"kind": "line", "brokers": 4, "latency": {"kind": "constant", "value": 1.0}},
        "broker": {"service": {"kind": "work"}},
        "workload": {
            "kind": "mixture",
            "attributes": 2,
            "subscriptions": 150,
            "events": 40,
            "different": 0.6,
            "categories": 4,
        },
        "arrivals": {"kind": "churn", "lifetime": 60.0},
        "routing": {"strategy": strategy, **({"mode": mode} if strategy == "covering" else {})},
    }
    run = plan(data).runs[0]
    decisions = assert_same(run)["decisions"].to_pandas()
    assert (decisions["outcome"] == "suppressed").any()
    if strategy == "covering":
        assert (decisions["round_trips"] > 1).any(), "some searches ask several partitions"
