"""The greedy search over standard cubes with stored points in Hilbert instead of Z order.

The cubes of a region, their sizes and hence every statement about ε are those of zorder.py; what the curve
changes is which cubes are neighbours in key order, that is how many runs they merge into (Moon, Jagadish,
Faloutsos and Saltz, TKDE 2001: proportional to the surface), and where points of one region lie in the array.
"""

from __future__ import annotations

from covering.curve.zorder import ZorderIndex
from covering.given import Floats
from covering.scan import scan_one


class HilbertIndex(ZorderIndex):
    """The greedy search with keys of the Hilbert curve.

    >>> from covering.curve.hilbert import HilbertIndex
    >>> index = HilbertIndex((0, 100), epsilon=0.1, bits=4)
    >>> index.add(1, (0, 90))
    >>> index.find_cover((10, 20))
    1
    """

    name = "hilbert"
    hilbert = True

    def _finish(self, query: Floats) -> int:
        """The jumps of bigmin.py are for Z keys; here a scan searches what the cap left open."""
        slot = int(scan_one(self.points, self.used, query))
        self.stats.probes += slot + 1 if slot >= 0 else self.used
        return slot
