"""The routing strategies by name, and the ledger that each one uses.

- `basic`: flooding, simple and identity routing
- `covering`, `merging`: not what a sent subscription contains; several as one box
- `ranked`, `skyband`: for the k best of a whole network

To add one: write a LinkStrategy (copy basic.py) and add it here; tests/broker/test_truth.py then compares it with the
oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coverlay import unknown_name
from routing.contract import LinkStrategy, RoutingOptions
from routing.ledger import LinkLedger
from routing.strategies.basic import Flooding, Identity, Simple
from routing.strategies.covering import Covering, Hierarchical
from routing.strategies.merging import Merging, MergingLedger
from routing.strategies.ranked import RankedLedger, with_rows
from routing.strategies.skyband import SkybandLedger

STRATEGIES: dict[str, type[LinkStrategy]] = {
    chosen.name: chosen for chosen in (Flooding, Simple, Identity, Covering, Merging, Hierarchical)
}


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
    chosen = strategy(name)(options if rank is None else with_rows(options))
    twin = Covering(with_rows(exact_options)) if chosen.approximate and exact_options is not None else None
    if rank is not None:
        return RankedLedger(chosen, rank, exact_twin=twin, **ledger_options)
    if isinstance(chosen, Merging):
        return MergingLedger(chosen, new_id, exact_twin=twin, **ledger_options)
    return LinkLedger(chosen, exact_twin=twin, **ledger_options)
