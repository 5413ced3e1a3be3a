"""Experiments: configuration, workloads, engines, faults, sweeps, the oracle and the command line.

    import sim
    plan = sim.load("demo", {"overlay.brokers": 50})
    results = sim.run(plan, out="out/demo")          # simulate, aggregate on Spark: analysis.table(results)

Importing this package is cheap: the first call (`notebook`) loads the simulator and Spark.

- `cli/`: the command line; `experiment/`: from a file to the traces of its runs; `workloads/`: who asks for what
- `compiled/`: the second engine; `tell/`: runs in words; `capacity/`, `calibrate/`: the highest rate, what work costs
- `bench/`, `reproduce/`: against peers, and against the papers; `random_streams`, `machine`: of a run
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.checks import check_plugin, plugin_checks
    from sim.network import Network
    from sim.notebook import load, run


def _refuse_hidden() -> None:
    """A file beside a script is found before installed packages, also where it only happens to have their name."""
    ours = Path(__file__).resolve().parents[1]
    for name in ("analysis", "broker", "covering", "coverlay", "routing", "topk"):
        spec = sys.modules[name].__spec__ if name in sys.modules else find_spec(name)
        found = Path(spec.origin).resolve() if spec is not None and spec.origin is not None else ours
        if ours not in (found, *found.parents):
            said = f"Coverlay has a package of its own called {name!r}, which Python cannot find because of this file"
            raise ImportError(f"rename {found}: {said}", name=name, path=str(found))


_refuse_hidden()

__all__ = ["Network", "check_plugin", "load", "plugin_checks", "run"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        homes = {"Network": "network", "check_plugin": "checks", "plugin_checks": "checks"}
        return getattr(import_module(f"sim.{homes.get(name, 'notebook')}"), name)
    raise AttributeError(f"module 'sim' has no attribute {name!r}; there are: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
