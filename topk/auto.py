"""Auto: the fastest exact matcher we know for what is in the catalogue.

Few subscriptions: the block scan, which has nothing to build and nothing to look up. One attribute: canopy.
Several: slices. The choice is made per static run, so a matcher that grows changes its structure on the
way.
"""

from __future__ import annotations

from topk.canopy.index import Canopy
from topk.catalogue import Catalogue
from topk.contract import TopKIndex
from topk.scan import Scan
from topk.slices.index import Slices

SCAN_BELOW = 512  # subscriptions; scanning fewer takes no longer than calling another kernel


def best_for(catalogue: Catalogue, semantics: str) -> TopKIndex:
    """The matcher `auto` uses for these subscriptions."""
    if len(catalogue) < SCAN_BELOW:
        return Scan(catalogue, semantics)
    return Canopy(catalogue, semantics) if catalogue.dimensions == 1 else Slices(catalogue, semantics)
