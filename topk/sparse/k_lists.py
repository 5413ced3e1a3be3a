"""The posting lists of k-index: for each expression size, attribute and value, the rows that accept the value.

A range of few whole values is enumerated: a posting per value, so memory grows with the width of the ranges. Any other
predicate (continuous or wider ranges, ≠, ∉) is filed in the attribute's list for any value. A value between two whole
ones is looked up at the lower: a range with whole ends that contains the value contains the lower one too. Where the
event itself is a range, the lists of its values (which lie side by side) are merged into one, so that a row counts once
per attribute.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError, kernel
from topk.checks import Floats, Ints
from topk.sparse.rows import Rows

ENUMERABLE = 2**20  # values of one range; unbounded ranges and those with fractions cannot be enumerated at all
_MOST_POSTINGS = 2**28  # beyond, building the lists takes more than 20 GB
_WHOLE = 2.0**52  # from here on every float is whole
_ANY = -(2**62)  # in place of a value in the lists of wide predicates


class KIndexLists(NamedTuple):
    """Posting lists sorted by (size, attribute, value)."""

    size: Ints  # (lists,)
    attribute: Ints
    value: Ints
    begin: Ints  # (lists + 1,)
    top: Floats  # (lists,) largest weight
    row: NDArray[np.int32]  # ascending within a list


@kernel(inner=True)
def _values_of(lo: float, hi: float, most: int) -> int:
    """How many whole values a predicate accepts, 0 when they are not to be enumerated."""
    if lo == np.floor(lo) and hi == np.floor(hi) and hi - lo < most and abs(lo) < _WHOLE:
        return int(hi - lo) + 1
    return 0


@kernel
def enumerate_postings(rows: Rows, live: Any, most: int, fill: bool, out: Any, weight: Any) -> int:
    """Postings (size, attribute, value, row) of the live rows; with fill=False only their number."""
    count = 0
    for row in live:
        begin = rows.start[row]
        for p in range(begin, begin + rows.length[row]):
            number = _values_of(rows.lo[p], rows.hi[p], most)
            for i in range(max(number, 1)):
                if fill:
                    out[count, 0] = rows.length[row]
                    out[count, 1] = rows.attribute[p]
                    out[count, 2] = np.int64(rows.lo[p]) + i if number else _ANY
                    out[count, 3] = row
                    weight[count] = rows.weight[p]
                count += 1
    return count


def build_lists(rows: Rows, live: Ints, most: int) -> KIndexLists:
    nothing = np.empty((0, 4), np.int64)
    total = enumerate_postings(rows, live, most, False, nothing, np.empty(0))
    if total > _MOST_POSTINGS:
        raise CoverlayError(
            f"k-index would need {total:,} postings, and {_MOST_POSTINGS:,} are allowed; "
            f"enumerate fewer values of a range (most_values, now {most:,})"
        )
    postings, weight = np.empty((total, 4), np.int64), np.empty(total)
    enumerate_postings(rows, live, most, True, postings, weight)
    order = _by_list(postings)
    postings, weight = postings[order], weight[order]
    changes = np.any(postings[1:, :3] != postings[:-1, :3], axis=1)
    begin = np.concatenate([[0], np.flatnonzero(changes) + 1]) if total else np.zeros(0, np.int64)
    top = np.maximum.reduceat(weight, begin) if total else np.zeros(0)
    size, attribute, value = (np.ascontiguousarray(postings[begin, i]) for i in range(3))
    return KIndexLists(size, attribute, value, np.append(begin, total), top, postings[:, 3].astype(np.int32))


def _by_list(postings: Ints) -> Ints:
    """The order by (size, attribute, value); rows ascend as they come. One key where it fits into 63 bits."""
    if not len(postings):
        return np.zeros(0, np.int64)
    size, attribute, value = postings[:, 0], postings[:, 1], postings[:, 2]
    known = value[value != _ANY]
    low, high = (int(known.min()), int(known.max())) if len(known) else (0, 0)
    attributes, values = int(attribute.max()) + 1, high - low + 2
    if (int(size.max()) + 1) * attributes * values < 2**63:
        place = np.where(value == _ANY, 0, value - low + 1)
        return np.argsort((size * attributes + attribute) * values + place, kind="stable")
    return np.lexsort((value, attribute, size))


@kernel(inner=True)
def locate(lists: KIndexLists, size: int, attribute: int, value: int) -> int:
    """The first list not before (size, attribute, value)."""
    low, high = 0, len(lists.size)
    while low < high:
        middle = (low + high) >> 1
        before = lists.size[middle] < size
        if lists.size[middle] == size:
            before = lists.attribute[middle] < attribute
            if lists.attribute[middle] == attribute:
                before = lists.value[middle] < value
        if before:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(inner=True)
def open_lists(lists: KIndexLists, size: int, columns: Any, at: Any, end: Any, weight: Any, event_weight: Any) -> int:
    """Cursors of a point event in partition `size`: positions, ends and largest weights; returns how many.

    Per attribute the list of its value and the one for any value: a row is in at most one of them.
    """
    count = 0
    for i in range(len(columns[0])):
        for value in (_ANY, whole_part(columns[1][i])):
            found = locate(lists, size, columns[0][i], value)
            if found == len(lists.size) or lists.size[found] != size or lists.value[found] != value:
                continue
            if lists.attribute[found] == columns[0][i]:
                at[count], end[count] = lists.begin[found], lists.begin[found + 1]
                weight[count], event_weight[count] = lists.top[found], columns[3][i]
                count += 1
    return count


@kernel(inner=True)
def whole_part(value: float) -> Any:
    return np.int64(np.floor(min(max(value, -_WHOLE), _WHOLE)))


@kernel(inner=True)
def merge_lists(lists: KIndexLists, size: int, columns: Any, at: Any, end: Any, weight: Any, event_weight: Any) -> Any:
    """`open_lists` for an event with ranges: one merged list per attribute; returns how many, and the postings."""
    count, used, flat = 0, 0, np.empty(64, np.int32)
    for i in range(len(columns[0])):
        a = columns[0][i]
        first = locate(lists, size, a, whole_part(columns[1][i]))
        last = locate(lists, size, a, whole_part(columns[2][i]) + 1)
        anything = locate(lists, size, a, _ANY)
        others = locate(lists, size, a, _ANY + 1)
        members = np.concatenate(
            (lists.row[lists.begin[first] : lists.begin[last]], lists.row[lists.begin[anything] : lists.begin[others]])
        )
        if len(members) == 0:
            continue
        members.sort()
        if used + len(members) > len(flat):
            flat = np.concatenate((flat[:used], np.empty(used + len(members), np.int32)))
        at[count], weight[count], event_weight[count] = used, 0.0, columns[3][i]
        for j in range(len(members)):
            if j == 0 or members[j] != members[j - 1]:
                flat[used] = members[j]
                used += 1
        for j in range(first, last):
            weight[count] = max(weight[count], lists.top[j])
        for j in range(anything, others):
            weight[count] = max(weight[count], lists.top[j])
        end[count] = used
        count += 1
    return count, flat
