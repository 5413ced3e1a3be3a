"""Structures: kernels see each other's changes, arrays live as long as somebody holds them, and no longer."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from coverlay import kernel
from topk.kernels.structures import kept, structure

Inner, _ = structure("Inner", weights=np.empty(0))
Outer, outer_at = structure("Outer", count=0, rows=np.empty((0, 2)), pair=(np.empty(0), np.empty(0)), inner=Inner)


@kernel
def fill(outer, inner, count):
    inner.weights = np.full(count, 7.0)
    outer.rows, outer.pair, outer.inner, outer.count = (
        np.ones((count, 2)),
        (np.zeros(count), np.ones(count)),
        inner,
        count,
    )


@kernel
def total(addresses):
    found = 0.0
    for address in addresses:
        outer = outer_at(address)
        found += outer.rows.sum() + outer.pair[1].sum() + outer.inner.weights.sum() + outer.count
    return found


@kernel
def rows_of(outer):
    return kept(outer, "rows"), kept(outer, "pair")


def test_a_structure_is_one_thing_by_whatever_way_a_kernel_comes_to_it():
    outers, inner = [Outer(), Outer()], Inner()
    for count, outer in enumerate(outers, 1):
        fill(outer, inner, count)
    assert total(np.array([outer.address for outer in outers])) == (2 + 1 + 14 + 1) + (4 + 2 + 14 + 2)


def test_what_is_kept_outlives_the_structure_and_what_it_is_replaced_by():
    outer, inner = Outer(), Inner()
    fill(outer, inner, 3)
    rows, (zeros, ones) = rows_of(outer)
    fill(outer, inner, 5)
    del outer, inner
    assert rows.tolist() == [[1.0, 1.0]] * 3
    assert (zeros.tolist(), ones.tolist()) == ([0.0] * 3, [1.0] * 3)


def test_everything_is_freed():
    """With numba's count of allocations, which has to be asked for before numba is loaded."""
    program = """
import gc, os
os.environ["NUMBA_NRT_STATS"] = "1"
from numba.core.runtime import rtsys
from tests.kernels.test_structures import Inner, Outer, fill, rows_of
for count in range(20):
    outer, inner = Outer(), Inner()
    fill(outer, inner, count)
    rows = rows_of(outer)
del outer, inner, rows
gc.collect()
stats = rtsys.get_allocation_stats()
assert stats.alloc >= 20 * 6 and stats.alloc == stats.free, stats
"""
    subprocess.run([sys.executable, "-c", program], check=True)
