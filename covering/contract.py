"""What every covering index shares: validation, the store of dominance points, statistics.

A box with closed bounds [lo_j, hi_j] is kept as the point p = (−lo_0, hi_0, −lo_1, hi_1, …) with D = 2d
coordinates (slides, "Rectangle Containment Reduces to Point Dominance"): box 1 contains box 2 iff p1 ≥ p2 in
every coordinate. Infinities need no special case. Points live in slots of one (capacity, D) array; a free
slot holds NaN, which neither dominates nor is dominated, so that no kernel needs a separate "alive" test.

A method derives from `CoveringIndex` and implements `search` (one query) or `search_into` (many); `insert`,
`delete` and `check_structure` if it has a structure beside the store; `search_covered` if it can beat a scan.

Any number of threads may ask one index at the same time: a search keeps nothing in the index but counts, and `stats`
may lose some of these. Whoever changes an index needs a lock that keeps readers out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covering.given import FINE, Floats, checked_domain, coerced, complaint, to_point, to_points
from covering.slot_table import Id, Ids, ordered, plain, plain_all
from covering.stats import Stats, Touches
from coverlay import CoverlayError, kernel, quoted

Slots = NDArray[np.int64]
# What a store of sorted keys must be able to say: of a range of keys whether it has any, and its records; or, which
# also answers that, the first record at or after a key.
Store = Literal["yes or no", "next key"]
EpsilonOf = Literal["volume", "covers"]

NO_SLOT = -1
BATCH = 128  # boxes that `add_uncovered` compares with each other: half a microsecond each
_FIRST_CAPACITY = 16  # slots allocated for the first entry
_GROWTH = 1.25  # capacity factor when full: the memory target, 1.5× the raw bounds, rules out doubling


@kernel
def _dominated_before(points: Floats) -> Slots:
    """For each point, an earlier one that dominates it and is itself dominated by none before it, or −1."""
    found = np.full(len(points), -1)
    for i in range(len(points)):
        for j in range(i):
            if found[j] < 0 and (points[j] >= points[i]).all():
                found[i] = j
                break
    return found


class CoveringIndex:
    """A dynamic set of boxes that answers "does a stored box contain this one?" with a witness.

    >>> import covering
    >>> index = covering.create("kdtree", [[0, 100], [1990, 2030]])
    >>> index.add("cheap and old", [[0, 50], [1990, 2004]])
    >>> index.find_cover([[0, 30], [1998, 2000]])
    'cheap and old'
    >>> index.find_cover([[0, 60], [1998, 2000]])  # None
    >>> index
    <covering index kdtree: 1 box of 2 attributes>

    With one attribute, bounds need no brackets of their own, and a number is a box of one value:

    >>> index = covering.create("scan", (0, 100))
    >>> index.add_many(["low", "high"], [(0, 20), (60, 100)])
    >>> index.find_cover(75), index.find_covered((50, 100)), "low" in index, sorted(index)
    ('high', ['high'], True, ['high', 'low'])
    """

    # What others need to know of a method. They read these facts and know no names.
    name: ClassVar[str]
    touches: Touches  # what a probe looks at, from which pages and round trips follow; `auto` changes it
    takes_epsilon: ClassVar[bool] = False
    epsilon_of: ClassVar[EpsilonOf] = "volume"  # what its ε is a share of
    store: Store | None = None  # of sorted keys, that it can live in; None: it needs a structure of its own
    cap: int | None = None  # probes (of a tree: nodes) after which a search ends, whatever its ε; None: no cap
    # Options that end a search before all possible covers were seen, and the value with which they do not.
    gives_up_with: ClassVar[Mapping[str, Any]] = {}
    always_gives_up: ClassVar[bool] = False  # even without such an option
    on_curve: ClassVar[bool] = False  # searches cubes of a space filling curve, as the slides do: their bounds apply
    slow_beyond: ClassVar[int | None] = None  # entries from which on a search takes milliseconds; None: never
    compares_candidates: ClassVar[bool] = False  # probes are key ranges; rows compared inside them are counted apart
    priced_like: ClassVar[str | None] = None  # it counts the probes of this method, so they cost what they cost there
    # The options that the compiled engine knows; None: it does not have the method. A subclass does not inherit this.
    compiled_with: ClassVar[tuple[str, ...] | None] = None
    bits: int = 0  # of a coordinate on the curve; 0: the method has none

    def __init__(self, domain: ArrayLike, epsilon: float = 0.0) -> None:
        self.domain = checked_domain(domain)
        self.epsilon = epsilon
        self.attributes = self.domain.shape[0]
        self.stats = Stats()
        self._shape = self.domain.shape
        self.points: Floats = np.empty((0, 2 * self.attributes))
        self._ids = Ids()
        self._free: list[int] = []  # slots below `used` that hold NaN, reused last in first out
        self.used = 0

    # ---- what users call -------------------------------------------------------------------------

    @classmethod
    def charged_as(cls) -> tuple[str, ...]:
        """The names under which a profile has the prices of its searches."""
        return (cls.name,)

    @property
    def choice(self) -> str:
        """The name of the method at work; `auto` changes it."""
        return self.name

    def __repr__(self) -> str:
        boxes = "1 box" if len(self) == 1 else f"{len(self):,} boxes"
        of = "1 attribute" if self.attributes == 1 else f"{self.attributes} attributes"
        return f"<covering index {self.name}: {boxes} of {of}{f', ε = {self.epsilon:g}' if self.epsilon else ''}>"

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: Hashable) -> bool:
        return id is not None and self._ids.find(plain(id)) >= 0

    def __iter__(self) -> Iterator[Id]:
        return iter(self.ids())

    def __copy__(self) -> Self:
        return deepcopy(self)  # one that shares arrays with the original would change with it

    def ids(self) -> list[Id]:
        """The stored ids, in the order of their slots."""
        return [self._ids.at(slot) for slot in self._ids.slots()]

    def box(self, id: Id) -> Floats:
        """The stored box of an id, as it was given."""
        point = self.points[self._slot_of(plain(id))]
        return np.stack([-point[0::2], point[1::2]], axis=1)

    def add(self, id: Id, box: ArrayLike) -> None:
        """Store a box of closed bounds under a new id."""
        point = self._point(box)
        id = plain(id)
        if self._ids.find(id) >= 0:
            raise CoverlayError(f"id {id!r} is already stored; remove it first")
        slot = self._free.pop() if self._free else self._grow(1)
        self._ids.put(id, slot)
        self.points[slot] = point
        self.insert(slot)

    def remove(self, id: Id) -> None:
        """Remove a stored id and its box."""
        id = plain(id)
        slot = self._slot_of(id)
        self.delete(slot)
        self._ids.drop(id, slot)
        self.points[slot] = np.nan
        self._release(slot)

    def update(self, id: Id, box: ArrayLike) -> None:
        """Replace the box of a stored id; on a mistake nothing changes."""
        self._point(box)
        self.remove(id)
        self.add(id, box)

    def remove_many(self, ids: Sequence[Id] | NDArray[Any]) -> None:
        """Remove stored ids and their boxes; on a mistake nothing is removed."""
        gone = [plain(id) for id in plain_all(ids)]
        for id in gone:
            self._slot_of(id)
        if len(set(gone)) < len(gone):
            raise CoverlayError(f"ids {quoted(gone)} repeat; give each id once")
        for id in gone:
            self.remove(id)

    def clear(self) -> None:
        """Remove everything; `stats` goes on counting."""
        self.remove_many(self.ids())

    def find_cover(self, box: ArrayLike) -> Id | None:
        """The id of a stored box that contains `box` (an equal one included), or None."""
        slot = self.search(self._point(box))
        self.stats.checks += 1
        if slot < 0:
            return None
        self.stats.hits += 1
        return self._ids.at(slot)

    def find_covered(self, box: ArrayLike) -> list[Id]:
        """The ids of all stored boxes that `box` contains, ascending; exact in every method."""
        return ordered(self._ids.at_all(self.search_covered(self._point(box))))

    def add_many(self, ids: Sequence[Id] | NDArray[Any], boxes: ArrayLike) -> None:
        """Store boxes (n, d, 2) under new ids; on a mistake nothing is stored."""
        points, ids = self._points_of(boxes), plain_all(ids)
        if len(ids) != len(points):
            raise CoverlayError(f"{len(ids)} ids were given for {len(points)} boxes; give as many ids as boxes")
        if len(points) == 0:
            return
        before, first = self.points, self._grow(len(points))
        try:
            self._ids.put_many(ids, first)
        except CoverlayError:
            self.points, self.used = before, first
            raise
        self.points[first : first + len(points)] = points
        self.insert_many(first, len(points))

    def find_cover_many(self, boxes: ArrayLike) -> list[Id | None]:
        """`find_cover` of each box of an (n, d, 2) batch."""
        slots = self.search_many(self._points_of(boxes))
        self.stats.checks += len(slots)
        self.stats.hits += int((slots >= 0).sum())
        return self._ids.at_all(slots)

    def add_uncovered(self, ids: Sequence[Id], boxes: Floats) -> list[Id | None]:
        """Store, in order, each box that no box stored before it contains; the cover of each box, or None.

        As `find_cover` and `add` one by one, but with few calls per BATCH boxes; it may name another of several covers.
        """
        found: list[Id | None] = []
        for start in range(0, len(ids), BATCH):
            names, batch = ids[start : start + BATCH], boxes[start : start + BATCH]
            covers = self.find_cover_many(batch)
            rest = [i for i, cover in enumerate(covers) if cover is None]
            before = _dominated_before(self._points_of(batch[rest])).tolist() if rest else []
            for i, j in zip(rest, before, strict=True):
                covers[i] = None if j < 0 else names[rest[j]]
            fresh = [i for i, j in zip(rest, before, strict=True) if j < 0]
            self.add_many([names[i] for i in fresh], batch[fresh])
            found += covers
        return found

    def overlapping(self, box: ArrayLike) -> tuple[list[Id], Floats]:
        """Ids and boxes (n, d, 2) of all stored boxes that share a value with `box`, in slot order."""
        query = self._point(box)
        low, high = -query[0::2], query[1::2]
        held = self.points[: self.used]
        meets = ((-held[:, 0::2] <= high) & (held[:, 1::2] >= low)).all(axis=1)  # NaN compares false
        slots = np.flatnonzero(meets)
        return self._ids.at_all(slots), np.stack([-held[slots, 0::2], held[slots, 1::2]], axis=2)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and tables that hold the entries and the structure over them."""
        return self.points.nbytes + self._ids.nbytes + self.structure_bytes()

    def check(self) -> None:
        """Raise AssertionError if an invariant of the structure does not hold; slow, for tests."""
        self._ids.check()
        in_use = self._ids.slots()
        assert set(in_use).isdisjoint(self._free)
        assert all(slot < self.used for slot in (*in_use, *self._free))
        assert np.flatnonzero(~np.isnan(self.points).all(axis=1)).tolist() == in_use
        self.check_structure()

    # ---- what methods implement --------------------------------------------------------------------

    def insert(self, slot: int) -> None:
        """`points[slot]` was just filled: add it to the structure, if there is one beside the store."""

    def insert_many(self, first: int, count: int) -> None:
        """Slots first … first+count−1 were just filled."""
        for slot in range(first, first + count):
            self.insert(slot)

    def delete(self, slot: int) -> None:
        """`points[slot]` is about to be emptied: take it out of the structure."""

    def search(self, query: Floats) -> int:
        """A slot whose point dominates `query`, or NO_SLOT; counts probes, volume and so on in `stats`."""
        found = np.empty(1, np.int64)
        self.search_into(query.reshape(1, -1), found)
        return int(found[0])

    def search_into(self, queries: Floats, found: Slots) -> None:
        """`search` for each row of `queries`, into `found`."""
        for i, query in enumerate(queries):
            found[i] = self.search(query)

    def search_many(self, queries: Floats) -> Slots:
        found = np.empty(len(queries), np.int64)
        self.search_into(queries, found)
        return found

    def search_covered(self, query: Floats) -> Slots:
        """All slots whose point `query` dominates; by default one pass over all."""
        return covered_slots(self.points, self.used, query)

    def check_structure(self) -> None:
        """Verify the invariants of the method's own structure."""

    def structure_bytes(self) -> int:
        """Bytes of the method's own arrays, beyond points and ids."""
        return 0

    # ---- help for both -------------------------------------------------------------------------------

    def found(
        self,
        slot: int | None,
        *,
        probes: int,
        candidates: int = 0,
        cubes: int = 0,
        runs: int = 0,
        volume: float = 1.0,
        capped: bool = False,
    ) -> int:
        """What `search` returns: this slot, or NO_SLOT for None. Counts its work, see `Stats`."""
        stats = self.stats
        stats.probes += probes
        stats.candidates += candidates
        stats.cubes += cubes
        stats.runs += runs
        stats.volume += volume
        stats.capped += capped
        return NO_SLOT if slot is None else int(slot)

    def share_stats(self, stats: Stats) -> None:
        """Count into `stats` from now on, so that several indexes can share one count."""
        self.stats = stats

    def _slot_of(self, id: Id) -> int:
        slot = self._ids.find(id)
        if slot < 0:
            raise CoverlayError(f"id {id!r} is not stored here")
        return slot

    def _release(self, slot: int) -> None:
        """An emptied slot may be used again."""
        self._free.append(slot)

    def _grow(self, count: int) -> int:
        """Take `count` fresh slots at the end; return the first. A batch into an empty index fits exactly."""
        first = self.used
        needed = first + count
        if needed > len(self.points):
            capacity = max(self._room(needed), _FIRST_CAPACITY)
            points = np.full((capacity, self.points.shape[1]), np.nan)
            points[:first] = self.points[:first]
            self.points = points
            self._ids.reserve(capacity)
        self.used = needed
        return first

    def _room(self, needed: int) -> int:
        """The capacity to grow to."""
        return max(needed, int(len(self.points) * _GROWTH))

    def _point(self, box: ArrayLike) -> Floats:
        """The dominance point of a box."""
        if (
            type(box) is not np.ndarray
            or box.dtype != np.float64
            or box.shape != self._shape
            or not box.flags.c_contiguous
        ):
            box = coerced(box, self._shape, "(d, 2)")
        point = np.empty(2 * self.attributes)
        wrong = to_point(box, point)
        if wrong != FINE:
            raise CoverlayError(complaint(wrong, box))
        return point

    def _points_of(self, boxes: ArrayLike) -> Floats:
        try:
            rows = np.asarray(boxes)
        except ValueError:
            raise CoverlayError(f"boxes {quoted(boxes)} must be a (n, d, 2) array of numbers") from None
        if rows.size == 0 and (rows.ndim == 1 or rows.shape[1:] == self._shape):
            return np.empty((0, 2 * self.attributes))
        rows = coerced(boxes, (len(rows) if rows.ndim else 0, *self._shape), "(n, d, 2)")
        points = np.empty((len(rows), 2 * self.attributes))
        wrong, which = to_points(rows, points)
        if wrong != FINE:
            raise CoverlayError(complaint(wrong, rows[which]))
        return points


@kernel
def covered_slots(points: Floats, used: int, query: Floats) -> Slots:
    """Slots below `used` whose point is ≤ `query` everywhere; NaN rows are never reported."""
    found = np.empty(used, np.int64)
    count = 0
    for i in range(used):
        below = True
        for j in range(query.shape[0]):
            if not points[i, j] <= query[j]:
                below = False
                break
        if below:
            found[count] = i
            count += 1
    return found[:count].copy()
