"""Reproductions: a source document's tables and figures, with a verdict per claim.

A document listed here has a table of claims (`tables/`: what it says) and a module whose `steps(sheet)` measure and
judge each of them. Modules are imported only when used. Parts of a document's module are called by its name: `ibm04_*`,
`icdcs07_*` (and `box_union`), `icde12_*`, `sstd15_*`, `vldb08_*`.

sheet, rules      what all share: measuring, sweeps over seeds; how a number per seed becomes a verdict
measure, points   time and operations of methods that answer the same events, kept so that nothing is measured twice
series, pictures  figures as numbers and how they are compared; tables and plots of them
ledger            runs into claims.json, and the ledger that ships in docs
"""

SCALABLE = ("icdcs07", "vldb08")  # measured with a share of the document's subscriptions if `--share` says so

DOCUMENTS: dict[str, str] = {
    "ibm04": "sim.reproduce.ibm04",
    "icdcs07": "sim.reproduce.icdcs07",
    "icde12": "sim.reproduce.icde12",
    "sstd15": "sim.reproduce.sstd15",
    "vldb08": "sim.reproduce.vldb08",
}
