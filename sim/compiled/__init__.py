"""The compiled engine: the same runs as `broker.network`, in numba, on flat arrays. Same trace, same hash.

`support.py` says what it can run, `records.py` what the arrays hold, `advance.py` is the run itself, `bulk.py` loads
subscriptions that exist before time 0.

Kernels of this package contain kernels of others (covering searches, the block scan, the match of a table). numba's
cache looks at a kernel's own file only, so after an edit of one of those it would go on with what it compiled before,
and the two engines would differ. Hence, on import, compiled kernels go that are older than the newest source they
may contain.
"""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).parents[2]
_SOURCES = (
    "covering/*.py",
    "sim/compiled/*.py",
    "broker/tables.py",
    "broker/messages.py",
    "topk/scan.py",
    "topk/select.py",
)
_COMPILED = ("sim/compiled/__pycache__/*.nb?", "covering/__pycache__/bank*.nb?")


def _drop_stale() -> None:
    newest = max(source.stat().st_mtime for pattern in _SOURCES for source in _ROOT.glob(pattern))
    for pattern in _COMPILED:
        for compiled in _ROOT.glob(pattern):
            try:
                if compiled.stat().st_mtime < newest:
                    compiled.unlink()
            except OSError:  # another process was quicker, or the folder is not ours to change
                continue


_drop_stale()
