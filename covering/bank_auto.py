"""`auto` in a bank of indexes (bank.py): the same reviews at the same moments as `auto.py`, on a row of states."""

from __future__ import annotations

import numpy as np

from covering import auto
from covering.bank import (
    KDTREE,
    PACKED,
    _domain,
    compact,
    fields_in,
    points_in,
    rebuild,
    states_of,
    tail_limit,
    words_in,
)
from covering.fields import pack_stored
from coverlay import kernel

_REVIEW, _ATTRIBUTES, _STAY, _MANY, _FEW = auto.REVIEW, auto.ATTRIBUTES, auto.STAY, auto.MANY, auto.FEW


@kernel
def begin(b: int, s: int, checks: int, hits: int) -> None:
    """An index that is about to get its first entry starts to count from here."""
    state = states_of(b)[s]
    state.reviewed_checks, state.reviewed_hits = checks, hits
    state.next_review = checks + _REVIEW


@kernel
def review(b: int, s: int, checks: int, hits: int) -> None:
    """Decide again which method works, from what happened since the last time: AutoIndex._review."""
    state = states_of(b)[s]
    recent = checks - state.reviewed_checks
    share = (hits - state.reviewed_hits) / max(1, recent)
    calm = state.updates < recent
    state.updates = 0
    begin(b, s, checks, hits)
    kind = state.kind
    if kind == KDTREE and 2 * state.fallbacks > recent:
        state.stay = _STAY
        _go_over(b, s, PACKED)
        return
    if state.stay:
        state.stay -= 1
        if not state.stay:
            _go_over(b, s, KDTREE)
        return
    state.fallbacks = 0
    if _domain(b).shape[0] < _ATTRIBUTES:
        return
    if kind == KDTREE and share >= _MANY and calm:
        _go_over(b, s, PACKED)
    elif kind == PACKED and (share < _FEW or not calm):
        _go_over(b, s, KDTREE)


@kernel
def _go_over(b: int, s: int, kind: int) -> None:
    state = states_of(b)[s]
    state.kind, state.fallbacks = kind, 0
    if state.held > tail_limit(0):
        rebuild(b, s)
        return
    compact(b, s)
    pack_stored(points_in(b, s), 0, np.int64(state.held), fields_in(b), words_in(b, s))
