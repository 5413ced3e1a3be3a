"""The subscriptions of a broker's own clients for the matchers `scan` and `auto`, in both engines.

Every row has a place. Places from `built` on are the tail, which is scanned block by block. Places before `built` are
the static part: slices (topk/slices) in rank order. Removing a row there clears its bits. When an event asks and enough
has changed to be worth a build, all live rows become a new static part. Fewer than LEAST rows are only scanned, and so
is everything under `scan`.

A residue is checked once the box matches. In the static part this may leave fewer than k, so more are asked for. Under
relaxed semantics residues change the scores, hence the order, so nothing is built while a live row has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broker.residue_rows import PLAIN, ResidueRows, Residues, admits, admits_value
from broker.scratch import Scratch, note_event, room_for_answers, room_for_ranks
from broker.served_rows import add_best, served_at
from coverlay import kernel
from topk.catalogue import Catalogue
from topk.kernels.heaps import in_order, offer
from topk.kernels.structures import kept, structure
from topk.scan import BLOCK, block_exact, block_relaxed
from topk.slices.index import Slices
from topk.slices.query import Layout, exact, relaxed
from topk.store import Columns

LEAST = 128  # the fewest rows that are worth a static part: scanning them takes as long as asking slices
NEVER = 1 << 62  # in place of LEAST: no static part is ever built
CHANGED_SHARE = 8  # rebuild when 1/8 of the static part has changed: each change pays for building 8 rows, about 8 µs
_FIRST_ROWS = 16
_SPARE = 8  # candidates asked for beyond k where residues may reject some; the sum is doubled while too few remain


def empty_layout(dimensions: int) -> Layout:
    """An empty static part."""
    none, words = np.empty((0, dimensions, 3)), np.empty((dimensions, 0, 0), np.uint64)
    named, filled = np.empty((dimensions, 0), np.uint64), np.empty((dimensions, 0), np.int64)
    tables, limits = np.empty((dimensions, 0, 2)), np.empty((0, 2 * dimensions + 1))
    return Layout(none, words, named, filled, tables, limits, np.empty((0, dimensions), np.uint8), np.empty(dimensions))


def _no_columns(dimensions: int) -> Columns:
    shape = (dimensions, 0)
    lo, hi, weights, mentioned = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape, np.uint8)
    return Columns(lo, hi, weights, mentioned, np.empty(0), np.empty(0, np.int64))


LocalRows, local_at = structure(
    "LocalRows",
    columns=_no_columns(1),  # by place; the id is −1 where the row has left
    residue=np.empty(0, np.int64),
    residues=ResidueRows,
    scratch=Scratch,
    layout=empty_layout(1),
    used=0,
    built=0,
    dead=0,  # places of the static part whose rows have left
    residual=0,  # live rows with a residue
    least=0,  # the fewest rows that are worth a static part
    relaxed=False,
)


def new_rows(dimensions: int, residues: Residues, scratch: Any, semantics: str, method: str) -> Any:
    """No rows yet."""
    rows = LocalRows()
    rows.holds = residues, scratch  # kept alive: the kernels borrow them
    least = LEAST if method == "auto" else NEVER
    _begin(rows, empty_layout(dimensions), residues.rows, scratch, least, semantics == "relaxed")
    return rows


@kernel
def _begin(t: Any, layout: Any, residues: Any, scratch: Any, least: int, is_relaxed: bool) -> None:
    t.layout, t.residues, t.scratch, t.least, t.relaxed = layout, residues, scratch, least, is_relaxed
    t.columns, t.residue = _columns(layout.units.shape[0], _FIRST_ROWS), np.empty(_FIRST_ROWS, np.int64)


@kernel(inner=True)
def _columns(dimensions: int, rows: int) -> Any:
    shape = (dimensions, rows)
    lo, hi, weights = np.empty(shape), np.empty(shape), np.empty(shape)
    return Columns(lo, hi, weights, np.empty(shape, np.uint8), np.empty(rows), np.empty(rows, np.int64))


@kernel(inner=True)
def new_place(t: Any, subscription: int, score: float, residue: int) -> int:
    """Append a row and return its place; the caller writes bounds, weights and mentioned attributes."""
    place, old = t.used, t.columns
    if place == len(old.ids):
        columns, numbers = _columns(old.lo.shape[0], 2 * place), np.empty(2 * place, np.int64)
        for i in range(place):
            numbers[i], columns.scores[i], columns.ids[i] = t.residue[i], old.scores[i], old.ids[i]
            for j in range(old.lo.shape[0]):
                columns.lo[j, i], columns.hi[j, i] = old.lo[j, i], old.hi[j, i]
                columns.weights[j, i], columns.mentioned[j, i] = old.weights[j, i], old.mentioned[j, i]
        t.columns, t.residue = columns, numbers
    t.columns.scores[place], t.columns.ids[place], t.residue[place] = score, subscription, residue
    t.residual += residue != PLAIN
    t.used += 1
    return place


@kernel
def enter(t: Any, ids: Any, boxes: Any, weights: Any, mentioned: Any, scores: Any, residues: Any) -> int:
    """Append rows for new subscriptions, in this order; returns the place of the first."""
    first = t.used
    for i in range(len(ids)):
        place = new_place(t, ids[i], scores[i], residues[i])
        columns = t.columns
        for j in range(weights.shape[1]):
            columns.lo[j, place], columns.hi[j, place] = boxes[i, j, 0], boxes[i, j, 1]
            columns.weights[j, place], columns.mentioned[j, place] = weights[i, j], mentioned[i, j]
    return first


@kernel
def leave(t: Any, place: int) -> int:
    """Remove a row; returns the subscription that moves to its place from the end of the tail, or −1."""
    columns = t.columns
    t.residual -= t.residue[place] != PLAIN
    if place < t.built:
        columns.ids[place] = -1
        t.dead += 1
        clear_bits(t.layout, place, t.relaxed)
        return -1
    t.used -= 1
    last = t.used
    if place == last:
        return -1
    for j in range(columns.lo.shape[0]):
        columns.lo[j, place], columns.hi[j, place] = columns.lo[j, last], columns.hi[j, last]
        columns.weights[j, place], columns.mentioned[j, place] = columns.weights[j, last], columns.mentioned[j, last]
    columns.scores[place], columns.ids[place] = columns.scores[last], columns.ids[last]
    t.residue[place] = t.residue[last]
    return columns.ids[place]


@kernel(inner=True)
def clear_bits(layout: Any, rank: int, is_relaxed: bool) -> None:
    """Make a rank match nothing: exact matching needs its bit in every attribute, relaxed matching in any one."""
    slices, keep = layout.slices, ~(np.uint64(1) << np.uint64(rank & 63))
    for j in range(slices.shape[0] if is_relaxed else 1):
        for cell in range(slices.shape[1]):
            slices[j, cell, rank >> 6] &= keep


@kernel(inline="always")
def is_due(tail: int, dead: int, built: int, least: int) -> bool:
    """Has enough changed for a new static part to be worth it?"""
    return tail + dead >= max(least, built // CHANGED_SHARE)


@kernel
def stale(t: Any) -> bool:
    """Should a new static part be built before the next event asks?"""
    return is_due(t.used - t.built, t.dead, t.built, t.least) and not (t.relaxed and t.residual > 0)


def build(t: Any) -> NDArray[np.int64]:
    """Put all live rows into a new static part, or into the tail if they are few; returns the ids by place."""
    columns, used, least, is_relaxed = _state(t)
    live = np.flatnonzero(columns.ids[:used] >= 0)
    live = live[np.argsort(columns.ids[live])]  # ties in score are won by the lower id, hence by the lower number
    layout, built = empty_layout(len(columns.lo)), 0
    if len(live) >= least:
        lo, hi, weights, mentioned = (np.ascontiguousarray(column[:, live].T) for column in columns[:4])
        numbers = np.arange(len(live))
        catalogue = Catalogue(numbers, lo, hi, columns.scores[live], weights, mentioned.astype(np.bool_))
        index = Slices(catalogue, "relaxed" if is_relaxed else "exact")
        layout, built, live = index.layout, len(live), live[index.ranked]
    _rearrange(t, live, layout, built)
    return columns.ids[live]


@kernel
def _state(t: Any) -> Any:
    return kept(t, "columns"), t.used, t.least, t.relaxed


@kernel
def _rearrange(t: Any, order: Any, layout: Any, built: int) -> None:
    """Move the rows to places 0, 1, … in this order."""
    old, count = t.columns, len(order)
    columns, numbers = _columns(old.lo.shape[0], max(count, _FIRST_ROWS)), np.empty(max(count, _FIRST_ROWS), np.int64)
    for i in range(count):
        place = order[i]
        numbers[i], columns.scores[i], columns.ids[i] = t.residue[place], old.scores[place], old.ids[place]
        for j in range(old.lo.shape[0]):
            columns.lo[j, i], columns.hi[j, i] = old.lo[j, place], old.hi[j, place]
            columns.weights[j, i], columns.mentioned[j, i] = old.weights[j, place], old.mentioned[j, place]
    t.columns, t.residue, t.layout, t.used, t.built, t.dead = columns, numbers, layout, count, built, 0


@kernel
def top(address: int, event: Any, ids: Any, scores: Any) -> Any:
    """Write the len(ids) best to ids and scores, best first; returns (how many, entries compared, blocks looked at).

    Called for every event message. It takes an address because numba is slow to find the type of a structure, and
    arrays to fill because Python takes longer to receive an array from a kernel than to make one.
    """
    t = local_at(address)
    size, entries, blocks = find_best(t, event, len(ids), t.residues)
    found, worth = t.scratch.ids, t.scratch.scores
    for i in range(size):
        ids[i], scores[i] = found[i], worth[i]
    return size, entries, blocks


@kernel
def serve(address: int, served: int, event: Any, k: int) -> Any:
    """Append the k best (all if k is negative) to the served rows at address `served`; returns the counts of `top`."""
    t = local_at(address)
    size, entries, blocks = find_best(t, event, k, t.residues)
    add_best(served_at(served), t.scratch.ids, t.scratch.scores, size)
    return size, entries, blocks


@kernel(inner=True)
def find_best(t: Any, event: Any, k: int, residues: Any) -> Any:
    """Returns (number of answers, entries compared, blocks looked at); the answers are in the scratch, best first.

    `residues`: those of the table; None where matching is exact and no row has one, so that only this is compiled.
    """
    live, tail, scratch = t.used - t.dead, t.used - t.built, t.scratch
    k = live if k < 0 else min(k, live)
    if k == 0:
        return 0, 0, 0
    room_for_answers(scratch, k)
    note_event(scratch, event)
    ids, scores, size = scratch.ids[:k], scratch.scores[:k], np.int64(0)
    if t.built > 0:
        size = _static_top(t, event, ids, scores, residues)
    if tail > 0:
        size = _tail_top(t, event, ids, scores, size, residues)
    if tail > 0 or t.relaxed:
        in_order(scores, ids, size)
    return size, scratch.work[0] + tail, scratch.work[1]


@kernel(inner=True)
def _static_top(t: Any, event: Any, ids: Any, scores: Any, residues: Any) -> Any:
    """Find the best of the static part; returns how many. They are a heap if the caller sorts them, else best first."""
    scratch = t.scratch
    if residues is not None and t.relaxed:
        return relaxed(t.layout, t.columns.ids, scratch.point, ids, scores, scratch.work)
    size = _static_exact(t, event, ids, scores, residues)
    if t.used > t.built:  # worst first is a valid heap
        for i in range(size // 2):
            j = size - 1 - i
            ids[i], ids[j], scores[i], scores[j] = ids[j], ids[i], scores[j], scores[i]
    return size


@kernel(inner=True)
def _static_exact(t: Any, event: Any, ids: Any, scores: Any, residues: Any) -> Any:
    columns, residue, scratch, k = t.columns, t.residue, t.scratch, len(ids)
    ask = min(k + (_SPARE if t.residual > 0 else 0), t.built)
    while True:
        room_for_ranks(scratch, ask)
        ranks, size = scratch.ranks, 0
        found = exact(t.layout, scratch.point, ask, ranks, scratch.work, scratch.notes)
        for i in range(found):
            rank = ranks[i]
            if size < k and admits(residues, residue[rank], event):
                ids[size], scores[size] = columns.ids[rank], columns.scores[rank]
                size += 1
        if size == k or found < ask or ask == t.built:
            return size
        ask = min(2 * ask, t.built)


@kernel(inner=True)
def _tail_top(t: Any, event: Any, ids: Any, scores: Any, size: int, residues: Any) -> int:
    """Scan the tail and offer what matches to a heap of `size`; returns its new size."""
    columns, residue, k = t.columns, t.residue, len(ids)
    mask, total, hits = t.scratch.mask, t.scratch.total, t.scratch.hits
    for start in range(t.built, t.used, BLOCK):
        stop = min(start + BLOCK, t.used)
        if residues is not None and t.relaxed:
            block_relaxed(columns, event, event, start, stop, mask, total)
        else:
            block_exact(columns, event, event, start, stop, mask)
        found = 0
        for i in range(stop - start):  # without a branch: which rows match is unpredictable
            hits[found] = i
            found += mask[i]
        for at in range(found):
            i = hits[at]
            place, score = start + i, columns.scores[start + i]
            if residues is not None and t.relaxed:
                score = total[i]
            if size == k and score < scores[0]:
                continue
            if residues is not None and residue[place] != PLAIN:
                score = _true_score(t, place, event, score)
            if score == score:
                size = offer(scores, ids, size, score, columns.ids[place])
    return size


@kernel(inner=True)
def _true_score(t: Any, place: int, event: Any, score: float) -> float:
    """The score, residue included, of a row whose box matches; NaN if the residue rejects the event."""
    number, columns = t.residue[place], t.columns
    if not t.relaxed:
        return score if admits(t.residues, number, event) else np.nan
    total, held = 0.0, 0
    for j in range(len(event)):
        inside = columns.mentioned[j, place] and columns.lo[j, place] <= event[j] <= columns.hi[j, place]
        if inside and admits_value(t.residues, number, j, event[j]):
            total += columns.weights[j, place]
            held += 1
    return total if held else np.nan


def check(t: Any, places: Mapping[int, int]) -> None:
    """Raise AssertionError unless the parts fit together and the subscriptions are at these places."""
    columns, used, _, is_relaxed = _state(t)
    slices, built, dead = _static(t)
    held = columns.ids[:used].tolist()
    assert {id: place for place, id in enumerate(held) if id >= 0} == dict(places)
    assert built <= used
    assert dead == (columns.ids[:built] < 0).sum(), "what left the static part is counted"
    assert (columns.ids[built:used] >= 0).all(), "the tail has no gaps"
    for place in np.flatnonzero(columns.ids[:built] < 0):
        bits = (slices[:, :, place >> 6] >> np.uint64(place & 63)) & np.uint64(1)
        assert not bits[: None if is_relaxed else 1].any(), "what left the static part matches nothing"


@kernel
def _static(t: Any) -> Any:
    return kept(t, "layout").slices, t.built, t.dead
