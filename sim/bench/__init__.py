"""Benchmarks: our methods beside their peers, in one run, as ratios.

A module listed here has `run(quick, progress) -> rows` (a list of dicts, one per line of the table) and
`verdicts(rows) -> rows` (what was aimed at, what was measured, whether it was met). Modules are imported
only when used: peers and compiled kernels are slow to load.
"""

BENCHMARKS: dict[str, str] = {
    "covering": "sim.bench.covering",
    "engine": "sim.bench.transport",
    "spark": "sim.bench.spark",
    "sparse": "sim.bench.sparse",
    "topk": "sim.bench.topk",
}

# What a family brings along: all of matching is `topk`, `sparse` alone is its part on expressions and places.
ALONG: dict[str, tuple[str, ...]] = {"topk": ("sparse",)}
