"""A note about a sweep over overlays whose latencies come from different sources, so that they do not compare."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from coverlay import CoverlayError
from routing.overlay.graph import latency_origin
from sim.experiment.config_world import OverlaySection


def differing_origins(overlays: Iterable[OverlaySection]) -> list[str]:
    """What each overlay takes its latencies from, where not all take them from the same; none where all do."""
    origins: dict[str, str] = {}
    for overlay in overlays:
        name = overlay.file if overlay.file is not None else f"generated ({overlay.kind})"
        if name not in origins:
            with suppress(CoverlayError):  # a file that cannot be read is refused when it is checked
                origins[name] = _origin(overlay)
    if len(set(origins.values())) < 2:
        return []
    listed = "; ".join(f"{name}: {origin}" for name, origin in origins.items())
    return [f"latencies of the overlays have different origins ({listed}); overlay.latency gives all of them the same"]


def _origin(overlay: OverlaySection) -> str:
    if "latency" in overlay.model_fields_set:
        return "overlay.latency"
    if overlay.file is None:
        low, high = overlay.latency["low"], overlay.latency["high"]
        return f"drawn from {low:g} to {high:g} ms, the default"
    return latency_origin(overlay.file, overlay.latency_attribute, overlay.map is not None)
