"""Covering among whole filters: box, residue and group, on top of any box method.

Entries are partitioned by (group, residue), one box index each: the equality attributes of a filter (issue =
Microsoft) make a good group, because filters of different groups never cover each other. A stored filter
covers a query iff the groups are equal, the stored residue is implied by the query's box and residue, and
the stored box contains the query box. Partitions are asked in the order they were first used.

Cost: one residue implication per partition of the group, one box search per implied partition. An emptied
partition is dropped.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import covering
from covering.contract import CoveringIndex, Floats
from covering.residue import EMPTY, Residue
from covering.slot_table import Id, ordered, plain
from covering.stats import Stats, boxes_per_page, footprint, pages_and_trips
from coverlay import CoverlayError


class FilterIndex:
    """A dynamic set of (box, residue, group) that finds covers and covered entries."""

    def __init__(
        self,
        method: str,
        domain: ArrayLike,
        epsilon: float = 0.0,
        integral: Sequence[bool] | None = None,
        **options: Any,
    ) -> None:
        # Every mistake in the options shows here, not at the first add.
        self._blank = covering.create(method, domain, epsilon, **options)
        self.domain = np.array(domain, dtype=np.float64)
        if integral is not None and len(integral) != len(self.domain):
            raise CoverlayError(f"integral has {len(integral)} entries for {len(self.domain)} attributes")
        self.method, self.epsilon, self.options = method, epsilon, options
        self.integral = None if integral is None else tuple(bool(whole) for whole in integral)
        self.stats = Stats()
        self._groups: dict[Hashable, dict[Residue, CoveringIndex]] = {}
        self._where: dict[Id, tuple[Hashable, Residue]] = {}
        # The searches of the last `find_cover`: (method at work, probes, pages, round trips) per partition asked.
        self.asked: list[tuple[str, int, int, int]] = []
        # And of the last `find_covered`: (method, entries, pages).
        self.held: list[tuple[str, int, int]] = []

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._where

    def add(self, id: Id, box: ArrayLike, residue: Residue = EMPTY, group: Hashable = None) -> None:
        """Store a filter under a new id."""
        id = plain(id)
        if id in self._where:
            raise CoverlayError(f"id {id!r} is already stored; remove it first")
        self._fits(residue)
        part = self._groups.get(group, {}).get(residue)
        if part is None:
            part = self._new_part()
        part.add(id, box)  # may refuse the box, so nothing is registered before
        self._groups.setdefault(group, {})[residue] = part
        self._where[id] = (group, residue)

    def _new_part(self) -> CoveringIndex:
        part = covering.create(self.method, self.domain, self.epsilon, **self.options)
        part.share_stats(self.stats)
        return part

    def add_uncovered(self, ids: Sequence[Id], boxes: Floats, group: Hashable) -> list[Id | None]:
        """Store, in order, each box (without residue) that none stored before it covers; for each, who covers it."""
        parts = self._groups.setdefault(group, {})
        assert parts.keys() <= {EMPTY}, "what boxes do not say is not looked at"
        if EMPTY not in parts:
            parts[EMPTY] = self._new_part()
        found = parts[EMPTY].add_uncovered(ids, boxes)
        self._where.update((id, (group, EMPTY)) for id, cover in zip(ids, found, strict=True) if cover is None)
        return found

    def remove(self, id: Id) -> None:
        """Forget a stored filter."""
        id = plain(id)
        if id not in self._where:
            raise CoverlayError(f"id {id!r} is not stored here")
        group, residue = self._where.pop(id)
        parts = self._groups[group]
        parts[residue].remove(id)
        if not len(parts[residue]):
            del parts[residue]
            if not parts:
                del self._groups[group]

    def find_cover(self, box: ArrayLike, residue: Residue = EMPTY, group: Hashable = None) -> Id | None:
        """The id of a stored filter that covers (box, residue, group), or None.

        Counts as one check; its volume is the mean over the partitions searched, 1 if there was none.
        """
        self._fits(residue)
        parts = self._groups.get(group, {})
        # The only one to ask, where it has no residue, checks the box too.
        bounds: Any = box if len(parts) == 1 and EMPTY in parts else self._checked(box)
        stats = self.stats  # the partitions count into it
        checks, volume, capped = stats.checks, stats.volume, stats.capped
        self.asked = []
        asked, found = 0, None
        for own, part in parts.items():
            if own is EMPTY or own.implied_by(bounds, residue, self.integral):
                asked += 1
                method, before = part.choice, stats.probes
                found = part.find_cover(bounds)
                self._note(method, stats.probes - before)
                if found is not None:
                    break
        if asked != 1:
            stats.checks = checks + 1
            stats.volume = volume + ((stats.volume - volume) / asked if asked else 1.0)
            stats.capped = capped + (found is None and stats.capped > capped)
        return found

    def find_covered(self, box: ArrayLike, residue: Residue = EMPTY, group: Hashable = None) -> list[Id]:
        """The ids of all stored filters that (box, residue, group) covers, ascending where ids compare."""
        self._fits(residue)
        bounds = self._checked(box)
        found: list[Id] = []
        self.held = []
        for own, part in self._groups.get(group, {}).items():
            self.held.append(self._pass_over(part))
            inside = part.find_covered(bounds)
            if residue != EMPTY:
                inside = [id for id in inside if residue.implied_by(part.box(id), own, self.integral)]
            found += inside
        return ordered(found)

    def overlapping(self, box: ArrayLike, residue: Residue = EMPTY, group: Hashable = None) -> tuple[list[Id], Floats]:
        """Ids and boxes of what shares a value with the box and whose residue is implied: candidates for a union."""
        bounds = self._checked(box)
        parts = self._groups.get(group, {}).items()
        self.held = [self._pass_over(part) for _, part in parts]
        found = [part.overlapping(bounds) for own, part in parts if own.implied_by(bounds, residue, self.integral)]
        boxes = np.concatenate([np.empty((0, *self.domain.shape)), *(held for _, held in found)])
        return [id for ids, _ in found for id in ids], boxes

    def _note(self, method: str, probes: int) -> None:
        pages, trips = pages_and_trips(probes, *footprint(method, len(self.domain)))
        self.asked.append((method, probes, pages, trips))
        self.stats.pages += pages
        self.stats.round_trips += trips

    def _pass_over(self, part: CoveringIndex) -> tuple[str, int, int]:
        pages, _ = pages_and_trips(len(part), boxes_per_page(len(self.domain)), False)
        return part.choice, len(part), pages

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for parts in self._groups.values() for part in parts.values())

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold; slow, for tests."""
        count = 0
        for group, parts in self._groups.items():
            assert parts
            for residue, part in parts.items():
                assert len(part)
                part.check()
                assert all(self._where[id] == (group, residue) for id in part.ids())
                count += len(part)
        assert count == len(self._where)

    def _fits(self, residue: Residue) -> None:
        for attribute, _ in (*residue.excluded, *residue.allowed):
            if attribute >= len(self.domain):
                raise CoverlayError(
                    f"residue names attribute {attribute}; there are {len(self.domain)}, counted from 0"
                )

    def _checked(self, box: ArrayLike) -> Floats:
        point = self._blank._point(box)  # refuses what is no box, even where no partition would be asked
        if type(box) is np.ndarray and box.dtype == np.float64:
            return box
        return np.stack([-point[0::2], point[1::2]], axis=1)
