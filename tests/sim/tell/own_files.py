"""Small runs on own files, in which every message has its time: hub – leaf – far, one millisecond per link."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from sim.experiment.plan import load
from sim.experiment.sweep import run_sweep

NET = 'graph [ node [ id 0 label "hub" ] node [ id 1 label "leaf" ] node [ id 2 label "far" ] \
edge [ source 0 target 1 ] edge [ source 1 target 2 ] ]'


def ran(folder: Path, subscriptions: str, events: str = "", faults: str = "", **settings: Any) -> Path:
    """The output folder of a run, each in a folder of its own."""
    folder = Path(mkdtemp(dir=folder))
    (folder / "net.gml").write_text(NET)
    given: dict[str, Any] = {"overlay.file": str(folder / "net.gml")}
    given["overlay.latency"] = {"kind": "constant", "value": 1.0}
    files = ("workload.subscriptions_file", subscriptions), ("workload.events_file", events), ("faults.file", faults)
    for key, text in files:
        if text:
            path = folder / f"{key}.csv"
            path.write_text(text)
            given[key] = str(path)
    (folder / "mine.toml").write_text('name = "mine"\n')
    given |= {key.replace("__", "."): value for key, value in settings.items()}
    failures = run_sweep(load(str(folder / "mine.toml"), given), folder / "out").failures
    assert not failures, failures[0]
    return folder / "out"
