"""Routing: which subscriptions are sent over a link, and which are held back, by whom. It knows no simulation.

- `overlay/`: the brokers' graph, by kind or from a file, with latencies, maps, and the trees that messages follow
- `filter`: a compiled subscription; `advertisements`: what publishers announce
- `contract`: what a strategy is asked; `strategies/`: one file each, and the registry
- `ledger`: per link, what was sent, and what was held back by whom
- `rank`: who outranks whom, for the k best of a whole network
- `options`: checks of what a user wrote
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routing.contract import LinkStrategy, RoutingOptions, Search
    from routing.filter import Filter
    from routing.strategies import register

__all__ = ["Filter", "LinkStrategy", "RoutingOptions", "Search", "overlay", "register"]
_HOMES = {"Filter": "routing.filter", "register": "routing.strategies"}


def __getattr__(name: str) -> Any:
    """What plug-ins use, loaded on first use: the parts of this package import each other."""
    if name == "overlay":
        return import_module("routing.overlay")
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, "routing.contract")), name)
    raise AttributeError(f"module 'routing' has no attribute {name!r}")
