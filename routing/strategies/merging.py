"""Routing by merging (REBECA; Mühl 2002): several subscriptions travel as one box that contains them all.

A *merger* is a box that this broker invents and sends in place of the subscriptions that it suppresses. Merging is
perfect when their union is the box itself; imperfect merging accepts up to a share `merge_waste` of the box's volume
that nobody asked for, which later shows up as false-positive traffic and never as a lost event. A box does not merge
with one that it contains: it covers that one.

Invariants, beyond those of LinkLedger and verified by check(): a merger is sent, contains everything it
suppresses, and wastes no more than allowed. When a suppressed subscription leaves, the merger stays while its waste is
in bounds. Otherwise what it suppressed is decided anew and sent, and only then is the merger withdrawn (make before
break).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covering.hulls import best_partner, unasked, volume
from covering.stats import Asked, footprint, pages_and_trips
from covering.subtraction import PIECES
from routing.contract import RoutingOptions, Search, group_of
from routing.filter import Filter
from routing.ledger import Kind, LedgerMessage, LinkLedger
from routing.strategies.covering import Covering

Floats = NDArray[np.float64]


class Merging(Covering):
    """Covering, plus a flat list of what was sent, to search for partners of a merger."""

    name = "merging"
    merges = True
    modes = ("lazy", "active")  # mergers are retracted, not pruned
    covers = ("single",)  # mergers unite already
    keeps_ranks = False
    charged_as = ("merging",)

    def __init__(self, options: RoutingOptions) -> None:
        super().__init__(options)
        dimensions = len(options.domain)
        self._rows: dict[int, int] = {}
        self._ids: list[int] = []
        self._boxes = np.empty((16, dimensions, 2))
        self._fills = np.empty(16)
        self._labels = np.empty(16, dtype=np.int64)
        self._label_of: dict[object, int] = {}  # only filters of one residue and group can merge
        self.partners: list[Asked] = []  # the searches for a partner, as Search.asked has them

    def add_uncovered(self, subscriptions: Sequence[int], filters: Sequence[Filter]) -> None:
        return None  # each may lead to a merger

    def add(self, subscription: int, filter: Filter) -> None:
        self.add_filled(subscription, filter, volume(filter.box, self.options.domain))

    def add_filled(self, subscription: int, filter: Filter, filled: float) -> None:
        super().add(subscription, filter)
        row = len(self._ids)
        if row == len(self._fills):
            for name in ("_boxes", "_fills", "_labels"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.empty_like(array)]))
        self._ids.append(subscription)
        self._rows[subscription] = row
        self._boxes[row], self._fills[row], self._labels[row] = filter.box, filled, self._label(filter)

    def refill(self, subscription: int, filled: float) -> None:
        """Change the volume of a sent box that is asked for."""
        self._fills[self._rows[subscription]] = filled

    def remove(self, subscription: int, filter: Filter) -> None:
        super().remove(subscription, filter)
        row, last = self._rows.pop(subscription), len(self._ids) - 1
        moved = self._ids.pop()
        if row != last:
            self._ids[row], self._rows[moved] = moved, row
            for array in (self._boxes, self._fills, self._labels):
                array[row] = array[last]

    def find_partner(self, filter: Filter, filled: float) -> tuple[int, float] | None:
        """The sent entry that merges best with `filter`, and the volume that the merger fills."""
        size = len(self._ids)
        pages, trips = pages_and_trips(size, 0, *footprint("boxes", len(filter.box)))
        self.partners.append(Asked(*self.charged_as, size, pages, trips))
        row, union = best_partner(
            filter.box,
            filled,
            self._label(filter),
            self._boxes[:size],
            self._fills[:size],
            self._labels[:size],
            self.options.domain,
            self.options.merge_waste,
        )
        return None if row < 0 else (self._ids[row], union)

    def _label(self, filter: Filter) -> int:
        key = (filter.residue, group_of(self.options, filter), filter.mentioned)
        return self._label_of.setdefault(key, len(self._label_of))


class MergingLedger(LinkLedger):
    """A ledger that may send an invented box in place of several subscriptions."""

    strategy: Merging
    new_id: Callable[[], int]  # names for mergers, unique in the network

    def __init__(self, strategy: Merging, new_id: Callable[[], int], **options: object) -> None:
        super().__init__(strategy, **options)  # type: ignore[arg-type]
        self.new_id = new_id
        self.mergers: set[int] = set()

    def invented(self) -> set[int]:
        return self.mergers

    def unsubscribe(self, subscription: int) -> list[LedgerMessage]:
        coverers = self.suppressed[subscription][1] if subscription in self.suppressed else ()
        messages = super().unsubscribe(subscription)
        for coverer in coverers:
            if coverer in self.mergers and not self._still_fits(coverer):
                messages += self._take_back([coverer])  # what it suppresses is decided anew first
        return messages

    def _take_back(self, subscriptions: Sequence[int]) -> list[LedgerMessage]:
        self.mergers.difference_update(subscriptions)
        return super()._take_back(subscriptions)

    def _still_fits(self, merger: int) -> bool:
        """Is the waste of a merger still within bounds, with what it suppresses now?"""
        pieces, waste = self.waste(merger)
        box, options = self.sent[merger].box, self.strategy.options
        self.strategy.refill(merger, (1.0 - waste) * volume(box, options.domain))
        return pieces == 0 or 0.0 < options.merge_waste >= waste

    def waste(self, merger: int) -> tuple[int, float]:
        """The part of a merger that nobody asked for, see `unasked`."""
        filter = self.sent[merger]
        behind = (self.suppressed[dependant][0] for dependant in self._dependants.get(merger, ()))
        # With a stricter residue than the merger's, a subscription asks for less than its box.
        boxes = [other.box for other in behind if other.residue == filter.residue]
        return unasked(filter.box, np.array(boxes).reshape(-1, *filter.box.shape), self.strategy.options.domain)

    def _send(
        self, subscription: int, filter: Filter, outcome: str, search: Search, exact: bool | None
    ) -> list[LedgerMessage]:
        """Grow a merger from the best partners, one after the other; without any, send the subscription."""
        strategy, merged = self.strategy, filter
        strategy.partners.clear()
        filled = volume(filter.box, strategy.options.domain)
        absorbed: list[int] = []
        while (partner := strategy.find_partner(merged, filled)) is not None:
            hull = _hull(merged, self.sent[partner[0]])
            if group_of(strategy.options, hull) != group_of(strategy.options, filter):
                break  # relaxed matching: a hull that no longer mentions an attribute covers nobody
            merged, filled = hull, partner[1]
            absorbed.append(partner[0])
            strategy.remove(partner[0], self.sent[partner[0]])  # not a candidate in the next round
        search = replace(search, asked=(*search.asked, *strategy.partners))
        for other in absorbed:  # put back, so that `_retract` removes all covered entries alike
            strategy.add(other, self.sent[other])
        if not absorbed:
            return super()._send(subscription, filter, outcome, search, exact)
        covered = strategy.find_covered(merged)
        search = replace(search, held=(*search.held, *strategy.held()))
        merger = self.new_id()
        self.mergers.add(merger)
        self.sent[merger] = merged
        strategy.add_filled(merger, merged, filled)
        if self.exact_twin is not None:
            self.exact_twin.add(merger, merged)
        self._suppress(subscription, filter, (merger,))
        self._record(subscription, "merged", replace(search, witness=merger), exact)
        return [(Kind.SUBSCRIBE, merger, merged), *(self._retract(other, merger) for other in covered)]

    def _retract(self, subscription: int, coverer: int) -> LedgerMessage:
        message = super()._retract(subscription, coverer)
        if subscription in self.mergers:  # a merger within a merger: only what it suppressed stays
            self.mergers.discard(subscription)
            self._release(subscription)
        return message

    def check(self) -> None:
        super().check()
        for merger in self.mergers:
            assert merger in self.sent, "a merger that was never sent"
            pieces, waste = self.waste(merger)
            # Beyond PIECES nothing is known; what the bound was computed from differs by rounding.
            assert pieces in (0, PIECES) or waste <= self.strategy.options.merge_waste + 1e-9, "too much waste"
        assert not self.mergers & self.suppressed.keys(), "a merger never counts as a subscription"


Merging.ledger = MergingLedger


def _hull(a: Filter, b: Filter) -> Filter:
    box = np.column_stack([np.minimum(a.box[:, 0], b.box[:, 0]), np.maximum(a.box[:, 1], b.box[:, 1])])
    # An attribute that becomes unbounded is no longer mentioned.
    return Filter.of_box(box, a.residue, None, max(a.score, b.score))
