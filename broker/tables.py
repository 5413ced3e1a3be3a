"""What a broker knows: the subscriptions behind each neighbour, and those of its own clients.

A neighbour's table answers only "is anything behind this link interested?" (link_rows.py). New entries are copied into
its arrays, many at a time, when the next event asks: subscriptions usually come in bursts between events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broker import link_rows
from broker.filter_rows import FilterRows
from broker.local_rows import NEVER, is_due
from broker.ranking import Ranking
from routing.filter import Filter, FilterTable
from routing.ledger import Kind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Looked = tuple[int, int, int, int]  # tables asked, those of them in slices; entries compared there, blocks looked at

NOTHING = (np.empty(0, np.int64), np.empty(0), 0, 0)
_LEFT = -1  # in place of a subscription: its entry was in the static part and has left


class LinkTable(FilterTable):
    """The routing-table entries that one neighbour sent us."""

    def __init__(self, semantics: str, domain: Floats, store: FilterRows) -> None:
        super().__init__()
        self._domain = domain
        self._store = store
        self._least = link_rows.least_of(len(domain), semantics)
        self._ids: list[int] = []  # place → subscription, or _LEFT
        self._place: dict[int, int] = {}
        self._built = 0  # places of the static part; some may be _LEFT
        self._filled = 0  # rows of the tail that are in the arrays
        self._changed = False  # since the last event asked
        self._rows = link_rows.new_rows(len(domain), store.residues, store.scratch, semantics)
        self.address: int = self._rows.address
        # Per row of the tail: the attributes that it mentions and their bounds; attribute −1 ends a row.
        self._named = np.empty((0, 0), dtype=np.int32)
        self._lo, self._hi = np.empty((0, 0)), np.empty((0, 0))
        self._residue = np.empty(0, np.int64)

    def add(self, subscription: int, filter: Filter) -> None:
        super().add(subscription, filter)
        self._place[subscription] = len(self._ids)
        self._ids.append(subscription)
        self._changed = True

    def remove(self, subscription: int) -> None:
        super().remove(subscription)
        place = self._place.pop(subscription)
        self._changed = True
        if place < self._built:
            self._ids[place] = _LEFT
            link_rows.forget(self._rows, place)
        else:
            moved = self._ids.pop()
            if moved != subscription:  # the last one takes the free place
                self._ids[place] = moved
                self._place[moved] = place
            self._filled = min(self._filled, place - self._built)  # the rows from there on are written again

    @property
    def is_behind(self) -> bool:
        """Is there something to do before the next event asks?"""
        return self._changed or link_rows.is_due_now(self.address)

    def bring_up_to_date(self) -> None:
        """Before an event asks: take in what has changed, build a static part where that has become worth it."""
        if self.is_behind:
            self._take_in()

    @property
    def pruned(self) -> int:
        """Entries that the neighbour sent but events are not compared with (see pruning.py)."""
        return 0

    def pruned_by(self) -> Mapping[int, tuple[int, ...]]:
        """Each pruned entry, and the entries that cover it."""
        return {}

    def best_score(self, score: Callable[[Filter], float | None]) -> float:
        """The highest score that any entry gets, a pruned one included; −inf if none gets one."""
        return max((s for s in map(score, self.filters.values()) if s is not None), default=-math.inf)

    def _take_in(self) -> None:
        """Bring the arrays up to date: a new static part if enough has changed, else the rows of the tail."""
        self._changed = False
        used, entries = len(self._ids), len(self._filters)
        if link_rows.table_is_due(used, entries, self._built, self._least, link_rows.read(self._rows), link_rows.READS):
            self._build()
        changed = is_due(len(self._ids) - self._built, len(self._ids) - entries, self._built, self._least)
        build_at = link_rows.READS * entries if changed else NEVER
        if self._built + self._filled < len(self._ids):
            self._write(self._filled, len(self._ids) - self._built)
        self._filled = len(self._ids) - self._built
        link_rows.set_tail(self._rows, self._named, self._lo, self._hi, self._residue, self._filled, build_at)

    def _build(self) -> None:
        self._ids = [subscription for subscription in self._ids if subscription != _LEFT]
        self._built = self._filled = 0
        if len(self._ids) < self._least:
            link_rows.clear(self._rows, len(self._domain))
        else:
            lo, hi, mentioned, residue = self._store.columns([self._filters[s] for s in self._ids])
            order = link_rows.build(self._rows, lo, hi, mentioned, residue, self._domain)
            self._ids = [self._ids[i] for i in order.tolist()]
            self._built = len(self._ids)
        self._place = dict(zip(self._ids, range(len(self._ids)), strict=True))

    def _write(self, start: int, stop: int) -> None:
        """Copy the bounds of these rows of the tail into the arrays."""
        ids = self._ids[self._built + start : self._built + stop]
        filters = [self._filters[subscription] for subscription in ids]
        widths = np.array([len(filter.named) for filter in filters])
        self._make_room(stop, int(widths.max()))
        used = np.arange(self._named.shape[1]) < widths[:, None]
        bounds = np.concatenate([filter.bounds for filter in filters])
        self._named[start:stop] = -1
        self._named[start:stop][used] = np.concatenate([filter.named for filter in filters])
        self._lo[start:stop][used], self._hi[start:stop][used] = bounds.T
        self._residue[start:stop] = [self._store.residues.number(filter.residue) for filter in filters]

    def _make_room(self, rows: int, width: int) -> None:
        used, (old_rows, old_width) = self._filled, self._named.shape
        if rows <= old_rows and width <= old_width:
            return
        shape = (old_rows if rows <= old_rows else max(rows, 2 * old_rows, 16), max(width, old_width))
        for name, empty in (("_named", -1), ("_lo", 0.0), ("_hi", 0.0)):
            old = getattr(self, name)
            new = np.full(shape, empty, dtype=old.dtype)
            new[:used, :old_width] = old[:used]
            setattr(self, name, new)
        self._residue = np.concatenate([self._residue[:used], np.empty(shape[0] - used, np.int64)])

    def check(self) -> None:
        """Raise AssertionError unless every known entry has one place, and the arrays hold what is at it."""
        assert set(self._place) == set(self._filters)
        assert all(self._ids[place] == subscription for subscription, place in self._place.items())
        assert len(self._ids) - self._ids.count(_LEFT) == len(self._filters)
        assert _LEFT not in self._ids[self._built :]
        assert self._built + self._filled <= len(self._ids)
        for row in range(self._filled):
            filter = self._filters[self._ids[self._built + row]]
            width = len(filter.named)
            assert np.array_equal(self._named[row, :width], filter.named)
            assert (self._named[row, width:] == -1).all()
            assert np.array_equal(self._lo[row, :width], filter.bounds[:, 0])
            assert np.array_equal(self._hi[row, :width], filter.bounds[:, 1])
            assert self._residue[row] == self._store.residues.number(filter.residue)
        link_rows.check(self._rows, [self._filters.get(subscription) for subscription in self._ids[: self._built]])


class _Matched(FilterTable):
    """A table whose entries are also in a matcher."""

    _matcher: Any

    def add(self, subscription: int, filter: Filter) -> None:
        super().add(subscription, filter)
        self._matcher.add(subscription, filter)

    def remove(self, subscription: int) -> None:
        super().remove(subscription)
        self._matcher.remove(subscription)


class RankedTable(_Matched, LinkTable):
    """A neighbour's table that also answers "which k of them match best?", for the k best of the whole network."""

    def __init__(self, semantics: str, domain: Floats, store: FilterRows, ranking: Ranking) -> None:
        super().__init__(semantics, domain, store)
        self._matcher = ranking.new_matcher(store)

    def top(self, event: Floats, k: int, weights: Floats | None) -> tuple[Ints, Floats, int, int]:
        """As `LocalTable.top`."""
        return self._matcher.top(event, k, weights)

    def check(self) -> None:
        super().check()
        self._matcher.check()
        assert len(self._matcher) == len(self)


class LocalTable(_Matched):
    """The subscriptions of a broker's own clients, ranked by any matcher of `topk`."""

    def __init__(self, ranking: Ranking, known: FilterRows) -> None:
        super().__init__()
        self._matcher = ranking.new_matcher(known)

    def top(self, event: Floats, k: int | None, weights: Floats | None = None) -> tuple[Ints, Floats, int, int]:
        """The best matches, best first, all of them when k is None: ids and scores; entries compared, nodes."""
        return self._matcher.top(event, k, weights) if self._filters else NOTHING

    def serve(self, event: Floats, k: int | None, weights: Floats | None, served: Any) -> tuple[int, int, int]:
        """Add the best matches to served rows; how many, entries compared, nodes."""
        return self._matcher.serve(event, k, weights, served) if self._filters else (0, 0, 0)

    def check(self) -> None:
        self._matcher.check()
        assert len(self._matcher) == len(self._filters)


def takes_in(table: FilterTable, kind: Kind, subscription: int, filter: Filter) -> bool:
    """Change a table as a message says; False if it says nothing new, which happens during recovery."""
    known = subscription in table
    if kind is Kind.RERANK:
        if not known or table.filters[subscription].digest == filter.digest:
            return False
        table.remove(subscription)
    elif (kind is Kind.SUBSCRIBE) == known:
        return False
    if kind is Kind.UNSUBSCRIBE:
        table.remove(subscription)
    else:
        table.add(subscription, filter)
    return True
