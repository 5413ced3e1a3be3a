"""Working memory of kernels while a table answers an event: made once, used by all tables of a network in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.structures import structure
from topk.scan import BLOCK
from topk.slices.query import NOTES

_FIRST = 16  # initial room for answers

Scratch, _ = structure(
    "Scratch",
    mask=np.empty(0, np.uint8),  # of a block: which rows match, their scores, and their places in the block
    total=np.empty(0),
    hits=np.empty(0, np.int64),
    point=np.empty((0, 0)),  # for slices (topk/slices): the event as an interval, what they note of it, ranks found
    notes=np.empty((0, 0), np.int64),
    ranks=np.empty(0, np.int64),
    work=np.empty(0, np.int64),  # entries compared, and blocks looked at
    ids=np.empty(0, np.int64),  # the answer
    scores=np.empty(0),
)


def new_scratch(dimensions: int) -> Any:
    scratch = Scratch()
    _begin(scratch, dimensions)
    return scratch


@kernel
def _begin(s: Any, dimensions: int) -> None:
    s.mask, s.total, s.hits = np.empty(BLOCK, np.uint8), np.empty(BLOCK), np.empty(BLOCK, np.int64)
    s.point, s.notes = np.empty((2, dimensions)), np.empty((NOTES, dimensions), np.int64)
    s.ranks, s.work = np.empty(_FIRST, np.int64), np.zeros(2, np.int64)
    s.ids, s.scores = np.empty(_FIRST, np.int64), np.empty(_FIRST)


@kernel(inner=True)
def note_event(s: Any, event: Any) -> None:
    """Start on an event: copy it, and set the counts of work to 0."""
    s.work[0], s.work[1] = 0, 0
    for j in range(len(event)):
        s.point[0, j], s.point[1, j] = event[j], event[j]


@kernel(inner=True)
def room_for_ranks(s: Any, count: int) -> None:
    if count > len(s.ranks):
        s.ranks = np.empty(2 * count, np.int64)


@kernel(inner=True)
def room_for_answers(s: Any, count: int) -> None:
    if count > len(s.ids):
        s.ids, s.scores = np.empty(2 * count, np.int64), np.empty(2 * count)
