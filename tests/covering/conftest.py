"""Small limits, so that short tests meet rebuilds, full tails and the compact form of ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import covering.ids
import covering.layered

# numba's cache looks at the file of a kernel only, not at those of the kernels it calls: after an edit, tests
# would run on what was compiled before. So compiled kernels older than the newest source go.
_folder = Path(covering.__file__).parent
_newest = max(source.stat().st_mtime for source in _folder.glob("*.py"))
for _compiled in (_folder / "__pycache__").glob("*.nb?"):
    if _compiled.stat().st_mtime < _newest:
        _compiled.unlink(missing_ok=True)


@pytest.fixture
def small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covering.layered, "_TAIL_LEAST", 3)
        patch.setattr(covering.layered, "_TAIL_FACTOR", 0.5)
        patch.setattr(covering.ids, "COMPACT_FROM", 6)
        yield
