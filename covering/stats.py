"""The work that an index reports: counters that add up over calls, partitions and brokers."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace


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

    def copy(self) -> Stats:
        return replace(self)

    def since(self, before: Stats) -> Stats:
        """What was counted after the copy `before` was taken."""
        return Stats(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(self)))

    def reset(self) -> None:
        self.__init__()  # type: ignore[misc]
