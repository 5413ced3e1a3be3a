"""Reproductions: a source document's tables and figures, with a verdict per claim.

A module listed here has `run(out, quick, progress) -> list[analysis.claims.Claim]` and writes data and plots
into `out`. Modules are imported only when used.
"""

DOCUMENTS: dict[str, str] = {
    "ibm04": "sim.reproduce.ibm04",
    "icdcs07": "sim.reproduce.icdcs07",
    "icde12": "sim.reproduce.icde12",
    "sstd15": "sim.reproduce.sstd15",
    "vldb08": "sim.reproduce.vldb08",
}

POINTS = "points"  # folder of single measurements, which `--resume` does not repeat
