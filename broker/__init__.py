"""Brokers that exchange subscriptions and events, in SimPy: the reference engine.

- `language/`: what clients write (schema, predicates, parser), and the filters it compiles to
- `settings`, `network`: how brokers and links behave; the network, what clients do in it, and its run
- `node`, `tree_part`: a broker, and its part in one routing tree
- `messages`, `transport`: what they send, over which links and through which queues
- `tables`, `pruning`, `matchers`, `ranking`: who behind a link wants an event, and the k best of a broker's own clients
- `ranked_visit`: the k best of the whole network; `outages`, `recovery`: faults, and how brokers agree again
- `work`, `profiles/`: what counted work costs; `trace/`: what a run records
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.transport import Work, register_service

__all__ = ["Work", "register_service"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from broker import transport

        return getattr(transport, name)
    raise AttributeError(f"module 'broker' has no attribute {name!r}")
