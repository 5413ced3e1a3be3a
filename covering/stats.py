"""The work that an index reports: counters that add up over calls, partitions and brokers.

Where a probe is a key range, the rows that are compared inside it are its *candidates*. Where a probe is an entry
compared, or a row visited, there are none: they are counted already.

Pages and round trips say what a search would cost if the index were on disk or on another machine. They follow from
its probes and candidates, and from what the method says that a probe touches (`CoveringIndex.touches`):

| touches | what lies on a page of 4 KB               | round trips                                   |
|---------|-------------------------------------------|-----------------------------------------------|
| boxes   | boxes, 16 bytes per attribute             | one: the pages are consecutive                |
| words   | 512 words of 8 bytes, one per entry       | one                                           |
| nodes   | the 64 words of a node or a bucket        | one per page: a node says which one is next   |
| keys    | a run looked up, a row that is jumped to  | one per record read                           |

A range that is looked up in a store of sorted keys returns its first record. A candidate that fails needs the next one:
another round trip. On disk, candidates lie side by side, as many boxes to a page as there is room for.

A search for covered entries (active mode) is one pass over all boxes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal, NamedTuple

Touches = Literal["boxes", "words", "nodes", "keys"]

PAGE = 4096  # bytes
_BUCKET = 64  # words that a k-d tree looks at together
_WORD = 8  # bytes


def boxes_per_page(attributes: int) -> int:
    return max(1, PAGE // (16 * attributes))


def footprint(touches: Touches, attributes: int) -> tuple[int, bool, int]:
    """(probes that share a page, whether each page is another round trip, candidates that share a page)."""
    boxes = boxes_per_page(attributes)
    per_page, apart = {
        "boxes": (boxes, False),
        "words": (PAGE // _WORD, False),
        "nodes": (_BUCKET, True),
        "keys": (1, True),
    }[touches]
    return per_page, apart, boxes


def pages_and_trips(probes: int, failed: int, per_page: int, apart: bool, boxes: int) -> tuple[int, int]:
    """`failed`: candidates that were no covers. The compiled engine compiles this too."""
    first = (probes + per_page - 1) // per_page
    pages = first + failed // boxes
    return pages, first + failed if apart else min(pages, 1)


class Asked(NamedTuple):
    """The work of one search in one index, as it is charged."""

    method: str  # the one at work
    probes: int
    pages: int
    round_trips: int
    candidates: int = 0
    bits: int = 0  # of a coordinate on the curve; 0: the method has none
    audited: int = 0  # 1: it went on past the stop of an audited ε, or had none yet
    past_stop: int = 0  # probes that it made there


@dataclass
class Stats:
    """The work of `find_cover` calls since the index was made (or since `reset`); plain sums.

    `volume / checks` is the mean fraction of the search region that was searched. What one probe is depends
    on the method: a stored entry compared for exact methods, a key range looked up for the greedy ones on a curve.
    """

    checks: int = 0  # find_cover calls, each box of a batch counted
    hits: int = 0  # of these, how many found a cover
    probes: int = 0
    candidates: int = 0  # rows compared inside key ranges; 0 where probes count entries
    cubes: int = 0  # standard cubes searched (curve methods)
    runs: int = 0  # key ranges after merging neighbouring cubes (curve methods)
    volume: float = 0.0  # sum over checks of the fraction of the search region searched; 1 for an exact check
    capped: int = 0  # checks that a cap or budget ended early, with neither a hit nor the volume asked for
    audits: int = 0  # checks that went on past the stop of an audited ε, or had none yet
    audit_misses: int = 0  # of these, covers that the stop would have missed
    past_stop: int = 0  # probes of audits after their stop
    pages: int = 0  # see above; counted by `FilterIndex`, check by check
    round_trips: int = 0

    def copy(self) -> Stats:
        return replace(self)

    def since(self, before: Stats) -> Stats:
        """What was counted after the copy `before` was taken."""
        return Stats(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(self)))

    def reset(self) -> None:
        self.__init__()  # type: ignore[misc]
