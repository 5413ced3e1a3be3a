"""Every filter twice, in the two canonical orders of tables: by width for neighbours, by score for own clients.

A run knows all its subscriptions before it begins, so both orders are made here, once, in numpy. A subscription's two
places in them are all that tables store; the filters themselves are shared by all tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covering.widest_first import places, sizes
from routing.contract import RoutingOptions
from sim.compiled.records import FILTER
from sim.workloads import Workload

Ints = NDArray[np.int64]


def order_filters(subscriptions: NDArray[Any], workload: Workload, domain: NDArray[np.float64]) -> dict[str, Any]:
    """The arrays of the world with the filters of all subscriptions, whose records get their two places."""
    count = len(subscriptions)
    ids = np.arange(count)
    unbounded, size = sizes(np.stack([workload.lo, workload.hi], axis=2), domain)
    by_width = np.lexsort((ids, -size, -unbounded))
    # Clients of one broker are neighbours in memory: they are compared one after the other.
    by_score = np.lexsort((ids, -workload.scores, subscriptions["home"]))
    subscriptions["by_width"][by_width], subscriptions["by_score"][by_score] = ids, count + ids
    order = np.concatenate([by_width, by_score])
    filters = np.empty(2 * count, FILTER)
    filters["subscription"], filters["residue"] = order, subscriptions["residue"][order]
    filters["score"] = workload.scores[order]
    named = _only_mentioned(workload.mentioned)
    chosen = np.maximum(named, 0)
    of_attributes = {"lo": workload.lo, "hi": workload.hi, "weights": workload.weights}
    packed = {name: np.take_along_axis(values, chosen, axis=1)[order] for name, values in of_attributes.items()}
    return {"filters": filters, "named": named[order].astype(np.int32), **packed}


def widest_places(workload: Workload, routing: RoutingOptions) -> Ints:
    """The place of each subscription where a leaving cover exposes several, widest first: LinkLedger._decide_all."""
    boxes = np.stack([workload.lo, workload.hi], axis=2)

    def finer(row: int) -> tuple[int, ...]:
        return workload.residue(row).strictness(boxes[row], routing.integral)

    return places(boxes, routing.domain, finer if workload.residues else None)


def _only_mentioned(mentioned: NDArray[np.bool_]) -> Ints:
    """Per subscription the attributes that it mentions, ascending, −1 after the last."""
    width = max(1, int(mentioned.sum(axis=1).max(initial=0)))
    order = np.argsort(~mentioned, axis=1, kind="stable")[:, :width]
    return np.where(np.take_along_axis(mentioned, order, axis=1), order, -1)
