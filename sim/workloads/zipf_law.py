"""The Zipf law, by which most workloads make some values more popular than others."""

from __future__ import annotations

import numpy as np

from sim.workloads.contract import Floats


def zipf_probabilities(count: int, skew: float) -> Floats:
    """Probabilities ∝ rank^−skew of ranks 1 to count; skew 0 is uniform."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -skew
    return weights / weights.sum()
