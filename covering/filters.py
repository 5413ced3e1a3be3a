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

import covering
from covering.contract import CoveringIndex
from covering.given import Floats
from covering.residue import EMPTY, Residue
from covering.slot_table import Id, ordered
from covering.stats import Asked, Stats, boxes_per_page, footprint, pages_and_trips


class FilterIndex:
    """A dynamic set of (box, residue, group) that finds covers and covered entries."""

    def __init__(
        self, method: str, domain: Floats, epsilon: float = 0.0, integral: Sequence[bool] | None = None, **options: Any
    ) -> None:
        covering.create(method, domain, epsilon, **options)  # reports mistakes now, not at the first add
        self.method, self.domain, self.epsilon, self.options = method, domain, epsilon, options
        self.integral = integral
        self.stats = Stats()
        self._groups: dict[Hashable, dict[Residue, CoveringIndex]] = {}
        self._where: dict[Id, tuple[Hashable, Residue]] = {}
        self.asked: list[Asked] = []  # the searches of the last `find_cover`, one per partition asked
        # The passes of the last `find_covered` or `overlapping`: (method, entries, pages) per partition.
        self.held: list[tuple[str, int, int]] = []

    def __len__(self) -> int:
        return len(self._where)

    def add(self, id: Id, box: Floats, residue: Residue = EMPTY, group: Hashable = None) -> None:
        """Store a filter under a new id."""
        assert id not in self._where
        self._part(group, residue).add(id, box)
        self._where[id] = (group, residue)

    def _part(self, group: Hashable, residue: Residue) -> CoveringIndex:
        """The index of a partition, a new one if it is empty."""
        parts = self._groups.setdefault(group, {})
        if residue not in parts:
            parts[residue] = covering.create(self.method, self.domain, self.epsilon, **self.options)
            parts[residue].share_stats(self.stats)
        return parts[residue]

    def add_uncovered(self, ids: Sequence[Id], boxes: Floats, group: Hashable) -> list[Id | None]:
        """Store, in order, each box (without residue) that no earlier one covers; the cover of each box, or None."""
        assert self._groups.get(group, {}).keys() <= {EMPTY}, "residues are not looked at"
        found = self._part(group, EMPTY).add_uncovered(ids, boxes)
        self._where.update((id, (group, EMPTY)) for id, cover in zip(ids, found, strict=True) if cover is None)
        return found

    def remove(self, id: Id) -> None:
        """Remove a stored filter."""
        group, residue = self._where.pop(id)
        parts = self._groups[group]
        parts[residue].remove(id)
        if not len(parts[residue]):
            del parts[residue]
            if not parts:
                del self._groups[group]

    def find_cover(self, box: Floats, residue: Residue = EMPTY, group: Hashable = None) -> Id | None:
        """The id of a stored filter that covers (box, residue, group), or None.

        Counts as one check; its volume is the mean over the partitions searched, 1 if there was none.
        """
        stats = self.stats  # the partitions count into it
        checks, volume, capped = stats.checks, stats.volume, stats.capped
        self.asked = []
        asked, found = 0, None
        for own, part in self._groups.get(group, {}).items():
            if own is EMPTY or own.implied_by(box, residue, self.integral):
                asked += 1
                found = self._ask(part, box)
                if found is not None:
                    break
        if asked != 1:
            stats.checks = checks + 1
            stats.volume = volume + ((stats.volume - volume) / asked if asked else 1.0)
            stats.capped = capped + (found is None and stats.capped > capped)
        return found

    def find_covered(self, box: Floats, residue: Residue = EMPTY, group: Hashable = None) -> list[Id]:
        """The ids of all stored filters that (box, residue, group) covers, ascending where ids compare."""
        found: list[Id] = []
        self.held = []
        for own, part in self._groups.get(group, {}).items():
            self.held.append(self._pass_over(part))
            inside = part.find_covered(box)
            if residue != EMPTY:
                inside = [id for id in inside if residue.implied_by(part.box(id), own, self.integral)]
            found += inside
        return ordered(found)

    def overlapping(self, box: Floats, residue: Residue = EMPTY, group: Hashable = None) -> tuple[list[Id], Floats]:
        """Ids and boxes of filters that share a value with the box and whose residue is implied: for a union."""
        parts = self._groups.get(group, {}).items()
        self.held = [self._pass_over(part) for _, part in parts]
        found = [part.overlapping(box) for own, part in parts if own.implied_by(box, residue, self.integral)]
        boxes = np.concatenate([np.empty((0, *self.domain.shape)), *(held for _, held in found)])
        return [id for ids, _ in found for id in ids], boxes

    def _ask(self, part: CoveringIndex, box: Floats) -> Id | None:
        """Search one partition, and note the work."""
        stats, method, touches, bits = self.stats, part.choice, part.touches, part.bits  # a search may change `auto`
        before = stats.probes, stats.candidates, stats.audits, stats.past_stop
        found = part.find_cover(box)
        after = stats.probes, stats.candidates, stats.audits, stats.past_stop
        probes, candidates, audited, past_stop = (now - then for now, then in zip(after, before, strict=True))
        failed = candidates - 1 if candidates and found is not None else candidates
        pages, trips = pages_and_trips(probes, failed, *footprint(touches, len(self.domain)))
        self.asked.append(Asked(method, probes, pages, trips, candidates, bits, audited, past_stop))
        stats.pages += pages
        stats.round_trips += trips
        return found

    def _pass_over(self, part: CoveringIndex) -> tuple[str, int, int]:
        return part.choice, len(part), -(-len(part) // boxes_per_page(len(self.domain)))

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
