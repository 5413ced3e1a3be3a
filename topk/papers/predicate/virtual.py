"""SCI and LCI with bitmap virtualization, without and with the distance table: SCI-BV, LCI-BV, SCI-BV(DT), LCI-BV(DT)
(IBM 2004, section 4; its simulations use the logarithmic ones).

No bitmap: a construct interval is active where its list is not empty. A search looks at the list headers of
the whole covering segment and decodes the end of each active one with a division (BV), or, because covering
intervals lie at the same distances from C_min for every value, adds the entries of one precomputed table
(DT).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Ints
from topk.papers.interval.contract import NODES, PROBED, array_bytes
from topk.papers.predicate.construct import covering_segment, decode, distance_table
from topk.papers.predicate.contract import END
from topk.papers.predicate.pieces import ConstructIndex


@kernel
def _locate(s: Any, head: Any, where: float, work: Any) -> Any:
    """Active coordinates of the covering segment that do cover the position, or the gap after it."""
    j = np.int64(np.floor(where))
    between = where != j
    low, high = covering_segment(s, j, between)
    reach = j + 1 if between else j
    found, size = np.empty(high - low + 1, np.int64), 0
    work[PROBED] += high + 1 - max(low, 0)
    for c in range(max(low, 0), high + 1):
        if head[c] != END and decode(s, c)[1] >= reach:
            found[size] = c
            size += 1
    work[NODES] += size
    return found[:size]


@kernel
def _locate_by_table(s: Any, head: Any, tables: Any, where: float, work: Any) -> Any:
    """The same, with the distance table in place of the divisions."""
    j = np.int64(np.floor(where))
    between = where != j
    low = covering_segment(s, j, between)[0]
    table = tables[1] if between else tables[0]
    found, size = np.empty(len(table), np.int64), 0
    work[PROBED] += len(table)
    for t in range(len(table)):
        c = low + table[t]
        if c >= 0 and head[c] != END:
            found[size] = c
            size += 1
    work[NODES] += size
    return found[:size]


class VirtualIndex(ConstructIndex):
    """Ends of active construct intervals are decoded."""

    def locate(self, value: float) -> Ints:
        return _locate(self.shape, self._lists.head, self.position(value), self.work)


class TableIndex(ConstructIndex):
    """Covering ones are enumerated by the distance table."""

    def _allocate(self, expected: int) -> None:
        super()._allocate(expected)
        self.tables = (distance_table(self.shape), distance_table(self.shape, between=True))

    def locate(self, value: float) -> Ints:
        where = self.position(value)
        return _locate_by_table(self.shape, self._lists.head, self.tables, where, self.work)

    @property
    def nbytes(self) -> int:
        return super().nbytes + array_bytes(*self.tables)

    @property
    def allocated_bytes(self) -> int:
        return super().allocated_bytes + array_bytes(*self.tables)


class SciVirtual(VirtualIndex):
    name, logarithmic = "sci-bv", False


class SciVirtualTable(TableIndex):
    name, logarithmic = "sci-bv-dt", False


class LciVirtual(VirtualIndex):
    name, logarithmic = "lci-bv", True
    calibrated = True


class LciVirtualTable(TableIndex):
    name, logarithmic = "lci-bv-dt", True
