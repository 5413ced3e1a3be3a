"""Ranked matching: which k stored subscriptions match this event best? Arrays in, answers out.

- `catalogue`, `contract`, `options`: what is stored, what every matcher offers, and defaults of its options
- `scan` (over a `store`), `canopy/` (one attribute), `slices/` (several): our own matchers (`ranked`: what static ones
  share); `auto` chooses among them, `dynamic` makes static ones updatable
- `sparse/`: many attributes, few per subscription (`sparse/be/`: BE-Tree and BE*-Tree); `places/`: text and place
- `papers/`: structures from the papers, for comparison
- `kernels/`: compiled functions that several of these share

This file is the registry: a matcher named here is listed, created and tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from coverlay import CoverlayError, Registry, place_of, quoted, unknown_name
from topk.answers import Batch, Stats
from topk.auto import best_for
from topk.canopy.index import Canopy
from topk.catalogue import Catalogue
from topk.contract import SEMANTICS, TopKIndex
from topk.dynamic import BUFFER, LogStructured
from topk.options import check_type, declared, default_of
from topk.papers.interval.aggregate_rtree import AggregateRTree
from topk.papers.interval.interval_tree import IntervalTree
from topk.papers.interval.ir_tree import IRTree
from topk.papers.interval.rtree import RTree
from topk.papers.interval.scored_interval_tree import ScoredIntervalTree
from topk.papers.interval.scored_rtree import ScoredRTree
from topk.papers.interval.segment_tree import SegmentTree
from topk.papers.interval.sopt_rtree import SoptRTree
from topk.papers.predicate.bitmap import Lci, LciClipped, Sci, SciClipped
from topk.papers.predicate.dlist import DirectList
from topk.papers.predicate.ibs_tree import IntervalBinarySearchTree
from topk.papers.predicate.islist import IntervalSkipList
from topk.papers.predicate.virtual import LciVirtual, LciVirtualTable, SciVirtual, SciVirtualTable
from topk.papers.threshold_merge import over
from topk.places import METHODS as _PLACED
from topk.places import PlacedCatalogue, PlacedIndex
from topk.places import build as _build_placed
from topk.scan import Scan
from topk.slices.index import Slices
from topk.sparse import METHODS as _SPARSE
from topk.sparse import SparseCatalogue, SparseIndex
from topk.sparse import build as _build_sparse

__all__ = [
    "SEMANTICS",
    "Batch",
    "Catalogue",
    "PlacedIndex",
    "SparseCatalogue",
    "SparseIndex",
    "Stats",
    "TopKIndex",
    "create",
    "interval_indexes",
    "methods",
    "register",
]  # fmt: skip

# One attribute each; `over` turns them into matchers of any number of attributes, under the same names.
_INTERVAL_INDEXES = (
    IntervalTree, ScoredIntervalTree, SegmentTree, RTree, AggregateRTree, ScoredRTree, IRTree, SoptRTree,
    Sci, SciClipped, Lci, LciClipped, SciVirtual, SciVirtualTable, LciVirtual, LciVirtualTable,
    DirectList, IntervalSkipList, IntervalBinarySearchTree,
)  # fmt: skip

METHODS: Registry[type[TopKIndex]] = Registry(
    "matcher",
    {
        **{cls.name: over(cls) for cls in _INTERVAL_INDEXES},
        **{cls.name: cls for cls in (Scan, Slices, Canopy)},
    },
    facts={"name": ()},
)
# By the kind of catalogue that a matcher is for.
REGISTRIES: dict[type, Registry[Any]] = {TopKIndex: METHODS, SparseIndex: _SPARSE, PlacedIndex: _PLACED}
Matcher = TypeVar("Matcher", bound=type)


def register(matcher: Matcher) -> Matcher:
    """Add a matcher of your own; a decorator of a `TopKIndex`, `SparseIndex` or `PlacedIndex` (docs/plugins.md)."""
    base = next((base for base in REGISTRIES if isinstance(matcher, type) and issubclass(matcher, base)), TopKIndex)
    if getattr(matcher, "name", None) == AUTO:
        raise CoverlayError(f"{place_of(matcher)}: {AUTO!r} chooses among matchers; choose another name")
    REGISTRIES[base].add_class(matcher, base)
    matcher.options = {**matcher.options, **declared(matcher)}  # type: ignore[attr-defined]
    return matcher


AUTO = "auto"  # no structure of its own: picks one per static run
_BUFFER_HELP = "subscriptions that are scanned before they are built into a static run"


KINDS = ("boxes", "predicates", "places")  # of catalogues


def options_of(name: str, kind: str = "boxes") -> dict[str, tuple[str, Any]]:
    """The options of a matcher: a line of help, and the default (None where the data decide)."""
    if name not in registry(kind):
        raise unknown_name("matching method", name, registry(kind))
    cls = METHODS.get(name) if kind == "boxes" else registry(kind)[name]
    wrapped = kind == "boxes" and (cls is None or not cls.dynamic)
    built = (interval_indexes().get(name), cls)
    helped = {option: (text, default_of(option, built)) for option, text in (cls.options if cls else {}).items()}
    return {**helped, **({"buffer": (_BUFFER_HELP, BUFFER)} if wrapped else {})}


def methods(kind: str = "boxes") -> list[str]:
    """The names `create` knows for catalogues of this kind: boxes, predicates or places."""
    return sorted(registry(kind))


def registry(kind: str = "boxes") -> dict[str, Any]:
    """What implements each name: a matcher class, an interval index for one-dimensional methods, the rule of auto."""
    kinds = {"boxes": {**METHODS, **interval_indexes(), AUTO: best_for}, "predicates": _SPARSE, "places": _PLACED}
    if kind not in kinds:
        raise unknown_name("kind of catalogue", kind, kinds)
    return dict(kinds[kind])


def matcher(name: str, kind: str = "boxes") -> type[Any]:
    """The class of the matcher `name`; `auto` has none."""
    of_kind: dict[str, Any] = METHODS if kind == "boxes" else registry(kind)
    if name not in of_kind:
        raise unknown_name("matching method", name, of_kind)
    return of_kind[name]


def interval_indexes() -> dict[str, Any]:
    """The one-dimensional indexes by name, for callers that want `getnext()` itself."""
    return {cls.name: cls for cls in _INTERVAL_INDEXES}


@overload
def create(name: str, catalogue: SparseCatalogue, **options: Any) -> SparseIndex: ...
@overload
def create(name: str, catalogue: PlacedCatalogue, **options: Any) -> PlacedIndex: ...
@overload
def create(name: str, catalogue: Catalogue, *, semantics: str = "exact", **options: Any) -> TopKIndex: ...


def create(name: str, catalogue: Any, **options: Any) -> Any:
    """Build the matcher `name` over a catalogue; CoverlayError lists the valid names and options.

    Every matcher can `add` and `remove`; a static structure does so through log-structured runs.
    """
    if isinstance(catalogue, SparseCatalogue):
        return _build_sparse(name, catalogue, **options)
    if isinstance(catalogue, PlacedCatalogue):
        return _build_placed(name, catalogue, **options)
    if not isinstance(catalogue, Catalogue):
        made = "topk.Catalogue.from_boxes and from_predicates make one"
        raise CoverlayError(f"a matcher is built over a catalogue, not over {quoted(catalogue)}; {made}")
    semantics = options.pop("semantics", "exact")
    if name not in methods():
        raise unknown_name("matching method", name, methods())
    cls = METHODS.get(name)
    valid = options_of(name)
    for option, value in options.items():
        if option not in valid:
            known = ", ".join(sorted(valid)) or "none"
            raise CoverlayError(f"{name} has no option {option!r}; it has: {known}")
        check_type(option, value, valid[option][1])
    if cls is not None and semantics in SEMANTICS and semantics not in cls.semantics:
        raise CoverlayError(f"{name} answers semantics {' and '.join(cls.semantics)}, not {semantics}")
    if cls is not None and cls.dynamic:
        return cls(catalogue, semantics, **options)
    buffer = options.pop("buffer", BUFFER)
    if buffer < 1:
        raise CoverlayError(f"buffer must be at least 1, not {buffer}")
    if options and cls is not None:
        cls(Catalogue.empty(1), semantics, **options)  # refuse bad values now, not when the first run is built
    parts = _Parts(name, semantics, catalogue.dimensions, options)
    return LogStructured(catalogue, semantics, name, parts.static, parts.buffer, buffer)


@dataclass(frozen=True)
class _Parts:
    """Makes the parts of a log-structured matcher; a value, so that the matcher can be pickled."""

    name: str
    semantics: str
    dimensions: int
    options: Mapping[str, Any]

    def static(self, part: Catalogue) -> TopKIndex:
        cls = METHODS.get(self.name)
        return best_for(part, self.semantics) if cls is None else cls(part, self.semantics, **self.options)

    def buffer(self) -> TopKIndex:
        # The scan sums weights; any other combination needs a matcher that supports it.
        combine = self.options.get("combine", "sum")
        empty = Catalogue.empty(self.dimensions)
        if combine == "sum":
            return Scan(empty, self.semantics)
        return METHODS[IRTree.name](empty, self.semantics, combine=combine)  # type: ignore[call-arg]
