"""What a neighbour wants, for the question "does anything match?", in both engines.

Every entry has a place. Places from `built` on are the tail, which is scanned up to the first match. Its rows hold only
the attributes that a subscription mentions: with hundreds of attributes, only the few that are used cost anything.
Places before `built` are the static part: slices (topk/slices), asked for one match, largest boxes first because they
match most often. Removing an entry there clears its bits.

A static part is built when an event asks, enough has changed (as in local_rows.py), and reading entries since the last
build has cost as much as a build. Where most events match one of the first entries, none is ever built.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from broker.local_rows import NEVER, clear_bits, empty_layout, is_due
from broker.residue_rows import PLAIN, ResidueRows, Residues, admits, admits_value
from broker.scratch import Scratch, note_event, room_for_ranks
from coverlay import kernel
from topk.catalogue import Catalogue
from topk.kernels.structures import kept, structure
from topk.slices.index import Slices
from topk.slices.query import exact

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST = 256  # the fewest entries that are worth a static part
MOST_ATTRIBUTES = 16  # with more, slices are large and most events lack most attributes
READS = 256  # reading this many entries costs as much as building one
_LONGEST = 1e15  # longest side of a box: a product of MOST_ATTRIBUTES sides stays finite
_MORE = 8  # factor by which more candidates are asked for while residues reject all


LinkRows, link_at = structure(
    "LinkRows",
    named=np.empty((0, 0), np.int32),  # the tail: attributes that a row mentions, −1 after the last
    lo=np.empty((0, 0)),
    hi=np.empty((0, 0)),
    residue=np.empty(0, np.int64),
    filled=0,  # rows of the tail
    residues=ResidueRows,
    scratch=Scratch,
    layout=empty_layout(1),
    static_residue=np.empty(0, np.int64),  # by rank
    built=0,
    relaxed=False,
    # Only for tables that Python brings up to date:
    read=0,  # entries and blocks looked at since the static part was built
    build_at=0,  # when `read` reaches this, a new static part is worth building
)
# All tables of a broker in one tree, asked in one call: a call from Python costs more than searching a small table.
TreeRows, _tree_at = structure(
    "TreeRows",
    neighbours=np.empty(0, np.int64),
    tables=np.empty(0, np.int64),  # addresses, or EVERYTHING
    wanted=np.empty(0, np.int64),  # the answer: neighbours that want the event
)
EVERYTHING = 0  # in place of a table: the neighbour gets every event


def least_of(dimensions: int, semantics: str) -> int:
    """The fewest changes worth a new static part; never if relaxed, where the first entries nearly always match."""
    return NEVER if semantics == "relaxed" or dimensions > MOST_ATTRIBUTES else LEAST


@kernel(inline="always")
def table_is_due(used: int, entries: int, built: int, least: int, read: int, reads: int) -> bool:
    """Is a new static part worth building? `used`: places; `read`: entries read since the last one; `reads`: READS."""
    return entries > 0 and read >= reads * entries and is_due(used - built, used - entries, built, least)


def new_rows(dimensions: int, residues: Residues, scratch: Any, semantics: str) -> Any:
    """No rows yet."""
    rows = LinkRows()
    rows.holds = residues, scratch  # kept alive: the kernels borrow them
    _begin(rows, empty_layout(dimensions), residues.rows, scratch, semantics == "relaxed")
    return rows


@kernel
def _begin(t: Any, layout: Any, residues: Any, scratch: Any, is_relaxed: bool) -> None:
    t.layout, t.residues, t.scratch, t.relaxed = layout, residues, scratch, is_relaxed
    t.named, t.lo, t.hi = np.empty((0, 0), np.int32), np.empty((0, 0)), np.empty((0, 0))
    t.residue, t.static_residue = np.empty(0, np.int64), np.empty(0, np.int64)


@kernel
def set_tail(t: Any, named: Any, lo: Any, hi: Any, residue: Any, filled: int, build_at: int) -> None:
    t.named, t.lo, t.hi, t.residue, t.filled, t.build_at = named, lo, hi, residue, filled, build_at


@kernel
def forget(t: Any, rank: int) -> None:
    """Remove an entry from the static part."""
    clear_bits(t.layout, rank, False)


def build(t: Any, lo: Floats, hi: Floats, mentioned: NDArray[np.bool_], residue: Ints, domain: Floats) -> Ints:
    """Make these entries the static part and empty the tail; returns their order in it."""
    sides = np.minimum(hi, domain[:, 1]) - np.maximum(lo, domain[:, 0])
    volume = np.clip(sides, 0.0, _LONGEST).prod(axis=1)
    index = Slices(Catalogue(np.arange(len(lo)), lo, hi, volume, np.zeros(lo.shape), mentioned), "exact")
    _set_static(t, index.layout, residue[index.ranked], len(lo))
    return index.ranked


def clear(t: Any, dimensions: int) -> None:
    """Remove the static part and the tail."""
    _set_static(t, empty_layout(dimensions), np.empty(0, np.int64), 0)


@kernel
def _set_static(t: Any, layout: Any, residue: Any, built: int) -> None:
    t.layout, t.static_residue, t.built, t.filled, t.read = layout, residue, built, 0, 0


@kernel
def built(t: Any) -> int:
    """Places of the static part."""
    return t.built


@kernel
def read(t: Any) -> int:
    """Entries and blocks looked at since the static part was built."""
    return t.read


@kernel
def is_due_now(address: int) -> bool:
    """Have events read enough entries to make a new static part worth building?"""
    t = link_at(address)
    return t.read >= t.build_at


@kernel
def set_tables(t: Any, neighbours: Any, tables: Any, wanted: Any) -> None:
    t.neighbours, t.tables, t.wanted = neighbours, tables, wanted


@kernel
def ask_all(address: int, source: int, event: Any) -> Any:
    """Ask the tables of all neighbours but `source`, and put those that want the event into `wanted`.

    Returns (how many want it, tables asked, those of them in slices, entries compared, blocks looked at, is a new
    static part worth building in any of them?).
    """
    tree, count, asked, sliced, compared, blocks, due = _tree_at(address), 0, 0, 0, 0, 0, False
    neighbours, tables, wanted = tree.neighbours, tree.tables, tree.wanted
    for i in range(len(tables)):
        if neighbours[i] == source:
            continue
        found = True
        if tables[i] != EVERYTHING:
            t = link_at(tables[i])
            found, in_slices, entries, looked = any_match(t, event, t.residues)
            t.read += entries + looked
            asked += 1
            sliced += in_slices
            compared += entries
            blocks += looked
            due |= t.read >= t.build_at
        if found:
            wanted[count] = neighbours[i]
            count += 1
    return count, asked, sliced, compared, blocks, due


@kernel(inner=True)
def any_match(t: Any, event: Any, residues: Any) -> Any:
    """Returns (does any entry match?, 1 if a static part was asked else 0, entries compared, blocks of 64 looked at).

    `residues`: as in local_rows.find_best.
    """
    sliced = compared = blocks = 0
    if t.built > 0:
        note_event(t.scratch, event)
        found = _static_match(t, event, residues)
        sliced, compared, blocks = 1, t.scratch.work[0], t.scratch.work[1]
        if found:
            return True, sliced, compared, blocks
    if residues is not None and t.relaxed:
        found, scanned = _relaxed_match(t, event)
    else:
        found, scanned = _tail_match(t, event, residues)
    return found, sliced, compared + scanned, blocks


@kernel(inner=True)
def _static_match(t: Any, event: Any, residues: Any) -> bool:
    scratch, residue, ask = t.scratch, t.static_residue, np.int64(1)
    while True:
        room_for_ranks(scratch, ask)
        ranks = scratch.ranks
        found = exact(t.layout, scratch.point, ask, ranks, scratch.work, scratch.notes)
        for i in range(found):
            if admits(residues, residue[ranks[i]], event):
                return True
        if found < ask:
            return False
        ask *= _MORE


@kernel(inner=True)
def _tail_match(t: Any, event: Any, residues: Any) -> Any:
    """Scan up to the first entry all of whose predicates hold. NaN (missing) fails every comparison.

    It does not branch on single comparisons: which one fails is unpredictable, and a misprediction costs an entry.
    """
    named, lo, hi, residue = t.named, t.lo, t.hi, t.residue
    for row in range(t.filled):
        hit = True
        for i in range(named.shape[1]):
            j = named[row, i]
            if j < 0:
                break
            value = event[j]
            hit &= (lo[row, i] <= value) & (value <= hi[row, i])
        if hit and admits(residues, residue[row], event):
            return True, row + 1
    return False, t.filled


@kernel(inner=True)
def _relaxed_match(t: Any, event: Any) -> Any:
    """Scan up to the first entry with a predicate that holds."""
    named, lo, hi, residue = t.named, t.lo, t.hi, t.residue
    for row in range(t.filled):
        for i in range(named.shape[1]):
            j = named[row, i]
            if j < 0:
                break
            inside = lo[row, i] <= event[j] <= hi[row, i]
            if inside and (residue[row] == PLAIN or admits_value(t.residues, residue[row], j, event[j])):
                return True, row + 1
    return False, t.filled


def check(t: Any, entries: list[Any]) -> None:
    """Raise AssertionError unless the static part holds these filters by rank; None: the entry has left."""
    layout, built, residue = _static(t)
    assert built == len(entries) == len(residue)
    for rank, filter in enumerate(entries):
        bits = (layout.slices[0, :, rank >> 6] >> np.uint64(rank & 63)) & np.uint64(1)
        if filter is None:
            assert not bits.any(), "an entry that has left matches nothing"
        else:
            assert np.array_equal(layout.bounds[rank, :, :2], filter.box)
            assert bits.any()


@kernel
def _static(t: Any) -> Any:
    return kept(t, "layout"), t.built, kept(t, "static_residue")
