"""Ranked matching of expressions with a place (Hu, Cheng, Wu & Jin, SSTD 2015).

    catalogue = topk.places.from_located([([(3, "between", (1, 5), 0.6), (7, "=", 2.0, 0.4)], (22.3, 114.2), 0.5)])
    topk.create("ri-tree", catalogue).top({3: 4.0}, place=(22.2, 114.1), k=5)

- `catalogue`, `distance`: what is stored, and how far apart places are; `contract`: what every matcher offers, and ψ
- `scan`, `tas`, `rt_tree`, `ri_tree`: the matchers
- `rtree`: the R-tree of places in flat arrays; `rtree_packing`, `rtree_updates`: how it is loaded and changed;
  `rtree_index`: what the matchers over it share
- `forest`, `stabbing`: the interval trees in its nodes, and the queries on them
"""

from __future__ import annotations

from typing import Any

from coverlay import Registry
from topk.places.catalogue import PlacedCatalogue, PlacedEvent, from_located, located
from topk.places.contract import PlacedIndex
from topk.places.ri_tree import RITree, RITreePaper
from topk.places.rt_tree import RTTree, RTTreePaper
from topk.places.scan import PlacedScan
from topk.places.tas import ThresholdScored
from topk.sparse.upkeep import create

__all__ = ["METHODS", "PlacedCatalogue", "PlacedEvent", "PlacedIndex", "build", "from_located", "located"]

METHODS: Registry[type[PlacedIndex]] = Registry(
    "matcher of places",
    {cls.name: cls for cls in (PlacedScan, ThresholdScored, RTTree, RTTreePaper, RITree, RITreePaper)},
    facts={"name": ()},
)


def build(name: str, catalogue: PlacedCatalogue, **options: Any) -> PlacedIndex:
    """Build the matcher `name`; CoverlayError lists the valid names."""
    return create(METHODS, "location-aware", name, catalogue, options)
