"""Search of sorted keys by expected number of stored points, exact or with an audited ε that means covers.

A store of sorted keys that returns the next key (a key-value store, say), and a client that remembers a few counters of
how many keys lie where, one for every 16 entries. Ranges are looked up in decreasing expected number of stored points
(likeliest.py, counters.py). With ε = 0 the search goes on to the end of this order and is exact. With ε > 0 it stops
when audits say that it would find a share 1 − ε of the covers (covering/audit.py); until there are enough of these, it
is exact. Audits go on past the stop, and what they cost there is charged like any lookup.

Counters are exact at any time. Where they lie is decided again when the entries have doubled or fallen to a quarter.

Cost: what the lookups of likeliest.py cost; an update is one of the SFC array and one path of counters.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from covering.audit import EXACT, Audit, Audits, Stop
from covering.curve.counters import build, check_counters, count_key
from covering.curve.index import CurveIndex
from covering.curve.keys import Words
from covering.curve.likeliest import likeliest_first
from covering.curve.resolution import Bits, divided_with
from covering.given import Floats
from coverlay import CoverlayError, Key

ENTRIES_PER_COUNTER = 16


class DensityIndex(CurveIndex):
    """Looks up ranges of sorted keys where most stored points are expected first; with ε, misses that share of covers.

    >>> from covering.curve.density import DensityIndex
    >>> index = DensityIndex((0, 100))
    >>> index.add(1, (0, 90))
    >>> index.find_cover((10, 20)), index.find_cover((10, 95)), index.stats.probes
    (1, None, 3)
    """

    name = "density"
    store = "next key"
    takes_epsilon = True
    epsilon_of = "covers"

    def __init__(
        self,
        domain: ArrayLike,
        epsilon: float = 0.0,
        *,
        bits: Bits = None,
        audit: Annotated[
            float, Key("with ε > 0 of the covers, share of checks that search to the end, to learn when to stop")
        ] = 0.05,
    ) -> None:
        super().__init__(domain, epsilon, bits)
        if isinstance(audit, bool) or not isinstance(audit, int | float) or not 0.0 < audit <= 1.0:
            raise CoverlayError(f"audit {audit!r} must be a number above 0, up to 1: a share of the checks")
        self.audit = audit
        self._audits = Audits(epsilon, audit) if epsilon > 0.0 else None
        self._divided = 1  # entries when it was decided where counters lie
        self._count_anew()

    def _count_anew(self) -> None:
        leaves = max(1, self._divided // ENTRIES_PER_COUNTER)
        self._counters = build(self._array.arrays, 2 * self.attributes, self.bits, leaves)

    def insert(self, slot: int) -> None:
        super().insert(slot)
        self._changed(self._rows(slot, 1), 1, len(self))

    def insert_many(self, first: int, count: int) -> None:
        super().insert_many(first, count)
        self._changed(self._rows(first, count), 1, len(self))

    def delete(self, slot: int) -> None:
        super().delete(slot)
        self._changed(self._rows(slot, 1), -1, len(self) - 1)

    def _changed(self, rows: Words, step: int, entries: int) -> None:
        """Rows came (step 1) or are gone (−1), and there are so many entries now."""
        before, self._divided = self._divided, divided_with(self._divided, entries)
        if self._divided != before:
            self._count_anew()
            return
        for row in rows:
            count_key(self._counters, row, step)

    def search(self, query: Floats) -> int:
        if self._audits is None:
            slot, lookups, *_ = self._look_up(query, EXACT, EXACT, goes_on=False)
            return self.found(slot, probes=lookups)
        stop, trial, audited = self._audits.next(len(self))
        slot, lookups, left, unsearched, stopped, tried = self._look_up(query, stop, trial, goes_on=audited)
        if audited:
            past = lookups - min(stopped, stop.lookups, lookups)
            self.stats.audits += 1
            self.stats.past_stop += past
            self.stats.audit_misses += slot >= 0 and past > 0
            self._audits.add(Audit(len(self), slot >= 0, left, lookups, tried, min(trial.lookups, lookups)))
        return self.found(slot, probes=lookups, volume=1.0 - unsearched)

    def _look_up(
        self, query: Floats, stop: Stop, trial: Stop, *, goes_on: bool
    ) -> tuple[int, int, float, float, int, int]:
        """What `likeliest_first` returns, and the lookups after which the thresholds of both rules were met."""
        thresholds, fired = np.array([stop.left, trial.left]), np.empty(2, np.int64)
        where = self._array.arrays, self._counters, self.points
        asked = query, self.lengths_of(query), self.bits
        slot, lookups, left, unsearched = likeliest_first(*where, *asked, thresholds, stop.lookups, goes_on, fired)
        stopped, tried = (int(at) if at >= 0 else lookups for at in fired)
        return slot, lookups, left, unsearched, stopped, tried

    def check_structure(self) -> None:
        super().check_structure()
        check_counters(self._counters, self._array.rows())
        assert len(self) < 2 * self._divided
        assert self._divided < 4 * max(1, len(self))

    def structure_bytes(self) -> int:
        return super().structure_bytes() + sum(array.nbytes for array in self._counters)
