"""What the first use of a part costs after installing: CPU seconds with an empty cache of compiled code.

Each part is used in a process of its own, with a cache of its own; imports are not counted, they are paid every time.
CPU seconds, not seconds: a busy machine lengthens them by half at most.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from sim.bench import Progress, Row, verdict

ENGINE_SECONDS, METHOD_SECONDS = 45.0, 20.0  # what numba needs as it is
ENTRIES = 2000  # enough for indexes to build what they build only when large
ENGINES: dict[str, Row] = {
    "simple": {"routing": {"strategy": "simple"}},
    "covering": {"routing": {"strategy": "covering"}},
    "zorder-emulated": {"routing": {"strategy": "covering"}, "covering": {"method": "zorder-emulated"}},
    "preloaded": {"routing": {"strategy": "covering"}, "arrivals": {"kind": "preloaded"}},
}


def parts(quick: bool) -> list[tuple[str, str]]:
    """(family, name) of everything that is measured."""
    import covering
    import topk

    found = [("engine", name) for name in (("simple", "covering") if quick else ENGINES)]
    if not quick:
        found += [("covering", name) for name in covering.methods()]
        found += [(kind, name) for kind in ("boxes", "predicates", "places") for name in topk.methods(kind)]
    return found


def first_use(quick: bool, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for family, name in parts(quick):
        progress(f"first use of {family} {name}")
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, "-m", "sim.bench.first_use", family, name]
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        rows.append({"case": f"first use, {family}: {name}", "engine": "compiler", "cpu_seconds": float(done.stdout)})
    return rows


def verdicts(rows: list[Row]) -> list[Row]:
    judged: list[Row] = []
    for row in rows:
        if "cpu_seconds" not in row:
            continue
        seconds, case = row["cpu_seconds"], str(row["case"])
        most = ENGINE_SECONDS if case.startswith("first use, engine") else METHOD_SECONDS
        judged.append(verdict(f"{case}: at most {most:g} s of CPU to compile", f"{seconds:.1f} s", seconds <= most))
    return judged


def use(family: str, name: str) -> float:
    """CPU seconds of using a part for the first time in this process."""
    families: dict[str, Callable[[str], Callable[[], object]]] = {"engine": _engine, "covering": _covering}
    prepared = families[family](name) if family in families else _matcher(family, name)
    before = time.process_time()
    prepared()
    return time.process_time() - before


def _engine(name: str) -> Callable[[], object]:
    from sim.compiled.engine import Engine  # noqa: F401 - imported before the clock starts
    from sim.experiment.plan import plan
    from sim.experiment.runner import simulate

    small = {"overlay": {"brokers": 5}, "workload": {"subscriptions": 50, "events": 5}, "run": {"engine": "compiled"}}
    run = plan({"name": "first use", **small, **ENGINES[name]}).runs[0]
    return lambda: simulate(run)


def _covering(name: str) -> Callable[[], object]:
    import covering

    rng = np.random.default_rng(1)
    boxes = np.sort(rng.uniform(0.0, 100.0, (ENTRIES, 2, 2)), axis=2)

    def used() -> None:
        index = covering.create(name, np.array([[0.0, 100.0]] * 2))
        index.add_many(range(ENTRIES - 1), boxes[:-1])
        index.add(ENTRIES, boxes[-1])
        index.find_cover(boxes[0])
        index.find_cover_many(boxes[:9])
        index.find_covered(boxes[0])
        index.remove(ENTRIES)

    return used


def _matcher(kind: str, name: str) -> Callable[[], object]:
    import topk
    from topk.places import from_located

    rng = np.random.default_rng(1)
    lo = rng.uniform(0.0, 90.0, (ENTRIES, 2))
    texts = [[(int(i % 5), ">=", float(i % 90), 1.0)] for i in range(ENTRIES)]
    if kind == "boxes":
        lo = lo[:, :1] if name == "canopy" else lo  # which indexes one attribute
        boxes = topk.Catalogue.from_boxes(lo, lo + 10.0, rng.uniform(size=ENTRIES))
        return lambda: topk.create(name, boxes).top(np.full(lo.shape[1], 50.0), 5)
    if kind == "predicates":
        catalogue = topk.Catalogue.from_predicates(texts)
        return lambda: topk.create(name, catalogue).top({0: 50.0, 1: 50.0}, 5)
    placed = from_located([(text, tuple(place), 0.5) for text, place in zip(texts, lo.tolist(), strict=True)])
    return lambda: topk.create(name, placed).top({0: 50.0}, (50.0, 50.0), 5)


if __name__ == "__main__":
    sys.stdout.write(f"{use(*sys.argv[1:]):.3f}\n")
