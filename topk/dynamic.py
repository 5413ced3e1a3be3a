"""Log-structured updates for any static matcher (Bentley & Saxe 1980; VLDB 2008 leaves them open for the SOPT-R-tree).

New subscriptions are added to a small buffer that is scanned. A full buffer becomes a static run, merged with all runs
that are not larger than twice what is merged so far. So run sizes at least double, and an entry is rebuilt O(log n)
times. A deletion only marks an entry as dead; a run that is more than half dead is rebuilt. A query asks every run and
the buffer, and merges the answers. A score update is a deletion and an insertion, without a rebuild.

Invariants, verified by `check`: a subscription is in one run or in the buffer; at most half of a run is dead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from topk.answers import NONE_FOUND, Batch, Found, Match
from topk.catalogue import Catalogue
from topk.checks import Floats
from topk.contract import TopKIndex
from topk.kernels.heaps import best_first

BUFFER = 1024  # a scan of this many rows costs about a microsecond per attribute, a rebuild far more


def concatenated(parts: list[Catalogue]) -> Catalogue:
    """The rows of several catalogues without their residues, which the matcher keeps."""
    columns: list[Any] = [np.concatenate(column) for column in zip(*(part.columns for part in parts), strict=True)]
    return Catalogue(*columns)


class Run:
    """One static matcher, and which of its subscriptions are dead."""

    def __init__(self, index: TopKIndex) -> None:
        self.index = index
        self.dead: set[int] = set()

    def __len__(self) -> int:
        return len(self.index) - len(self.dead)

    def __contains__(self, id: object) -> bool:
        return id in self.index and id not in self.dead

    def live(self) -> Catalogue:
        stored = self.index.catalogue
        return stored.take(np.array([id not in self.dead for id in stored.ids.tolist()], dtype=np.bool_))

    def search(self, low: Floats, high: Floats, k: int) -> Found:
        """The k best live rows; asks the index for more while dead ones take their places."""
        ask = min(k + min(len(self.dead), k), len(self.index))
        while True:
            ids, scores = self.index.search(low, high, ask)
            if not self.dead:
                return ids, scores
            alive = np.array([id not in self.dead for id in ids.tolist()], dtype=np.bool_)
            if alive.sum() >= k or len(ids) < ask or ask == len(self.index):
                return ids[alive][:k], scores[alive][:k]
            ask = min(2 * ask, len(self.index))


class LogStructured(TopKIndex):
    """A dynamic matcher made of static ones."""

    dynamic = True

    def __init__(
        self,
        catalogue: Catalogue,
        semantics: str,
        name: str,
        build: Callable[[Catalogue], TopKIndex],
        fresh: Callable[[], TopKIndex],
        buffer: int = BUFFER,
    ) -> None:
        """`build` makes a static run, `fresh` an empty dynamic buffer."""
        super().__init__(catalogue, semantics)
        self.name = name  # type: ignore[misc]
        self._build, self._fresh, self._buffer_size = build, fresh, buffer
        self._runs: list[Run] = []  # largest first
        self._buffer = self._counting(fresh())
        self._clean: TopKIndex | None = None  # the only run, if there is nothing else to ask
        if len(catalogue):
            self._start_run(replace(catalogue, residues={}))
        self._changed()

    def _counting(self, part: TopKIndex) -> TopKIndex:
        """The part; its work counts as ours from now on."""
        part.stats = self.stats
        return part

    def _changed(self) -> None:
        lone = len(self._runs) == 1 and not self._runs[0].dead and not len(self._buffer)
        self._clean = self._runs[0].index if lone and not self._residuals else None

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs) + len(self._buffer)

    def __contains__(self, id: object) -> bool:
        return id in self._buffer or any(id in run for run in self._runs)

    def _combined(self, weights: Floats) -> float:
        return self._buffer._combined(weights)

    def _start_run(self, catalogue: Catalogue) -> None:
        self._runs.append(Run(self._counting(self._build(catalogue))))
        self._runs.sort(key=lambda r: -len(r))
        self.stats.rebuilds += 1

    def top(self, event: ArrayLike, k: int | None) -> list[Match]:
        return super().top(event, k) if self._clean is None else self._clean.top(event, k)

    def top_many(self, events: ArrayLike, k: int | None) -> Batch:
        return super().top_many(events, k) if self._clean is None else self._clean.top_many(events, k)

    def insert(self, one: Catalogue) -> None:
        self._buffer.insert(one)
        self._clean = None
        if len(self._buffer) < self._buffer_size:
            return
        merged = [self._buffer.catalogue]
        size = len(self._buffer)
        while self._runs and len(self._runs[-1]) <= 2 * size:
            run = self._runs.pop()
            merged.append(run.live())
            size += len(run)
        self._buffer = self._counting(self._fresh())
        self._start_run(concatenated(merged))
        self._changed()

    def delete(self, id: int) -> None:
        if id in self._buffer:
            self._buffer.delete(id)
            self._changed()
            return
        self._clean = None
        run = self._run_of(id)
        run.dead.add(id)
        if 2 * len(run.dead) > len(run.index):
            self._runs.remove(run)
            if len(run):
                self._start_run(run.live())

    def _run_of(self, id: int) -> Run:
        return next(run for run in self._runs if id in run)

    @property
    def catalogue(self) -> Catalogue:
        parts = [run.live() for run in self._runs]
        return concatenated([*parts, self._buffer.catalogue])

    def subscription(self, id: int) -> Catalogue:
        holder = self._buffer if id in self._buffer else self._run_of(id).index
        return holder.subscription(id)

    def search(self, low: Floats, high: Floats, k: int) -> Found:
        parts = [run.search(low, high, k) for run in self._runs]
        if len(self._buffer):
            parts.append(self._buffer.search(low, high, min(k, len(self._buffer))))
        if len(parts) < 2:
            return parts[0] if parts else NONE_FOUND
        ids, scores = best_first(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))
        return ids[:k], scores[:k]

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes + sum(run.index.nbytes for run in self._runs)

    def check(self) -> None:
        self._buffer.check()
        for run in self._runs:
            run.index.check()
            assert 2 * len(run.dead) <= len(run.index), "at most half of a run is dead"
            assert all(id in run.index for id in run.dead), "only a run's own subscriptions are dead in it"
        places = [id for run in self._runs for id in run.live().ids.tolist()]
        assert len(places) == len(set(places)), "a subscription is in one run"
        assert not any(id in self._buffer for id in places), "a subscription is in a run or in the buffer"
