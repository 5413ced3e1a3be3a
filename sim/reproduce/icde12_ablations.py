"""What each part of BE*-Tree is worth: α, β, how buckets are split, our bounds, and recycling while workloads drift.

All counted, nothing timed: comparisons, nodes and queue operations per event, for all matches and for the best one. The
paper has studied its parameters, "the in-depth results are omitted".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sim.workloads.begen import Begen, Expressions, begen
from topk.sparse import SparseCatalogue, SparseIndex
from topk.sparse.be.star import SPLITTING, BEStarPaper
from topk.sparse.be.tree import RANKINGS

COUNTED = ("entries", "comparisons", "nodes", "queued")

# Ablation → variant → options of the published tree.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    # In an l-node of 5 every α below a sixth is one expression, so α is varied in large ones.
    "alpha": {f"{alpha:g}": {"alpha": alpha, "capacity": 160} for alpha in (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)},
    "beta": {f"{beta:g}": {"beta": beta} for beta in (1.0, 2.0, 4.0, 16.0, 1e300)},
    "splitting": {name: {"splitting": name} for name in SPLITTING},
    "ranking": {name: {"ranking": name} for name in RANKINGS},
    # From the published tree to ours, one difference at a time.
    "bounds": {
        "as published": {},
        "20 expressions per l-node": {"capacity": 20},
        "32 shared bounds": {"slots": 32},
        "also by usual scores": {"usual_bound": True},
        "ours": {"capacity": "auto", "slots": 32, "usual_bound": True, "ranking": RANKINGS[0]},
    },
}


def per_event(index: SparseIndex, events: Sequence[Any], k: int | None) -> dict[str, float]:
    """What an index counts per event."""
    before = [getattr(index.stats, name) for name in COUNTED]
    for event in events:
        index.top(event, k)
    after = [getattr(index.stats, name) for name in COUNTED]
    return {name: (b - a) / max(len(events), 1) for name, a, b in zip(COUNTED, before, after, strict=True)}


def ablation(workload: Expressions, variants: Mapping[str, Mapping[str, Any]]) -> list[dict[str, object]]:
    """A row per variant: what is counted per event for all matches and for the best, and what the best saves."""
    rows: list[dict[str, object]] = []
    for variant, options in variants.items():
        index = BEStarPaper(workload.catalogue, **{"window": 0, **options})
        every, one = (per_event(index, workload.events, k) for k in (None, 1))
        counts = {f"{name}, all": every[name] for name in COUNTED} | {f"{name}, best": one[name] for name in COUNTED}
        saved = 100.0 * (1.0 - one["entries"] / every["entries"]) if every["entries"] else 0.0
        rows.append({"variant": variant, **counts, "saved %": saved, "bytes": index.nbytes})
    return rows


def drift(base: Begen, phases: int, window: int) -> list[dict[str, object]]:
    """The workload drifts: in each phase other topics are asked for, newcomers are about them, and as many leave.

    A row per phase: comparisons per event of a tree that recycles every `window` events, of one that never does, and of
    one built for what is there now; and how many expressions were moved.
    """
    waves = [begen(replace(base, seed=base.seed + phase)) for phase in range(phases)]
    recycling, still = (BEStarPaper(waves[0].catalogue, window=w) for w in (window, 0))
    stored = {id: _row(waves[0].catalogue, id, id) for id in range(base.subscriptions)}
    rows: list[dict[str, object]] = []
    for phase, wave in enumerate(waves):
        if phase:
            for i in range(base.subscriptions // 2):
                gone, id = next(iter(stored)), phase * base.subscriptions + i
                del stored[gone]
                stored[id] = _row(wave.catalogue, i, id)
                for tree in (recycling, still):
                    tree.remove(gone)
                    tree.add_one(stored[id])
        fresh = BEStarPaper(_together(list(stored.values())), window=0)
        moved = recycling.recycled
        trees = {"recycling": recycling, "never": still, "built anew": fresh}
        counts = {name: per_event(tree, wave.events, None)["comparisons"] for name, tree in trees.items()}
        rows.append({"phase": phase, **counts, "moved": recycling.recycled - moved})
    return rows


def _row(catalogue: SparseCatalogue, row: int, id: int) -> SparseCatalogue:
    """One row of a catalogue, under another id."""
    at = slice(int(catalogue.offsets[row]), int(catalogue.offsets[row + 1]))
    columns = (catalogue.attributes[at], catalogue.lo[at], catalogue.hi[at], catalogue.weights[at])
    return SparseCatalogue(catalogue.dimensions, np.array([id]), np.array([0, at.stop - at.start]), *columns)


def _together(rows: Sequence[SparseCatalogue]) -> SparseCatalogue:
    sizes = [len(row.attributes) for row in rows]
    named = np.concatenate([row.attributes for row in rows])
    lo, hi, weights = (np.concatenate([getattr(row, name) for row in rows]) for name in ("lo", "hi", "weights"))
    ids, offsets = np.array([row.ids[0] for row in rows]), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return SparseCatalogue(rows[0].dimensions, ids, offsets, named, lo, hi, weights)
