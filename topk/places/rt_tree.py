"""R^t-tree, extended as in §6.1 of Hu et al. (SSTD 2015) from Yu et al. (TKDE 2015).

The R-tree node's token set becomes, per attribute, one range and the largest weight; the tree is walked from the root
to the leaves. UB_t is the sum of the largest weights whose ranges hold the event: one hull per attribute instead of an
interval tree, which is what the R^I-tree adds. Ours reads the token sets of all children at once, in their parent's
groups; `rt-tree-paper` looks them up child by child.

The paper says neither in which order nodes are visited nor by which bound. Best first with Eq. 8 is its own Algorithm 1
without interval trees (depth first compared a seventh more subscriptions). A bound that takes text and place for
independent is an option, and it is what matters: with it the tree compares eleven times as many subscriptions (200,000,
uniform: 16,834 instead of 1,476 per event, where TAS compares 2,024). It is probably the paper's bound: only with it is
TAS between the R^I-tree and the R^t-tree where α is close to .5, as in Figure 11 (docs/reproduction.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from coverlay import unknown_name
from topk.places.catalogue import PlacedCatalogue
from topk.places.ri_tree import FROM_PARENT, OWN_TOKENS, search
from topk.places.rtree_index import INSERTION, LAYERS, TokenTree

BOUNDS = ("tight", "sum")


class RTTree(TokenTree):
    """R-tree of places with one range and largest weight per attribute in every node.

    >>> import topk
    >>> near, far = ([(0, "<", 5, 1.0)], (1.0, 1.0), 0.5), ([(0, "<", 9, 1.0)], (1.0, 6.0), 0.5)
    >>> index = topk.create("rt-tree", topk.places.from_located([near, far], max_distance=10.0))
    >>> index.top({0: 2}, place=(1.0, 1.0), k=2)
    [(0, 1.0), (1, 0.75)]
    """

    name = "rt-tree"
    options: ClassVar[Mapping[str, str]] = {
        **TokenTree.options,
        "bound": "how a node's text and place are added: tight (Eq. 8), or sum, as if one α did not weigh both",
    }
    kernel = staticmethod(search)
    refined = FROM_PARENT

    def __init__(
        self,
        catalogue: PlacedCatalogue,
        semantics: str = "similar",
        *,
        packing: str = LAYERS,
        bound: str = BOUNDS[0],
    ) -> None:
        super().__init__(catalogue, semantics, packing=packing)
        if bound not in BOUNDS:
            raise unknown_name("bound", bound, BOUNDS)
        self.tight = bound == BOUNDS[0]


class RTTreePaper(RTTree):
    """R^t-tree as published, to compare with: a tree of the places grown by insertion; slower than rt-tree.

    >>> import topk
    >>> near, far = ([(0, "<", 5, 1.0)], (1.0, 1.0), 0.5), ([(0, "<", 9, 1.0)], (1.0, 6.0), 0.5)
    >>> index = topk.create("rt-tree-paper", topk.places.from_located([near, far], max_distance=10.0))
    >>> index.top({0: 2}, place=(1.0, 1.0), k=2)
    [(0, 1.0), (1, 0.75)]
    """

    name = "rt-tree-paper"
    refined = OWN_TOKENS

    def __init__(
        self, catalogue: PlacedCatalogue, semantics: str = "similar", *, packing: str = INSERTION, **shared: Any
    ) -> None:
        super().__init__(catalogue, semantics, packing=packing, **shared)
