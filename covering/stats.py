"""The work that an index reports: counters that add up over calls, partitions and brokers."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass
class Stats:
    """The work of `find_cover` calls since the index was made (or since `reset`); plain sums.

    `volume / checks` is the mean fraction of the search region that was searched. What one probe is depends
    on the method: a stored entry compared for exact methods, a key range looked up for the curve methods.
    """

    checks: int = 0  # find_cover calls, each box of a batch counted
    hits: int = 0  # of these, how many found a cover
    probes: int = 0
    cubes: int = 0  # standard cubes searched (curve methods)
    runs: int = 0  # key ranges after merging neighbouring cubes (curve methods)
    volume: float = 0.0  # sum over checks of the fraction of the search region searched; 1 for an exact check
    capped: int = 0  # checks ended early by the probe cap, with neither a hit nor the volume asked for

    def merge(self, other: Stats) -> None:
        """Add another index's counters to these."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def copy(self) -> Stats:
        return Stats(self.checks, self.hits, self.probes, self.cubes, self.runs, self.volume, self.capped)

    def since(self, before: Stats) -> Stats:
        """What was counted after the copy `before` was taken."""
        return Stats(
            self.checks - before.checks,
            self.hits - before.hits,
            self.probes - before.probes,
            self.cubes - before.cubes,
            self.runs - before.runs,
            self.volume - before.volume,
            self.capped - before.capped,
        )

    def reset(self) -> None:
        self.__init__()  # type: ignore[misc]
