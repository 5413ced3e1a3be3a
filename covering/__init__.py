"""Covering detection: "does a stored box contain this box?", many ways behind one interface.

    index = covering.create("zorder", domain, epsilon=0.05)
    index.add(7, [[0, 50], [1990, 2004]])
    index.find_cover([[0, 30], [1998, 2000]])   # 7: a witness, never just True

- `contract`: what every method offers; `given` (checks of boxes), `slot_table` (ids to slots), `stats` are parts of it
- `scan`, `poset`: baselines; `packed`, `kdtree` (with `kdtree_build`): exact, over `static_with_tail`, `packed_points`
  and `packed_words`
- `budget`: approximate, only the largest boxes; `auto`: chooses among these
- `audit`: when may a search stop that is to miss a share ε of the covers at most
- `curve/`: methods on space filling curves, the slides' approximate search, and what theory says about it
- `conformance`: what every method has to do, as checks of drawn cases
- `filters`, `residue`: whole filters (sets, ≠, groups) on top of any method
- `subtraction`: do several boxes together contain one? `dominators`: the first k points that dominate a given one
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from numpy.typing import ArrayLike

from covering.auto import AutoIndex
from covering.budget import BudgetIndex
from covering.contract import CoveringIndex
from covering.curve.bigmin import BigminIndex
from covering.curve.density import DensityIndex
from covering.curve.emulated import EmulatedIndex
from covering.curve.hilbert import HilbertIndex
from covering.curve.quadtree import QuadtreeIndex
from covering.curve.zorder import ZorderIndex
from covering.kdtree import KdTreeIndex
from covering.packed import PackedIndex
from covering.poset import PosetIndex
from covering.residue import EMPTY, Residue
from covering.scan import ScanIndex
from covering.stats import Stats, Touches
from coverlay import CoverlayError, Registry, unknown_name

__all__ = ["EMPTY", "METHODS", "CoveringIndex", "Residue", "Stats", "create", "may_miss", "methods", "register"]

METHODS: Registry[type[CoveringIndex]] = Registry(
    "covering method",
    {
        method.name: method
        for method in (
            ScanIndex,
            PackedIndex,
            KdTreeIndex,
            BigminIndex,
            DensityIndex,
            QuadtreeIndex,
            PosetIndex,
            ZorderIndex,
            EmulatedIndex,
            HilbertIndex,
            BudgetIndex,
            AutoIndex,
        )
    },
    facts={"name": (), "touches": get_args(Touches)},
)
Method = TypeVar("Method", bound=type[CoveringIndex])


def register(method: Method) -> Method:
    """Add a covering method of your own; a decorator of a `CoveringIndex` (docs/plugins.md)."""
    METHODS.add_class(method, CoveringIndex)
    return method


def methods() -> list[str]:
    """The names `create` knows."""
    return list(METHODS)


def options_of(name: str) -> list[str]:
    """The names of the options a method takes besides domain and epsilon."""
    parameters = inspect.signature(METHODS[name]).parameters.values()
    return [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]


def may_miss(name: str, epsilon: float, options: Mapping[str, Any]) -> bool:
    """Can a method with this ε and these options overlook a cover?"""
    method = METHODS[name]
    asked = epsilon > 0.0 and method.takes_epsilon
    return asked or method.always_gives_up or any(options.get(o, v) != v for o, v in method.gives_up_with.items())


def create(name: str, domain: ArrayLike, epsilon: float = 0.0, **options: Any) -> CoveringIndex:
    """An empty index; `domain`: (d, 2) finite bounds, ε: the share that may be left out or missed (`epsilon_of`)."""
    method = METHODS.get(name) if isinstance(name, str) else None
    if method is None:
        raise unknown_name("covering method", name, METHODS)
    try:
        share = math.nan if isinstance(epsilon, (bool, str)) else float(epsilon)
    except (TypeError, ValueError):
        share = math.nan
    if not 0.0 <= share < 1.0:
        raise CoverlayError(f"epsilon {epsilon!r} must be a number from 0 up to, not including, 1")
    if share > 0.0 and not method.takes_epsilon:
        approximate = ", ".join(sorted(n for n, m in METHODS.items() if m.takes_epsilon))
        raise CoverlayError(f"{name} takes no epsilon ({epsilon!r} was given); these methods do: {approximate}")
    known = options_of(name)
    for option in options:
        if option not in known:
            allowed = ", ".join(sorted(known)) or "none"
            raise CoverlayError(f"unknown option {option!r} for covering method {name}; it takes: {allowed}")
    METHODS.check_options("covering", name, options)
    return method(domain, share, **options)
