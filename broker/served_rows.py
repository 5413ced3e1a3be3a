"""Whom event messages served, as columns that kernels append to: the largest table of most traces."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.structures import kept, structure

_FIRST_ROWS = 1024

ServedRows, served_at = structure(
    "ServedRows",
    ids=np.empty(0, np.int64),
    scores=np.empty(0),
    ranks=np.empty(0, np.int64),
    filled=0,
)


def new_rows() -> Any:
    """No rows yet."""
    rows = ServedRows()
    _empty(rows)
    return rows


@kernel
def _empty(s: Any) -> None:
    s.ids, s.scores, s.ranks = np.empty(_FIRST_ROWS, np.int64), np.empty(_FIRST_ROWS), np.empty(_FIRST_ROWS, np.int64)
    s.filled = 0


@kernel(inner=True)
def add_best(s: Any, ids: Any, scores: Any, count: int) -> None:
    """Append the first `count` of these, which are best first."""
    at = _place_for(s, count)
    for i in range(count):
        s.ids[at + i], s.scores[at + i], s.ranks[at + i] = ids[i], scores[i], i + 1


@kernel
def add(s: Any, ids: Any, scores: Any, ranks: Any) -> None:
    at = _place_for(s, len(ids))
    for i in range(len(ids)):
        s.ids[at + i], s.scores[at + i], s.ranks[at + i] = ids[i], scores[i], ranks[i]


@kernel(inner=True)
def _place_for(s: Any, count: int) -> int:
    """Make room for `count` rows at the end; returns the first of them."""
    first, room = s.filled, len(s.ids)
    s.filled += count
    if s.filled > room:
        ids, scores, ranks = kept(s, "ids"), kept(s, "scores"), kept(s, "ranks")
        room = 2 * s.filled
        s.ids, s.scores, s.ranks = np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64)
        for i in range(first):
            s.ids[i], s.scores[i], s.ranks[i] = ids[i], scores[i], ranks[i]
    return first


def take(s: Any) -> tuple[Any, Any, Any]:
    """Remove all rows and return them by column: ids, scores, ranks."""
    *columns, filled = _columns(s)
    _empty(s)
    ids, scores, ranks = (column[:filled] for column in columns)
    return ids, scores, ranks


@kernel
def _columns(s: Any) -> Any:
    return kept(s, "ids"), kept(s, "scores"), kept(s, "ranks"), s.filled
