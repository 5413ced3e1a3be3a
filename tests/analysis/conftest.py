"""One analysed sweep that tests may read but not change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.report.summary import Summary
from analysis.spark.runs import open_run
from broker.trace import schema
from tests.analysis import handmade
from tests.analysis.twin import Twin


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Twin]:
    """A run written by hand, counted: counted(control=[{…}, …])."""
    monkeypatch.setattr(schema, "ROW_GROUP", 2)  # most runs have several
    return lambda **tables: Twin([open_run(handmade.write(tmp_path, "a", None, 1, **tables))])


EVIL = "</script><img src=x onerror=\"document.title='owned'\">&<!--"


def write_sweep(out: Path) -> None:
    """Simple routing and covering with ε 0 and 0.1, two seeds, with hostile names wherever a name may stand."""
    settings = (("simple", 0.0, 4), ("covering", 0.0, 1), ("covering", 0.1, 2))
    for strategy, epsilon, size in settings:
        for seed in (1, 2):
            point = {"routing.strategy": strategy, "covering.epsilon": epsilon}
            covered = None if strategy == "simple" else True
            handmade.write(
                out,
                f"{strategy}-{epsilon}-{seed}",
                point,
                seed,
                run=[
                    handmade.record(
                        point,
                        seed,
                        experiment=f"sweep {EVIL}",
                        control_messages=1,
                        event_messages=2,
                        deliveries=2,
                        trace_hash=f"{seed:02x}",
                        simple_entries=16 + seed - 1,  # what the runs with simple routing keep
                    )
                ],
                tables=handmade.final(size, size, size, size + seed - 1),
                brokers=[{**row, "name": f"{row['name']} {EVIL}"} for row in handmade.LINE_BROKERS],
                control=[
                    {"source": -1, "target": 0, "kind": "subscribe"},
                    {"source": 0, "target": 1, "kind": "subscribe"},
                ],
                decisions=[
                    {"outcome": "suppressed", "probes": 8 - int(70 * epsilon), "exact": covered},
                    {"outcome": "forwarded", "probes": 4, "exact": covered and epsilon > 0},
                ],
                publications=[
                    {"hop": 1, "source": 0, "target": 1, "sent": 1.0, "time": 4.0, "useful": True},
                    {"hop": 1, "source": 2, "target": 1, "sent": 1.0, "time": 5.0, "useful": False},
                ],
                deliveries=[{"latency": 1.0, "hops": 1}, {"latency": 3.0, "hops": 2}],
                operations=[{"kind": "subscribe", "time": 1.0, "finished": 3.0, "messages": 1}],
            )
    (out / "experiment.toml").write_text(f"name = 'sweep {EVIL}'\nquestion = \"Why {EVIL[:9]}?\"\n")


@pytest.fixture(scope="session")
def analysed(java: None, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """A small sweep, written, and aggregated once for all tests; in a folder whose name tries to be a pattern."""
    from analysis.aggregate import analyze

    out = tmp_path_factory.mktemp("sweeps") / "a [b] {c}*"
    write_sweep(out)
    return analyze(out, "local[2]")
