"""Ranked matching of Boolean expressions: many attributes, few predicates each (Sadoghi & Jacobsen, ICDE 2012).

    catalogue = topk.Catalogue.from_predicates([[(3, "between", (1, 5), 0.4), (7, "!=", 2.0, 0.1)]])
    topk.create("pivot", catalogue).top({3: 4.0, 7: 1.0}, k=5)

- `catalogue`, `event`, `scores`: expressions, events, and how weights become a score
- `contract`, `upkeep`: what every matcher offers; `upkeep` also serves `topk/places`
- `rows`: the expressions as kernels read them; `blocks`: packed copies
- `scan`; `k_index` (its lists: `k_lists`); `be/`: BE-Tree and BE*-Tree
- `pivot`, our own: `cells` (of values), `postings` (sorted lists)
"""

from __future__ import annotations

from typing import Any

from coverlay import Registry
from topk.predicates import OPERATORS, Predicate, SparseCatalogue, from_csr, from_predicates
from topk.sparse.be.star import BEStarBatch, BEStarPaper, BEStarTree
from topk.sparse.be.tree import BETree
from topk.sparse.contract import SparseIndex
from topk.sparse.event import Event, Events
from topk.sparse.k_index import KIndex, KIndexPaper
from topk.sparse.pivot import Pivot
from topk.sparse.scan import SparseScan
from topk.sparse.scores import SCORES, Score, monotone
from topk.sparse.upkeep import create

__all__ = [
    "METHODS", "OPERATORS", "SCORES", "Event", "Events", "Predicate", "Score", "SparseCatalogue", "SparseIndex",
    "build", "from_csr", "from_predicates", "monotone",
]  # fmt: skip

METHODS: Registry[type[SparseIndex]] = Registry(
    "matcher of predicates",
    {cls.name: cls for cls in (SparseScan, KIndex, KIndexPaper, BETree, BEStarTree, BEStarBatch, BEStarPaper, Pivot)},
    facts={"name": ()},
)


def build(name: str, catalogue: SparseCatalogue, **options: Any) -> SparseIndex:
    """Build the matcher `name`; CoverlayError lists the valid names and options."""
    return create(METHODS, "sparse", name, catalogue, options)
