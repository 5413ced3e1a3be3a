"""What our two indexes of one attribute share: ranks, and events without the attribute."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from coverlay import CoverlayError
from topk.base import Found
from topk.catalogue import Catalogue, Floats, Ints
from topk.ranked import RankedIndex, ranked_order


class Columns(NamedTuple):
    """Intervals of the attribute."""

    lo: Floats
    hi: Floats
    scores: Floats
    ids: Ints


class OneAttribute(RankedIndex):
    """Intervals in rank order. With one attribute the two semantics differ only in what is scored."""

    def __init__(self, catalogue: Catalogue, semantics: str) -> None:
        super().__init__(catalogue, semantics)
        if catalogue.dimensions != 1:
            raise CoverlayError(
                f"{self.name} indexes one attribute, not {catalogue.dimensions}; use slices or auto"
            )
        columns, mentioned = self._columns()
        # What matches an event without the attribute; usually nothing.
        silent = np.flatnonzero(~mentioned)
        silent = silent[ranked_order(columns.scores[silent], columns.ids[silent])]
        self._silent: Found = (columns.ids[silent], columns.scores[silent])
        self._lay_out(columns)

    def _columns(self) -> tuple[Columns, Any]:
        """The intervals that are scored, and which of them mention the attribute."""
        given = self._given
        relaxed = self.semantics == "relaxed"
        rows = np.flatnonzero(given.mentioned[:, 0]) if relaxed else slice(None)
        scores = given.weights[rows, 0] if relaxed else given.scores
        return Columns(given.lo[rows, 0], given.hi[rows, 0], scores, given.ids[rows]), given.mentioned[rows, 0]

    @abstractmethod
    def _lay_out(self, columns: Columns) -> None:
        """Build from columns."""

    @abstractmethod
    def _stab(self, value: float, k: int) -> Found:
        """The k best that contain a value."""

    @abstractmethod
    def _meet(self, low: float, high: float, k: int) -> Found:
        """The k best that meet [low, high]."""

    def _search(self, event: Floats, k: int) -> Found:
        value = float(event[0])
        return self._stab(value, k) if value == value else self._without(k)

    def _search_range(self, low: Floats, high: Floats, k: int) -> Found:
        bottom, upper = float(low[0]), float(high[0])
        return self._meet(bottom, upper, k) if bottom == bottom else self._without(k)

    def _without(self, k: int) -> Found:
        return self._silent[0][:k], self._silent[1][:k]
