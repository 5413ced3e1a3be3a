"""The partially ordered set of filters that SIENA keeps (Carzaniga, Rosenblum and Wolf, TOCS 2001, §4).

Every entry knows its immediate predecessors (covers) and successors (covered entries): the transitive
reduction of "covers". Entries without a predecessor are the roots; whatever is covered by anything is covered
by a root, so `find_cover` looks at the roots only. Of equal boxes the earlier one counts as above the later,
which makes the order strict.

Invariants (`check` recomputes them by brute force): `above[s]` are the minimal entries over s, `below` is its
converse, `roots` are the entries with nothing above.

Cost: find_cover O(roots · D); add two passes over all entries plus the edges that change; remove, per child
of the removed entry, its other parents. The classic of the field, quadratic to fill; here for comparison.
A probe is a root compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from covering.contract import NO_SLOT, CoveringIndex, Slots, covered_slots
from covering.given import Floats
from covering.packed_words import dominates
from coverlay import kernel


@kernel
def _covering_slots(points: Floats, used: int, query: Floats) -> Slots:
    """Slots below `used` whose point is ≥ `query` everywhere."""
    found = np.empty(used + 1, np.int64)  # one more: failing candidates are written too
    count = 0
    for i in range(used):
        found[count] = i
        count += dominates(points, i, query)
    return found[:count].copy()


@kernel
def _first_root(points: Floats, roots: Slots, count: int, query: Floats) -> int:
    """Index in `roots` of the first root that covers the query, or −1."""
    for r in range(count):
        if dominates(points, roots[r], query):
            return r
    return -1


class PosetIndex(CoveringIndex):
    """Compares the query with the boxes that no other contains.

    >>> from covering.poset import PosetIndex
    >>> index = PosetIndex((0, 100))
    >>> index.add_many([1, 2, 3], [(0, 90), (10, 20), (12, 15)])
    >>> index.find_cover((13, 14)), index.stats.probes  # 1 is the only root
    (1, 1)
    """

    name = "poset"
    touches = "boxes"
    slow_beyond = 600

    def __init__(self, domain: ArrayLike, epsilon: float = 0.0) -> None:
        super().__init__(domain, epsilon)
        self._above: dict[int, set[int]] = {}
        self._below: dict[int, set[int]] = {}
        self._age: dict[int, int] = {}
        self._clock = 0
        self._roots = np.empty(16, np.int64)
        self._root_at: dict[int, int] = {}  # root → its place in `_roots`

    def insert(self, slot: int) -> None:
        point = self.points[slot]
        known = self._age.keys()  # neither `slot` itself nor slots that the rest of its batch has filled
        over = known & set(_covering_slots(self.points, self.used, point).tolist())
        under = known & set(covered_slots(self.points, self.used, point).tolist()) - over
        parents = {p for p in over if self._below[p].isdisjoint(over)}
        children = {c for c in under if self._above[c].isdisjoint(under)}
        self._age[slot] = self._clock
        self._clock += 1
        for child in children:
            lost = self._above[child] & over
            for parent in lost:
                self._below[parent].discard(child)
            self._above[child] -= lost
            self._above[child].add(slot)
            self._unroot(child)
        for parent in parents:
            self._below[parent].add(slot)
        self._above[slot], self._below[slot] = parents, children
        if not parents:
            self._root(slot)

    def delete(self, slot: int) -> None:
        parents, children = self._above.pop(slot), self._below.pop(slot)
        for parent in parents:
            self._below[parent].discard(slot)
        for child in sorted(children):  # sorted: the order of new roots decides which witness is found
            others = self._above[child]
            others.discard(slot)
            joined = {p for p in parents if not any(self._is_above(p, other) for other in others)}
            for parent in joined:
                self._below[parent].add(child)
            others |= joined
            if not others:
                self._root(child)
        self._unroot(slot)
        del self._age[slot]

    def _is_above(self, one: int, other: int) -> bool:
        first, second = self.points[one], self.points[other]
        if not (first >= second).all():
            return False
        return not (second >= first).all() or self._age[one] < self._age[other]

    def _root(self, slot: int) -> None:
        place = len(self._root_at)
        if place == len(self._roots):
            self._roots = np.concatenate([self._roots, np.empty_like(self._roots)])
        self._roots[place] = slot
        self._root_at[slot] = place

    def _unroot(self, slot: int) -> None:
        """Move the last root into the place of this one, if it is a root."""
        place = self._root_at.pop(slot, None)
        if place is not None and place < len(self._root_at):
            last = int(self._roots[len(self._root_at)])
            self._roots[place] = last
            self._root_at[last] = place

    def search(self, query: Floats) -> int:
        count = len(self._root_at)
        place = int(_first_root(self.points, self._roots, count, query))
        self.stats.probes += place + 1 if place >= 0 else count
        self.stats.volume += 1.0
        return int(self._roots[place]) if place >= 0 else NO_SLOT

    def check_structure(self) -> None:
        in_use = self._ids.slots()
        assert sorted(self._above) == sorted(self._below) == sorted(self._age) == in_use
        for slot in in_use:
            over = {other for other in in_use if other != slot and self._is_above(other, slot)}
            minimal = {p for p in over if not any(self._is_above(p, o) for o in over if o != p)}
            assert self._above[slot] == minimal
            assert self._below[slot] == {other for other in in_use if slot in self._above[other]}
            assert (slot in self._root_at) == (not over)
        for root, place in self._root_at.items():
            assert self._roots[place] == root

    def structure_bytes(self) -> int:
        sets = sum(s.__sizeof__() for table in (self._above, self._below) for s in table.values())
        tables = sum(t.__sizeof__() for t in (self._above, self._below, self._age, self._root_at))
        return sets + tables + self._roots.nbytes
