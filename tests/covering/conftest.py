"""Small limits, so that short tests meet rebuilds, full tails and the compact form of ids."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import covering.curve.density
import covering.slot_table
import covering.static_with_tail


@pytest.fixture
def small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covering.static_with_tail, "TAIL_LEAST", 3)
        patch.setattr(covering.static_with_tail, "TAIL_FACTOR", 0.5)
        patch.setattr(covering.curve.density, "ENTRIES_PER_COUNTER", 2)
        patch.setattr(covering.slot_table, "COMPACT_FROM", 6)
        yield
