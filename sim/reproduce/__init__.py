"""Reproductions: a source document's tables and figures, with a verdict per claim.

A module listed here has `run(out, quick, progress) -> list[Claim]` and writes data and plots into `out`. Modules are
imported only when used.

sheet             what all share: claims, CSV files, plots, points that are not measured twice
icdcs07_measure, icdcs07_figures, box_union     parts of icdcs07
theory_bounds     what theory says about a sweep over ε, for the report
"""

DOCUMENTS: dict[str, str] = {
    "ibm04": "sim.reproduce.ibm04",
    "icdcs07": "sim.reproduce.icdcs07",
    "icde12": "sim.reproduce.icde12",
    "sstd15": "sim.reproduce.sstd15",
    "vldb08": "sim.reproduce.vldb08",
}

POINTS = "points"  # folder of single measurements, which `--resume` does not repeat
