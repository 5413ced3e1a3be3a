"""BE*-Tree: non-rigid, self-adjusting space cutting with hierarchical top-k (Sadoghi & Jacobsen, ICDE 2012).

Differs from BE-Tree in the clustering phase. Ranges are minimal and follow the data: a bucket is split in three so
that left and right never meet (`split`), a bucket that would have to grow by more than β gets a new parent
instead (bottom-up expansion), and ranges shrink again on deletion through the inactive dimensions. p-nodes and
l-nodes carry upper bounds of weights, which prune (`match`).

`be-star` is built by insertion, as the paper's BE*; `be-star-batch` partitions all expressions at once, as its BE*-B,
and then takes insertions like the other. What ours changes: the bounds of §VI share 32 slots per node and are
supplemented by a bound of the whole score (the largest usual score below the node times the event's largest ratio of
weight to usual weight): a sum over all attributes of the event is far above what a few predicates can reach. Scores
need not be sums: any monotone one has both bounds (`scores`). After construction nodes and expressions lie in the order
of a search (`layout`). l-nodes hold 20 expressions where the paper's hold 5, and a p-node's rank counts what is below.

`be-star-paper` has the capacities of Table II(a), a bound per attribute in every node (the paper compresses, but does
not say how), no usual scores, and the rank of §V-B, which adds up over the nodes below it. What remains of ours: at
most 8 partitionings on a path; and what changes no count, packed expressions and the order of nodes in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from coverlay import CoverlayError
from topk.predicates import SparseCatalogue
from topk.sparse.be.tree import ALPHA, BETA, OPTIONS, RANKINGS, TABLE, BETree

SPLITTING = ("exhaustive", "approximate")


class BEStarTree(BETree):
    """Partition by attribute, then cluster by data; built one expression at a time.

    >>> import topk
    >>> rows = topk.Catalogue.from_predicates([[(0, "<", 5, 0.5)], [(0, ">", 1), (2, "in", [3, 4])]])
    >>> index = topk.create("be-star", rows)
    >>> index.top({0: 2, 2: 4}, k=2)
    [(1, 2.0), (0, 0.5)]
    """

    name = "be-star"
    calibrated = True
    options: ClassVar[Mapping[str, str]] = {
        **OPTIONS,
        "alpha": "least share of an overflowing bucket that each side of a split must get",
        "beta": "how many times a bucket's range may grow before it gets a new parent",
        "splitting": "exhaustive or approximate",
        "slots": "upper bounds of weights per node, which attributes share; 0: one per attribute",
        "usual_bound": "whether nodes are also bounded by their largest usual score",
        "ranking": f"what a p-node is worth: {', '.join(RANKINGS)} (recursive, new ones by their selectivity)",
    }
    rigid = False
    prunes = True
    batch: ClassVar[bool] = False

    def __init__(
        self,
        catalogue: SparseCatalogue,
        *,
        alpha: float = ALPHA,
        beta: float = BETA,
        splitting: str = "exhaustive",
        **shared: Any,
    ) -> None:
        if not 0.0 <= alpha <= 0.5:
            raise CoverlayError(f"alpha must be from 0 to 0.5, not {alpha}")
        if not beta >= 1.0:
            raise CoverlayError(f"beta must be at least 1, not {beta}")
        if splitting not in SPLITTING:
            raise CoverlayError(f"splitting must be one of {', '.join(SPLITTING)}, not {splitting!r}")
        exhaustive = splitting == SPLITTING[0]
        super().__init__(catalogue, alpha=alpha, beta=beta, exhaustive=exhaustive, batch=self.batch, **shared)


class BEStarBatch(BEStarTree):
    """The same tree, built from all expressions at once.

    >>> import topk
    >>> rows = topk.Catalogue.from_predicates([[(0, "<", 5, 0.5)], [(0, ">", 1), (2, "in", [3, 4])]])
    >>> index = topk.create("be-star-batch", rows)
    >>> index.top({0: 2, 2: 4}, k=2)
    [(1, 2.0), (0, 0.5)]
    """

    name = "be-star-batch"
    batch = True


# How the published tree differs from ours.
AS_PUBLISHED: dict[str, Any] = {"capacity": TABLE, "slots": 0, "usual_bound": False, "ranking": RANKINGS[1]}


class BEStarPaper(BEStarTree):
    """BE*-Tree as published, built one expression at a time; slower than be-star, to compare with.

    >>> import topk
    >>> rows = topk.Catalogue.from_predicates([[(0, "<", 5, 0.5)], [(0, ">", 1), (2, "in", [3, 4])]])
    >>> index = topk.create("be-star-paper", rows)
    >>> index.top({0: 2, 2: 4}, k=2)
    [(1, 2.0), (0, 0.5)]
    """

    name = "be-star-paper"

    def __init__(
        self,
        catalogue: SparseCatalogue,
        *,
        capacity: int | str = AS_PUBLISHED["capacity"],
        slots: int = AS_PUBLISHED["slots"],
        usual_bound: bool = AS_PUBLISHED["usual_bound"],
        ranking: str = AS_PUBLISHED["ranking"],
        **shared: Any,
    ) -> None:
        super().__init__(catalogue, capacity=capacity, slots=slots, usual_bound=usual_bound, ranking=ranking, **shared)
