"""Python objects in an experiment: graphs and frames are written as files, so that everything from there on is files;
functions have names; dotted keys and lists of values have their places.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from broker.trace.disk import replaced_file, writing
from coverlay import CoverlayError, file_of, is_same, quoted
from sim.experiment.changes import changed
from sim.experiment.kinds import sections
from sim.experiment.plain import plain
from sim.workloads import WORKLOADS

NODES = ("broker", "neighbour")  # columns that name brokers
GRAPHS = "overlay.file"  # the key that takes graphs
KIND = "workload.kind"  # the key that takes a function


def from_python(data: Mapping[str, Any]) -> dict[str, Any]:
    """An experiment without objects as a file has it: dotted keys in their sections, lists of values in [sweep]."""
    whole = {key: value for key, value in data.items() if "." not in key}
    given = {key: value for key, value in data.items() if "." in key}
    for name in sections():
        if isinstance(whole.get(name), Mapping):
            lists = dict(_lists(whole[name], name))
            given |= lists
            whole[name] = _without(whole[name], name, lists)
    return changed(whole, given).data if given else whole


def _lists(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = f"{prefix}.{name}"
        if isinstance(value, Mapping):
            yield from _lists(value, key)
        elif isinstance(value, list):
            yield key, value


def _without(table: Mapping[str, Any], prefix: str, keys: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in table.items() if f"{prefix}.{name}" not in keys}
    return {
        name: _without(value, f"{prefix}.{name}", keys) if isinstance(value, Mapping) else value
        for name, value in kept.items()
    }


def as_files(value: Any, folder: Path, key: str = "") -> Any:
    """A value with the paths of files for the graphs and frames in it, and plain values for those of numpy.

    A dict of graphs becomes a list of files to sweep. Files are in a folder by their content, so that none is replaced.
    """
    name = key.rsplit(".", 1)[-1] or "input"
    if isinstance(value, nx.Graph):
        return _written(folder, f"{name}.graphml", lambda file: nx.write_graphml(_plain_graph(value), file))
    if isinstance(value, pd.DataFrame | pa.Table):
        return _written(folder, f"{name}.parquet", lambda file: pq.write_table(_plain_frame(value), file))
    if isinstance(value, Mapping) and key.endswith(GRAPHS) and all(isinstance(g, nx.Graph) for g in value.values()):
        return [as_files(graph, folder, _as_name(called)) for called, graph in value.items()]
    if isinstance(value, Mapping):
        return {of: as_files(one, folder, f"{key}.{of}".lstrip(".")) for of, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_files(one, folder, key if callable(one) else f"{key}-{place}") for place, one in enumerate(value)]
    if callable(value) and key.endswith(KIND):
        return _workload(value)
    if callable(value):
        raise CoverlayError(f"{key} is {quoted(value)}; only {KIND} takes a function, docs/plugins.md has other kinds")
    return plain(value)


def _as_name(called: object) -> str:
    return str(called).replace("/", "-").replace(".", "-")


def plugins_of(value: Any) -> Iterator[str]:
    """The files and modules of the functions in an experiment, which every process must import.

    What a script or a notebook wrote itself is in none.
    """
    if isinstance(value, Mapping):
        for one in value.values():
            yield from plugins_of(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from plugins_of(one)
    elif callable(value) and value.__module__ != "__main__" and file_of(value).is_file():
        yield value.__module__ if "." in value.__module__ else str(file_of(value).resolve())


def _workload(function: Callable[..., Any]) -> str:
    """The name of a workload that is a registered function."""
    called = getattr(function, "__name__", quoted(function))
    name = called.replace("_", "-")
    if not is_same(function, WORKLOADS.written.get(name)):
        raise CoverlayError(f"{KIND} is the function {called}; write @sim.workloads.register(schema={{…}}) before it")
    return name


def _written(folder: Path, name: str, write: Callable[[BytesIO], object]) -> str:
    content = BytesIO()
    write(content)
    path = folder / hashlib.blake2b(content.getvalue(), digest_size=6).hexdigest() / name
    with writing(path, "nothing was run"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(path) as unfinished:
            unfinished.write_bytes(content.getvalue())
    return str(path.resolve())


def _plain_graph(graph: nx.Graph) -> nx.Graph:
    """The graph with texts as nodes, and only attributes that a file can have; names are the nodes as text."""
    texts = [str(node) for node in graph]
    distinct = max(Counter(texts).values(), default=0) < 2
    ids = dict(zip(graph, texts if distinct else (f"n{place}" for place in range(len(texts))), strict=True))
    result = graph.__class__()
    for node, data in graph.nodes(data=True):
        result.add_node(ids[node], **{**_simple(data), "label": str(node)})
    for a, b, data in graph.edges(data=True):
        result.add_edge(ids[a], ids[b], **_simple(data))
    return result


def _simple(data: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in data.items() if isinstance(value, int | float | str)}


def _plain_frame(frame: pd.DataFrame | pa.Table) -> pa.Table:
    """The frame with brokers called by name."""
    if isinstance(frame, pa.Table):
        return frame
    frame = frame.copy()
    for column in [column for column in NODES if column in frame.columns]:
        frame[column] = [None if node is None or node != node else str(node) for node in frame[column]]  # NaN: none
    return pa.Table.from_pandas(frame, preserve_index=False)
