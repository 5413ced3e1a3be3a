"""Boxes that look for trouble: ties, infinities, zero width, bounds outside the domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import covering

DOMAIN = [0.0, 8.0]
BOUND = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, 7.0, 8.0]),  # ties
    st.sampled_from([-np.inf, np.inf, -5.0, 11.0, -0.0, 1e300, -1e300]),  # unbounded, outside
    st.sampled_from([2.0000000000000004, 3.9999999999999996, 5e-324]),  # neighbours in one cell
    st.floats(-1, 9),
)
INTERVAL = st.one_of(
    st.tuples(BOUND, BOUND).map(sorted),
    st.sampled_from([0.0, 2.0, 8.0, 9.0]).map(lambda v: [v, v]),  # equalities
    st.just([-np.inf, np.inf]),  # not mentioned
)

# Enough bits to tell bounds apart, few enough for the greedy search to finish.
EXACT_OPTIONS: dict[str, dict[str, Any]] = {
    "zorder": {"bits": 3, "probe_cap": 10**6},
    "hilbert": {"bits": 3, "probe_cap": 10**6},
    "zorder-emulated": {"bits": 3},
    "budget": {"budget": 10**6},
}


def boxes(attributes: int) -> st.SearchStrategy[np.ndarray]:
    return st.lists(INTERVAL, min_size=attributes, max_size=attributes).map(np.array)


def exact(name: str, attributes: int) -> covering.CoveringIndex:
    return covering.create(name, [DOMAIN] * attributes, **EXACT_OPTIONS.get(name, {}))
