"""The memory that a trace is written to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from covering.memory import block_for, column_in, small_pages
from sim.compiled.records import CONTROL_ROW

STATUS = Path("/proc/self/statm")


@pytest.mark.skipif(not STATUS.exists(), reason="tells of its memory in another way")
def test_what_is_not_written_takes_no_memory() -> None:
    """Pages of 2 MB, as numpy asks for, would take all of it."""
    apart, pieces = 1 << 21, 64
    array = small_pages((pieces * apart,), np.uint8)
    before = int(STATUS.read_text().split()[1])
    array[::apart] = 1
    pages = int(STATUS.read_text().split()[1]) - before
    assert pages < 8 * pieces  # of 4 KB; large ones: 512 each
    assert array.sum() == pieces


def test_columns_of_a_block_keep_out_of_each_others_way() -> None:
    rows = 1001  # not a multiple of what columns are aligned to
    block = block_for(rows, CONTROL_ROW)
    names = CONTROL_ROW.names or ()
    for number, name in enumerate(names):
        column_in(block, CONTROL_ROW, name, rows)[:] = number
    for number, name in enumerate(names):
        column = column_in(block, CONTROL_ROW, name, rows)
        assert (column == number).all()
        assert column.flags.aligned
