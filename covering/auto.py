"""Picks an exact method and revises the choice as the load changes; `choice` names the method in use.

The k-d tree is the fastest exact method on the whole benchmark grid except one corner: with many attributes
(D ≥ 8) and nearly all queries covered, scanning the packed words from the largest box on finds a
cover sooner than descending. Below about a thousand entries both are the same flat scan. So:

- start with `kdtree`;
- every `REVIEW` checks, look at the share of hits and the number of updates since the last review: from `ATTRIBUTES`
  attributes on, with a share of at least `MANY` and fewer updates than checks, change to `packed`; with a share below
  `FEW`, or with more updates, change back to `kdtree`, whose rebuilds are as cheap and whose misses cost less;
- where most searches of the tree reach its cap and scan after all (adversarial input), `packed` scans at
  once: change to it for `STAY` reviews, then try the tree again.

A change of method rebuilds the index, which costs as much as a few thousand checks; so it happens at most every
`REVIEW` checks. `auto` takes no ε: of its two exact methods only the k-d tree does, so the choice would decide whether
an ε has an effect.

`auto` is exact unless `accept_missing` allows it to overlook that share of the covers. Then, every `AUDIT` reviews, it
repeats the last `SAMPLE` checks with `budget`, if that would take less than half the time of exact search. If `budget`
overlooks few enough covers, it is chosen; it is dropped when a later audit finds that it overlooks more. The share is
estimated from these checks, counting one miss more than was seen, so that a few lucky checks prove nothing; it is not a
bound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covering.budget import BudgetIndex
from covering.contract import CoveringIndex
from covering.given import Floats
from covering.kdtree import KdTreeIndex
from covering.packed import PackedIndex
from covering.slot_table import Id
from covering.stats import Stats, Touches
from coverlay import CoverlayError, Key

REVIEW = 4096  # checks between two reviews
ATTRIBUTES = 4
STAY = 16
AUDIT = 16  # reviews between two audits; an audit costs as much as a rebuild
SAMPLE = 512  # checks that an audit repeats
BUDGETS = (1024, 4096)
TREE_PROBE, BUDGET_PROBE = 1.1, 0.29  # nanoseconds, at 100,000 entries
MANY, FEW = 0.9, 0.7  # shares of hits; apart, so that the choice does not flip back and forth


class AutoIndex(CoveringIndex):
    """Passes every call on to the chosen method, which keeps the entries; this class stores none.

    >>> from covering.auto import AutoIndex
    >>> index = AutoIndex([[0, 100], [0, 100]])
    >>> index.add(7, [[0, 50], [0, 50]])
    >>> index.find_cover([[1, 2], [3, 4]]), index.choice
    (7, 'kdtree')
    """

    name = "auto"
    gives_up_with = {"accept_missing": 0.0}  # noqa: RUF012
    compiled_with = ()

    def __init__(
        self,
        domain: ArrayLike,
        epsilon: float = 0.0,
        *,
        accept_missing: Annotated[float, Key("share of the covers that may be overlooked")] = 0.0,
    ) -> None:
        super().__init__(domain, epsilon)
        given = accept_missing
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0.0 <= given < 1.0:
            raise CoverlayError(f"accept_missing {given!r} must be a number from 0 up to, not including, 1")
        self.accept_missing = accept_missing
        self._inner: CoveringIndex = KdTreeIndex(self.domain)
        self._asked: deque[Floats] = deque(maxlen=SAMPLE)  # the last checks, kept only where there are audits
        self._reviews = 0
        self._updates = 0
        self._stay = 0  # reviews left with `packed` because of adversarial input
        self._reviewing = Lock()
        self.share_stats(self.stats)

    @classmethod
    def charged_as(cls) -> tuple[str, ...]:
        return tuple(name for method in (KdTreeIndex, PackedIndex, BudgetIndex) for name in method.charged_as())

    @property
    def choice(self) -> str:
        return self._inner.name

    @property
    def touches(self) -> Touches:  # type: ignore[override]
        return self._inner.touches

    def __len__(self) -> int:
        return len(self._inner)

    def __contains__(self, id: Any) -> bool:
        return id in self._inner

    def ids(self) -> list[Id]:
        return self._inner.ids()

    def box(self, id: Id) -> Floats:
        return self._inner.box(id)

    def add(self, id: Id, box: ArrayLike) -> None:
        self._inner.add(id, box)
        self._updates += 1

    def add_many(self, ids: Sequence[Id] | NDArray[Any], boxes: ArrayLike) -> None:
        self._inner.add_many(ids, boxes)

    def remove(self, id: Id) -> None:
        self._inner.remove(id)
        self._updates += 1

    def remove_many(self, ids: Sequence[Id] | NDArray[Any]) -> None:
        self._inner.remove_many(ids)

    def find_cover(self, box: ArrayLike) -> Id | None:
        found = self._inner.find_cover(box)
        if self.accept_missing:
            self._asked.append(self._point(box))
        self._review_if_due()
        return found

    def find_cover_many(self, boxes: ArrayLike) -> list[Id | None]:
        found = self._inner.find_cover_many(boxes)
        if self.accept_missing:
            self._asked.extend(self._points_of(boxes)[-SAMPLE:])
        self._review_if_due()
        return found

    def find_covered(self, box: ArrayLike) -> list[Id]:
        return self._inner.find_covered(box)

    def overlapping(self, box: ArrayLike) -> tuple[list[Id], Floats]:
        return self._inner.overlapping(box)

    @property
    def nbytes(self) -> int:
        return self._inner.nbytes

    def check(self) -> None:
        assert self._inner.stats is self.stats
        self._inner.check()

    def share_stats(self, stats: Stats) -> None:
        self.stats = stats
        self._inner.share_stats(stats)
        self._reviewed = stats.copy()
        self._next_review = stats.checks + REVIEW

    def _review_if_due(self) -> None:
        """A search may change the method. Other searches go on with the old one; only one thread at a time reviews."""
        if self.stats.checks >= self._next_review and self._reviewing.acquire(blocking=False):
            try:
                if self.stats.checks >= self._next_review:
                    self._review()
            finally:
                self._reviewing.release()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_reviewing"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _reviewing=Lock())

    def _review(self) -> None:
        """Choose again, from what happened since the last review."""
        recent = self.stats.since(self._reviewed)
        hits, calm = recent.hits / max(1, recent.checks), self._updates < recent.checks
        self._reviewed, self._updates = self.stats.copy(), 0
        self._next_review = self.stats.checks + REVIEW
        self._reviews += 1
        if self.accept_missing and self._reviews % AUDIT == 0:
            self._audit(recent)
        if isinstance(self._inner, BudgetIndex):
            return
        if isinstance(self._inner, KdTreeIndex) and 2 * self._inner.fallbacks > recent.checks:
            self._stay = STAY
            self._change_to(PackedIndex(self.domain))
            return
        if self._stay:
            self._stay -= 1
            if not self._stay:
                self._change_to(KdTreeIndex(self.domain))
            return
        if isinstance(self._inner, KdTreeIndex):
            self._inner.fallbacks = 0
        if self.attributes < ATTRIBUTES:
            return
        if isinstance(self._inner, KdTreeIndex) and hits >= MANY and calm:
            self._change_to(PackedIndex(self.domain))
        elif isinstance(self._inner, PackedIndex) and (hits < FEW or not calm):
            self._change_to(KdTreeIndex(self.domain))

    def _audit(self, recent: Stats) -> None:
        """Change to the least budget that misses little and costs little, or away from one that misses too much."""
        if isinstance(self._inner, BudgetIndex):
            if not self._misses_little(self._inner, self._with_all(PackedIndex(self.domain))):
                self._change_to(KdTreeIndex(self.domain))
            return
        probe = TREE_PROBE if isinstance(self._inner, KdTreeIndex) else BUDGET_PROBE
        takes = probe * recent.probes / recent.checks
        for budget in BUDGETS:
            if budget < len(self) and 2.0 * BUDGET_PROBE * budget < takes:
                candidate = self._with_all(BudgetIndex(self.domain, budget=budget))
                if self._misses_little(candidate, self._inner):
                    self._stay = 0
                    self._change_to(candidate)
                    return

    def _misses_little(self, candidate: CoveringIndex, exact: CoveringIndex) -> bool:
        """Does the candidate find all but an acceptable share of the covers of the last checks?"""
        counted, exact.stats = exact.stats, Stats()  # an audit does not count as checks
        asked = np.array(list(self._asked))  # a list at once: other threads go on adding to it
        covered = exact.search_many(asked) >= 0
        exact.stats = counted
        counted, candidate.stats = candidate.stats, Stats()
        missed = covered & (candidate.search_many(asked) < 0)
        candidate.stats = counted
        return bool(missed.sum() + 1 <= self.accept_missing * (covered.sum() + 1))

    def _with_all(self, other: CoveringIndex) -> CoveringIndex:
        """The other index, filled with all stored entries."""
        ids, boxes = self._inner.overlapping(np.tile([-np.inf, np.inf], (self.attributes, 1)))
        other.add_many(ids, boxes)
        return other

    def _change_to(self, other: CoveringIndex) -> None:
        if not len(other):
            self._with_all(other)
        other.share_stats(self.stats)
        self._inner = other
