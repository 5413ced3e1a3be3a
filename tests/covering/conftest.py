"""Small limits, so that short tests meet rebuilds, full tails and the compact form of ids."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import covering.ids
import covering.layered


@pytest.fixture
def small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covering.layered, "TAIL_LEAST", 3)
        patch.setattr(covering.layered, "TAIL_FACTOR", 0.5)
        patch.setattr(covering.ids, "COMPACT_FROM", 6)
        yield
