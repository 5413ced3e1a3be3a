"""Benchmarks: our methods against their peers, in one run, as ratios.

A module listed here has `run(quick, progress) -> rows` (a list of dicts, one per line of the table) and
`verdicts(rows) -> rows` (what was aimed at, what was measured, whether it was met). Modules are imported
only when used: peers and compiled kernels are slow to load.

covering (with covering_approximate, covering_lookups)     spark; sweeps: of tiny runs
topk: intervals, boxes; sparse: expressions, places        engines: transport, first_use, engine_speed, events
*_peers: what one would use instead      timing: how times are measured      spark_trace: a made-up sweep
"""

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]  # of a table of measurements or verdicts
Progress = Callable[[str], None]  # called with what is being measured

BENCHMARKS: dict[str, str] = {
    "covering": "sim.bench.covering",
    "engine": "sim.bench.engines",
    "spark": "sim.bench.spark",
    "sparse": "sim.bench.sparse",
    "sweeps": "sim.bench.sweeps",
    "topk": "sim.bench.topk",
}

# What a family includes: `topk` is all of matching, `sparse` its part on expressions and places.
ALONG: dict[str, tuple[str, ...]] = {"topk": ("sparse",)}


def verdict(target: str, measured: str, met: bool | None) -> Row:
    """The target, the result, and whether the target was met; None: too small a size to judge."""
    return {"target": target, "measured": measured, "met": met}
