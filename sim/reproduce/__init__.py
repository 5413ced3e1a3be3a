"""Reproductions: a source document's tables and figures, with a verdict per claim.

A document listed here has a table of claims, `sim.reproduce.tables.<document>`, and a module whose `steps(sheet)`
measure and judge each of them. Modules are imported only when used.

tables            what each document says: id, claim, published figure, rule, and what it rests on
rules             how a number per seed becomes a verdict
measure           time and operations of methods that answer the same events
series            figures as numbers, and how they are compared
sheet             what all share: measuring, sweeps over seeds, verdicts
points            what was measured, kept so that nothing is measured twice
pictures          tables and plots of what was measured
ledger            runs into claims.json, and the ledger that ships in docs
ibm04_*           parts of ibm04: its indexes, searches, storage, and what it says beside its figures
icdcs07_*, box_union     parts of icdcs07
icde12_*          parts of icde12: what is counted, and ablations
vldb08_*          parts of vldb08: its data, Figure 6, what a query is made of, and what it says beside its results
sstd15_*          parts of sstd15: why claims do not hold, and what the order of its methods depends on
"""

DOCUMENTS: dict[str, str] = {
    "ibm04": "sim.reproduce.ibm04",
    "icdcs07": "sim.reproduce.icdcs07",
    "icde12": "sim.reproduce.icde12",
    "sstd15": "sim.reproduce.sstd15",
    "vldb08": "sim.reproduce.vldb08",
}
