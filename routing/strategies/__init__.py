"""The routing strategies by name, and the ledger that each one uses.

- `basic`: flooding, simple and identity routing
- `covering`, `merging`: not what a sent subscription contains; several as one box
- `ranked`, `skyband`: for the k best of a whole network

To add one: write a LinkStrategy (copy basic.py) and add it here, or `register` it (docs/plugins.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

from coverlay import Registry, unknown_name
from routing.contract import LinkStrategy, RoutingOptions, SendsTo
from routing.ledger import LinkLedger
from routing.strategies.basic import Flooding, Identity, Simple
from routing.strategies.covering import Covering, Hierarchical
from routing.strategies.merging import Merging
from routing.strategies.ranked import RankedLedger, with_rows
from routing.strategies.skyband import SkybandLedger

STRATEGIES: Registry[type[LinkStrategy]] = Registry(
    "routing strategy",
    {chosen.name: chosen for chosen in (Flooding, Simple, Identity, Covering, Merging, Hierarchical)},
    facts={"name": (), "sends_to": get_args(SendsTo), "searches": (True, False)},
)
Strategy = TypeVar("Strategy", bound=type[LinkStrategy])


def register(chosen: Strategy) -> Strategy:
    """Add a routing strategy of your own; a decorator of a `LinkStrategy` (docs/plugins.md)."""
    STRATEGIES.add_class(chosen, LinkStrategy)
    if chosen.holds_back() and not chosen.searches and not chosen.charged_as:
        chosen.charged_as = (chosen.name,)  # it searches by itself, so its searches have a price of their own
    return chosen


def strategy(name: str) -> type[LinkStrategy]:
    if name not in STRATEGIES:
        raise unknown_name("routing strategy", name, STRATEGIES)
    return STRATEGIES[name]


def make_ledger(
    name: str,
    options: RoutingOptions,
    exact_options: RoutingOptions | None,
    new_id: Callable[[], int],
    **ledger_options: Any,
) -> LinkLedger:
    """A ledger of the named strategy; `exact_options` asks an exact twin beside an approximate search."""
    rank = options.rank if strategy(name).searches else None
    if rank is not None and options.skyband is not None:
        return SkybandLedger(options, rank, options.skyband, **ledger_options)
    chosen = strategy(name)(options if rank is None else with_rows(options), **options.strategy_options)
    twin = Covering(with_rows(exact_options)) if chosen.approximate and exact_options is not None else None
    if rank is not None:
        return RankedLedger(chosen, rank, exact_twin=twin, **ledger_options)
    if chosen.ledger is not None:
        made: LinkLedger = chosen.ledger(chosen, new_id, exact_twin=twin, **ledger_options)
        return made
    return LinkLedger(chosen, exact_twin=twin, **ledger_options)
