"""What the experiments of the IBM report run on (section 5.2), and its indexes.

Integer attribute values 1 … R, start uniform in 1 … R−1, length uniform in 1 … W, cut at R.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import topk
from topk.papers.interval.contract import Entries

MODERATE, LARGE = 5_000, 250_000  # R
L = 128
SEED = 2004
_W = 200
LABELS = {
    "LCI": "lci",
    "LCI-BC": "lci-bc",
    "LCI-BV": "lci-bv",
    "LCI-BV(DT)": "lci-bv-dt",
    "SCI-BV(DT)": "sci-bv-dt",
    "Dlist": "dlist",
    "IS-lists": "is-list",
    "IBS-tree": "ibs-tree",
}


def predicates(n: int, attribute_range: int, seed: int, longest: int = _W) -> tuple[Any, Any]:
    """Endpoints as the paper draws them."""
    rng = np.random.default_rng([SEED, n, attribute_range, longest, seed])
    x = rng.integers(1, attribute_range, n)
    return x.astype(float), np.minimum(x + rng.integers(1, longest + 1, n), attribute_range).astype(float)


def make(label: str, x: Any, y: Any, attribute_range: int, length: int = L, **more: Any) -> Any:
    n, name = len(x), LABELS[label]
    entries = Entries(np.arange(n), x, y, np.zeros(n), np.arange(n))
    options = more
    if name not in ("is-list", "ibs-tree"):
        options |= {"cells": attribute_range, "low": 1.0, "high": float(attribute_range)}
    if name.startswith(("sci", "lci")):
        options["length"] = length
    return topk.interval_indexes()[name](entries, **options)


def of_one(label: str) -> Any:
    """One predicate over two of four values; with R values, a full vector would be walked."""
    return make(label, np.array([1.0]), np.array([2.0]), 4, 2)


def idle_search(label: str, search: str) -> Callable[[float], Any]:
    """A search with nothing to do: for a value that the only predicate does not cover."""
    return partial(_ignoring, getattr(of_one(label), search))


def _ignoring(search: Callable[[float], Any], value: float) -> Any:
    return search(4.0)
