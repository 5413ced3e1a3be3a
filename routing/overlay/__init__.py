"""Overlays: `graph` (made or loaded, the spanning tree), `kinds`, `files`, `latency`, `map` (places on the globe),
`layout` (places in a picture), and `trees` (the trees that messages follow)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routing.overlay.kinds import register

__all__ = ["register"]


def __getattr__(name: str) -> Any:
    if name == "register":
        from routing.overlay.kinds import register

        return register
    raise AttributeError(f"module 'routing.overlay' has no attribute {name!r}")
