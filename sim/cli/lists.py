"""What `coverlay list` shows: the names of every registry, each with the first line of its own documentation.

Nothing is described here: a class or function that is registered alone in its file is described by the file,
one of several by itself.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

Rows = list[tuple[str, str]]


def _described(registry: Mapping[str, Any]) -> Rows:
    files = Counter(entry.__module__ for entry in registry.values())
    return [(name, _sentence(entry, files[entry.__module__] == 1)) for name, entry in registry.items()]


def _sentence(entry: Any, alone: bool) -> str:
    """The first paragraph of the documentation, up to the end of its first sentence or clause."""
    own, file = entry.__doc__ or "", sys.modules[entry.__module__].__doc__ or ""
    text = inspect.cleandoc((file or own) if alone else (own or file))
    return " ".join(text.split("\n\n")[0].split("\n")).split(". ")[0].rstrip(".:")


def _topologies() -> Rows:
    from routing.overlay.graph import OVERLAYS

    return _described(OVERLAYS)


def _strategies() -> Rows:
    from routing.strategies import STRATEGIES

    return _described(STRATEGIES)


def _covering() -> Rows:
    import covering

    return _described(covering.METHODS)


def _matchers() -> Rows:
    import topk

    rows = []
    for kind in ("boxes", "predicates", "places"):
        rows += [(name, f"{kind}: {text}") for name, text in _described(topk.registry(kind))]
    return rows


def _workloads() -> Rows:
    from sim.workloads import WORKLOADS, workload_options

    rows = _described(WORKLOADS)
    return [(name, f"{text} [{', '.join(workload_options(name)) or 'no options'}]") for name, text in rows]


def _experiments() -> Rows:
    from sim.experiment.plan import load, shipped

    return [(name, str(load(name).data.get("question", ""))) for name in shipped()]


def _metrics() -> Rows:
    from analysis.spark.metrics import CATALOGUE

    return [(name, f"{metric.definition} [{metric.unit}]") for name, metric in sorted(CATALOGUE.items())]


LISTS: dict[str, Callable[[], Rows]] = {
    "topologies": _topologies,
    "strategies": _strategies,
    "covering": _covering,
    "matchers": _matchers,
    "workloads": _workloads,
    "experiments": _experiments,
    "metrics": _metrics,
}
