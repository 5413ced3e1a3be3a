"""Networks and files: all that was done as an experiment, one run of an experiment as a network, tables to play."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from broker.trace import trace_hash
from broker.trace.disk import replaced_file, writing
from coverlay import CoverlayError, quoted
from routing.overlay.graph import Overlay
from sim.experiment import plan as plans
from sim.experiment.agenda import Kind
from sim.experiment.build import inputs_of, overlay_of, workload_of
from sim.experiment.config import parse
from sim.experiment.dotted import remove
from sim.experiment.effects import idle
from sim.experiment.engines import advertisements_of, faults_of, run_simpy
from sim.experiment.faults import check_faults, read_faults
from sim.experiment.plain import plain
from sim.experiment.plan import EXPERIMENT, PlannedRun
from sim.experiment.toml_text import to_toml
from sim.network.around import NetworkAround
from sim.network.parts import Brokers, sections_of, settings_from, table_of
from sim.network.requests import Done, Published, Requests, faults_as_steps, rows_of, steps_of
from sim.plugins import load_used, used_by
from sim.random_streams import streams
from sim.tell.as_text import filter_in_words
from sim.workloads import Workload, load_workload
from sim.workloads.arrivals import schedule
from sim.workloads.tables import Table

OVERLAY, SUBSCRIPTIONS, EVENTS, FAULTS = "overlay.graphml", "subscriptions.parquet", "events.parquet", "faults.parquet"


# ── as an experiment ───────────────────────────────────────────────────────────────────────────────────────


def save(network: NetworkAround, folder: Path) -> Path:
    """Write it, once a run of what is to be written has the same trace."""
    _refuse_unsayable(network)
    with tempfile.TemporaryDirectory() as trial:
        written = _write(network, Path(trial))
        run = plans.load(str(Path(trial) / EXPERIMENT)).runs[0]
        experiment, stream = run.experiment, streams(run.seed)
        inputs = inputs_of(experiment, overlay_of(experiment, stream), workload_of(experiment, stream), stream)
        if trace_hash(run_simpy(inputs).tables) != network.trace_hash:
            raise _not_the_same(network)
        with writing(folder, "nothing was written"):
            folder.mkdir(parents=True, exist_ok=True)
            for name in written:
                with replaced_file(folder / name) as unfinished:
                    unfinished.write_bytes((Path(trial) / name).read_bytes())
    return folder / EXPERIMENT


def _refuse_unsayable(network: NetworkAround) -> None:
    if network.settings.routing.advertisements != "none":
        raise CoverlayError("this network has advertisements of its own, which an experiment file cannot say")
    if any(step.act == "preload" for step in network.requests.done):
        raise CoverlayError('subscriptions exist before time 0, which only arrivals.kind = "preloaded" can say')
    plugins = load_used({"plugins": network.settings.plugins})
    if local := used_by(network.settings, plugins)[1]:
        cure = "put it into a file and name that in plugins=[…]"
        raise CoverlayError(f"{quoted(local[0])} is registered in this session only, which a file cannot say; {cure}")


def _not_the_same(network: NetworkAround) -> CoverlayError:
    """Names the first act that came when messages of its moment had been processed: in a file, it precedes them."""
    tables = [network.trace(name)[["step", "time"]] for name in ("control", "publications")]
    steps, acts = pd.concat(tables), Counter[float]()
    for done in network.requests.done:
        before = steps[(steps["time"] == done.time) & (steps["step"] < done.after)]
        acts[done.time] += 1
        if len(before) >= acts[done.time]:
            act = f"{done.act.replace('join', 'subscribe')} at {done.time:g} ms"
            early = "had been processed already; in a process, let some time pass first: yield net.env.timeout(0.001)"
            return CoverlayError(f"a file cannot say {act}: messages of that moment {early}")
    why = "several things at one moment came in an order that files cannot have"
    return CoverlayError(f"a file cannot say what happened: {why}")


def _write(network: NetworkAround, folder: Path) -> list[str]:
    """Write the files; returns their names."""
    overlay, requests, name = network.overlay, network.requests, network.overlay.name
    nx.write_graphml(graph_of(overlay), folder / OVERLAY)
    workload = requests.workload()
    pq.write_table(_subscriptions(requests, name), folder / SUBSCRIPTIONS)
    data: dict[str, Any] = {"name": network.settings.name, "seeds": [network.seed]}
    data |= {"overlay": {"file": OVERLAY}, "schema": table_of(network.schema), **sections_of(network.settings)}
    data["workload"] = {"subscriptions_file": SUBSCRIPTIONS}
    if requests.events:
        pq.write_table(_events(requests, workload, name), folder / EVENTS)
        data["workload"]["events_file"] = EVENTS
    if requests.faults:
        pq.write_table(_faults(requests, name), folder / FAULTS)
        data["faults"] = {"file": FAULTS}
    if network.settings.plugins:
        data["plugins"] = [_copied(named, folder) for named in network.settings.plugins]
    if not requests.faults:  # fail-over has no effect, which files may not say
        for item in idle(parse({**data, "plugins": network.settings.plugins}, network.settings.name)):
            remove(data, item.key)
    (folder / EXPERIMENT).write_text(to_toml(data), encoding="utf-8")
    return [path.name for path in folder.iterdir()]


def _copied(plugin: str, folder: Path) -> str:
    """What the experiment calls a plug-in, whose file is copied beside it."""
    if plugin.endswith(".py"):
        (folder / Path(plugin).name).write_bytes(Path(plugin).read_bytes())
        return Path(plugin).name
    return plugin


def graph_of(overlay: Overlay) -> nx.Graph:
    """The overlay as a file has it: numbers as nodes, names as labels, latencies, places."""
    axes = ("longitude", "latitude") if overlay.geographic else ("x", "y")
    graph = nx.Graph()
    for broker, (x, y) in enumerate(overlay.spots.tolist()):
        graph.add_node(str(broker), label=overlay.name(broker), **dict(zip(axes, (x, y), strict=True)))
    for a, b, latency in overlay.graph.edges(data="latency"):
        graph.add_edge(str(a), str(b), latency=float(latency))
    return graph


def _subscriptions(requests: Requests, name: Callable[[int], str]) -> pa.Table:
    """A row per version. A change of rank keeps its id and names no end of the row before it."""
    changed = {row.changes.number for row in requests.rows if row.changes is not None}
    stays = [row.left == math.inf or row.number in changed for row in requests.rows]
    columns: dict[str, Any] = {
        "text": [filter_in_words(requests.schema, row.filter) for row in requests.rows],
        "broker": [name(row.broker) for row in requests.rows],
        "time": pa.array([row.came for row in requests.rows], pa.float64()),
        "until": pa.array([None if s else r.left for r, s in zip(requests.rows, stays, strict=True)], pa.float64()),
        "order": pa.array([row.came_order for row in requests.rows], pa.int64()),
        "until_order": pa.array([row.left_order for row in requests.rows], pa.int64()),
    }
    if changed or any(row.id for row in requests.rows):
        columns["id"] = _ids(requests)
    kinds = {name: pa.string() for name in ("text", "broker", "id")}
    return pa.table({name: pa.array(cells, kinds.get(name)) for name, cells in columns.items()})


def _ids(requests: Requests) -> list[str]:
    """Their ids; those without get one that no other has."""
    taken = {row.id for row in requests.rows}
    ids: list[str] = []
    for row in requests.rows:
        made = f"#{row.traced}"
        while made in taken:
            made += "#"
        ids.append(row.id or made)
    return ids


def _events(requests: Requests, workload: Workload, name: Callable[[int], str]) -> pa.Table:
    said = [requests.schema.decode(event.values) for event in requests.events]
    columns: dict[str, Any] = {"broker": [name(event.broker) for event in requests.events]}
    columns["time"] = [event.time for event in requests.events]
    columns["order"] = [event.order for event in requests.events]
    for place, attribute in enumerate(requests.schema.attributes):
        kind = pa.string() if attribute.kind in ("categorical", "text") else pa.float64()
        columns[attribute.name] = pa.array([values.get(attribute.name) for values in said], kind)
        if workload.event_weights is not None:
            columns[f"{attribute.name}_weight"] = workload.event_weights[:, place]
    return pa.table(columns)


def _faults(requests: Requests, name: Callable[[int], str]) -> pa.Table:
    faults = requests.faults
    return pa.table(
        {
            "time": [fault.time for fault in faults],
            "kind": [fault.kind for fault in faults],
            "broker": [name(fault.broker) for fault in faults],
            "neighbour": pa.array([name(f.neighbour) if f.neighbour >= 0 else None for f in faults], pa.string()),
            "until": pa.array([None if fault.until == math.inf else fault.until for fault in faults], pa.float64()),
            "state": pa.array(["kept" if fault.keep_state else None for fault in faults], pa.string()),
            "until_order": [fault.until_order for fault in faults],
        }
    )


# ── from an experiment ─────────────────────────────────────────────────────────────────────────────────────


N = TypeVar("N", bound=NetworkAround)


def load(made: Callable[..., N], file: str | Path, settings: Mapping[str, Any] | None, seed: int | None) -> N:
    if (Path(file) / EXPERIMENT).is_file():  # a folder in which a network was saved, or of results
        file = Path(file) / EXPERIMENT
    run, notes = _one_run(str(file), plain(settings or {}), seed)
    experiment, stream = run.experiment, streams(run.seed)
    overlay, workload = overlay_of(experiment, stream), workload_of(experiment, stream)
    inputs = inputs_of(experiment, overlay, workload, stream)
    live = settings_from(sections_of(experiment), experiment.name, plugins=experiment.plugins)
    notes = (*notes, *overlay.warnings, *workload.warnings)
    network = made(overlay, Brokers.of({}, overlay), live, workload.schema, run.seed, notes)
    rows = rows_of(network.requests, workload, inputs.timeline.homes(len(workload.lo)).tolist())
    if live.routing.advertisements != "none":
        offers = advertisements_of(workload, inputs.timeline)
        network.plan(Done(0.0, Kind.REQUEST, "advertise", (broker, broker, filter)) for broker, filter in offers)
    there = rows[: len(inputs.timeline.preloaded)]
    network.plan([Done(0.0, Kind.REQUEST, "preload", (there,))] if there else [])
    network.plan(faults_as_steps(faults_of(experiment, stream, network.reference, inputs.timeline)))
    network.plan(steps_of(rows, workload, inputs.timeline))
    return network


def _one_run(file: str, settings: Mapping[str, Any], seed: int | None) -> tuple[PlannedRun, tuple[str, ...]]:
    plan = plans.load(file, {**settings, **({} if seed is None else {"seeds": [seed]})})
    points = list({str(run.point): run.point for run in plan.runs}.values())
    if len(points) > 1:
        keys = ", ".join(key for key in points[0])
        raise CoverlayError(f"{file} has {len(points)} points; settings must leave one, a value for each of: {keys}")
    return plan.runs[0], plan.notes


# ── tables to play ─────────────────────────────────────────────────────────────────────────────────────────


def play(network: NetworkAround, subscriptions: Any, events: Any, faults: Any) -> None:
    """Plan what tables say; a mistake in one of them changes nothing."""
    asked = Table("subscriptions", {"text": [], "broker": []})
    if subscriptions is not None:
        asked = Table.of("subscriptions", subscriptions)
    offered = None if events is None else Table.of("events", events)
    named = isinstance(subscriptions, str | Path) or isinstance(events, str | Path)
    called = network.overlay.called if named else network.brokers.number
    tables = [asked] if offered is None else [asked, offered]
    timed = [_is_timed(table) for table in tables]
    workload = load_workload(asked, offered, table_of(network.schema), called)
    breaks = network.overlay.called if isinstance(faults, str | Path) else network.brokers.number
    failing = [] if faults is None else read_faults(faults, breaks)
    check_faults(network.overlay, failing)
    times = [*(workload.came if timed[0] and workload.came is not None else ())]
    times += [*(workload.times if workload.times is not None else ()), *(fault.time for fault in failing)]
    if times and min(times) < network.now:
        raise CoverlayError(f"a table says {min(times):g} ms, which is past: it is {network.now:g} ms now")
    network.plan(faults_as_steps(failing))
    _plan(network, workload, *timed)


def _is_timed(table: Table) -> bool:
    """Do the rows of a table have times? All of them must, or none."""
    if "broker" not in table.columns:
        raise CoverlayError(f"{table.path} has no column 'broker', and nobody else says where clients are")
    cells = table.columns.get("time", [])
    given = [row for row, cell in enumerate(cells) if cell is not None]
    if given and len(given) < len(cells):
        missing = next(row for row in range(len(cells)) if cells[row] is None)
        raise table.error(missing, "time", "the cell is empty, but other rows have a time; give one to all, or to none")
    if not given:
        table.columns.pop("time", None)
    return bool(given)


def _plan(network: NetworkAround, workload: Workload, timed: bool, events_timed: bool = False) -> None:
    assert workload.homes is not None
    rows = rows_of(network.requests, workload, workload.homes.tolist())
    count = len(workload.events)
    if timed or events_timed:
        some = workload if events_timed else replace(workload, events=workload.events[:0], publishers=None, times=None)
        none = np.full(len(rows), math.inf)
        some = some if timed else replace(some, came=np.zeros(len(rows)), left=none)
        timeline = schedule(
            "static", streams(network.seed), some, network.overlay.brokers, reranks=network.settings.network_wide
        )
        network.plan(step for step in steps_of(rows, some, timeline) if timed or step.act == "publish")
    if not timed:
        network.plan_at_rest(Done(0.0, Kind.REQUEST, "join", (row,)) for row in rows)
    if not events_timed and count:
        assert workload.publishers is not None
        network.plan_at_rest(_publications(workload))


def _publications(workload: Workload) -> Iterator[Done]:
    assert workload.publishers is not None
    for event, broker in enumerate(workload.publishers.tolist()):
        weights = None if workload.event_weights is None else workload.event_weights[event]
        yield Done(0.0, Kind.REQUEST, "publish", (Published(broker, workload.events[event], weights),))
