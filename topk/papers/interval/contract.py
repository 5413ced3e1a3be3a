"""Scored interval indexes over one attribute: intervals stabbed by a value (or met by an interval), in score
order, one `getnext()` at a time.

An index receives *entries*: closed intervals with a score, an id that breaks ties, and the row that
`getnext()` returns. The papers call getnext() once per result; a Python call per result would cost more
than the work, so a cursor also has `fetch(m)`, which is m calls of getnext() in one kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError
from topk.checks import Floats, Ints

# What an index counts, where it applies: places in `IntervalIndex.work`.
NODES = 0  # nodes, or lists of predicates, that were opened
COMPARED = 1  # intervals and extents compared with the event
# Keys on the way through queues: ⌈log2(m + 1)⌉ per push, pop or replacement in a heap of m, m per linear search
QUEUED = 2
PROBED = 3  # words of bitmaps, and headers of lists, looked at
COUNTERS = 4

BRANCHING = 50  # children of a node, the paper's b


class Space(NamedTuple):
    """What a structure stores, counted as the paper counts: by kinds of things, without spare room."""

    references: int  # to intervals, copies included
    extents: int  # bounding intervals, each with a reference to what is below
    nodes: int  # of a binary tree: a value, two children, a list

    @property
    def shared(self) -> int:
        """Bytes where the intervals lie elsewhere, for all indexes: Table 2 has 8.3 bytes per interval and tree."""
        return 4 * self.references + 20 * self.extents + 20 * self.nodes

    @property
    def whole(self) -> int:
        """Bytes where every reference comes with its interval, the unit of Theorems 3.1 and 3.2."""
        return self.shared + 16 * self.references


class Entries(NamedTuple):
    """Intervals of one attribute, in any order."""

    rows: Ints
    lo: Floats
    hi: Floats
    scores: Floats
    ids: Ints

    def ranked(self) -> Entries:
        """The same, best score first, ties by ascending id: position is then rank."""
        return self.take(np.lexsort((self.ids, -self.scores)))

    def take(self, which: NDArray[Any]) -> Entries:
        """The entries at these positions, or under this mask."""
        return Entries(self.rows[which], self.lo[which], self.hi[which], self.scores[which], self.ids[which])

    @classmethod
    def none(cls) -> Entries:
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0), np.empty(0, np.int64))


class Cursor:
    """An iterator over the stabbed intervals, best first. Valid until the index changes."""

    def __init__(self, index: IntervalIndex, state: Any) -> None:
        self._index = index
        self._state = state

    def fetch(self, count: int) -> Ints:
        """Up to `count` further rows, best first; fewer only at the end."""
        out = np.empty(count, np.int64)
        found = self._index._advance(self._state, out)
        return out[:found]

    def getnext(self) -> int | None:
        """The next best row, or None at the end."""
        rows = self.fetch(1)
        return int(rows[0]) if len(rows) else None


class SortedRows:
    """The state of a cursor over rows that were all found, and sorted, when it was opened."""

    def __init__(self, rows: NDArray[Any], work: NDArray[np.int64]) -> None:
        work[QUEUED] += len(rows) * len(rows).bit_length()  # as a heap would, one by one
        self._rows = rows
        self._at = 0

    def hand_out(self, out: Ints) -> int:
        part = self._rows[self._at : self._at + len(out)]
        out[: len(part)] = part
        self._at += len(part)
        return len(part)


class IntervalIndex(ABC):
    """One attribute. Static indexes are built once; dynamic ones also insert and delete."""

    name: ClassVar[str]
    calibrated: ClassVar[bool] = False  # as in topk/container.py
    dynamic: ClassVar[bool] = False
    options: ClassVar[Mapping[str, str]] = {}
    _rows: NDArray[Any]  # of a static index, by rank or place

    def __init__(self, entries: Entries | None = None, **options: Any) -> None:
        self.work: NDArray[np.int64] = np.zeros(COUNTERS, np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def stab(self, value: float) -> Cursor:
        """Open an iterator over the intervals that contain `value`."""
        return self.overlapping(value, value)

    def overlapping(self, low: float, high: float) -> Cursor:
        """Open an iterator over the intervals that meet [low, high]: the papers' future work."""
        return Cursor(self, self._open(float(low), float(high)))

    @abstractmethod
    def _open(self, low: float, high: float) -> Any:
        """The state of a fresh cursor."""

    @abstractmethod
    def _advance(self, state: Any, out: Ints) -> int:
        """Write the next rows into `out`; returns how many, less than len(out) only at the end."""

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    @property
    def allocated_bytes(self) -> int:
        """What the arrays take, spare room included."""
        return self.nbytes

    @abstractmethod
    def check(self) -> None: ...

    def insert(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        raise CoverlayError(f"{self.name} is static: build a new one, or use it through topk.create")

    def delete(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        raise CoverlayError(f"{self.name} is static: build a new one, or use it through topk.create")


def not_held(name: str, row: int, lo: float, hi: float) -> CoverlayError:
    return CoverlayError(f"{name} does not hold row {row} with the interval {lo:g} to {hi:g}")


def array_bytes(*arrays: NDArray[Any]) -> int:
    return int(sum(array.nbytes for array in arrays))


def branching_factor(b: int) -> int:
    if not 2 <= b <= 1024:
        raise CoverlayError(f"the branching factor b must be between 2 and 1024, not {b}")
    return int(b)
