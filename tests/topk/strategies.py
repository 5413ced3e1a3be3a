"""Boxes and intervals that tests draw or make, and how they build an index of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

import topk
from coverlay import CoverlayError
from sim.workloads.points_in_regions import regional_points, zipf_lengths
from topk.papers.interval.contract import Entries

ONE_DIMENSIONAL = {"canopy"}
DIMENSIONS = (1, 3)
SMALL: dict[str, Any] = {"cells": 16, "length": 4, "b": 3, "depth": 2}  # more corners; given where it exists

COORDINATES = st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 7.0, 7.25, 8.0])
SIDES = st.one_of(COORDINATES, st.just(np.inf))


@cache
def small_options(name: str) -> dict[str, Any]:
    """Those that the method has."""

    def has(option: str) -> bool:
        try:
            topk.create(name, topk.Catalogue.empty(1), semantics="exact", **{option: SMALL[option]})
        except CoverlayError:
            return False
        return True

    return {option: value for option, value in SMALL.items() if has(option)}


def build(name: str, catalogue: topk.Catalogue, semantics: str, **more: object) -> topk.TopKIndex:
    return topk.create(name, catalogue, semantics=semantics, **{**more, **small_options(name)})


@st.composite
def catalogues(draw: st.DrawFn, dimensions: int, residues: bool = False) -> topk.Catalogue:
    """Few coordinates and few scores: ties, shared ends, points, infinities and empty catalogues are common."""
    n = draw(st.integers(0, 12))
    lo, hi = np.empty((n, dimensions)), np.empty((n, dimensions))
    for i in range(n):
        for j in range(dimensions):
            a, b = draw(SIDES), draw(SIDES)
            lo[i, j] = -np.inf if a == np.inf else min(a, b)
            hi[i, j] = max(a, b) if a < np.inf else b
    scores = np.array([float(draw(st.integers(0, 3))) for _ in range(n)])
    weights = np.array([[float(draw(st.integers(0, 3))) for _ in range(dimensions)] for _ in range(n)])
    ids = draw(st.permutations(range(0, 3 * n, 3))) if n else []
    exclusions = {}
    if residues:
        for row in range(n):
            attribute = draw(st.integers(0, dimensions - 1))
            value = draw(COORDINATES)
            kind = draw(st.sampled_from(["none", "excluded", "allowed"]))
            if kind != "none":
                pair = ((attribute, (value, 3.0)),)
                exclusions[row] = (pair, ()) if kind == "excluded" else ((), pair)
    return topk.Catalogue.from_boxes(
        lo, hi, scores, weights=weights.reshape(n, dimensions), ids=ids, exclusions=exclusions
    )


def events(dimensions: int) -> st.SearchStrategy[list[float]]:
    value = st.one_of(COORDINATES, st.just(float("nan")), st.floats(-2, 10))
    return st.lists(value, min_size=dimensions, max_size=dimensions)


def dimensions_of(name: str) -> tuple[int, ...]:
    return (1,) if name in ONE_DIMENSIONAL else DIMENSIONS


def entries(n: int, seed: int, spread: float = 1.0) -> Entries:
    """Intervals as in the evaluation of VLDB 2008, their lengths times `spread`."""
    rng = np.random.default_rng(seed)
    middle, half = regional_points(rng, n, 1)[:, 0], zipf_lengths(rng, n, 1)[:, 0] * spread
    return Entries(np.arange(n), middle - half, middle + half, 1 - half, np.arange(n))
