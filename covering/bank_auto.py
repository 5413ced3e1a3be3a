"""`auto` in a bank of indexes (bank.py): the same reviews at the same moments as `auto.py`, on a row of states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from covering import auto
from covering.bank import KDTREE, PACKED, compact, rebuild, tail_limit
from covering.fields import pack_stored

_REVIEW, _ATTRIBUTES, _STAY, _MANY, _FEW = auto.REVIEW, auto.ATTRIBUTES, auto.STAY, auto.MANY, auto.FEW


@njit(cache=True, nogil=True)
def begin(states: Any, s: int, checks: int, hits: int) -> None:
    """An index that is about to get its first entry starts to count from here."""
    state = states[s]
    state.reviewed_checks, state.reviewed_hits = checks, hits
    state.next_review = checks + _REVIEW


@njit(cache=True, nogil=True)
def review(states: Any, lists: Any, grid: Any, s: int, checks: int, hits: int, epsilon: float, slot_of: Any) -> None:
    """Decide again which method works, from what happened since the last time: AutoIndex._review."""
    state = states[s]
    recent = checks - state.reviewed_checks
    share = (hits - state.reviewed_hits) / max(1, recent)
    calm = state.updates < recent
    state.updates = 0
    begin(states, s, checks, hits)
    if epsilon > 0.0:
        return
    kind = state.kind
    if kind == KDTREE and 2 * state.fallbacks > recent:
        state.stay = _STAY
        _go_over(states, lists, grid, s, PACKED, slot_of)
        return
    if state.stay:
        state.stay -= 1
        if not state.stay:
            _go_over(states, lists, grid, s, KDTREE, slot_of)
        return
    state.fallbacks = 0
    if grid[3].shape[0] < _ATTRIBUTES:
        return
    if kind == KDTREE and share >= _MANY and calm:
        _go_over(states, lists, grid, s, PACKED, slot_of)
    elif kind == PACKED and (share < _FEW or not calm):
        _go_over(states, lists, grid, s, KDTREE, slot_of)


@njit(cache=True, nogil=True)
def _go_over(states: Any, lists: Any, grid: Any, s: int, kind: int, slot_of: Any) -> None:
    state = states[s]
    state.kind, state.fallbacks = kind, 0
    if state.held > tail_limit(0):
        rebuild(states, lists, grid, s, slot_of)
        return
    compact(states, lists, s, slot_of)
    pack_stored(lists[0][s], 0, np.int64(state.held), (grid[0], grid[1], grid[2]), lists[1][s])
