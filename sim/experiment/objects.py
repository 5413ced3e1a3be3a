"""Graphs and frames in place of files: written beside the results, so that everything from there on is files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from broker.trace.disk import replaced_file, writing

NODES = ("broker", "neighbour")  # columns that name brokers


def as_files(value: Any, folder: Path, name: str = "input") -> Any:
    """A value with the paths of files for the graphs and frames in it. A dict of graphs is a list of files to sweep."""
    if isinstance(value, nx.Graph):
        return _written(folder / f"{name}.graphml", lambda path: nx.write_graphml(_plain_graph(value), path))
    if isinstance(value, pd.DataFrame | pa.Table):
        return _written(folder / f"{name}.parquet", lambda path: pq.write_table(_plain_frame(value), path))
    if isinstance(value, Mapping):
        if value and all(isinstance(one, nx.Graph) for one in value.values()):
            return [as_files(graph, folder, str(key)) for key, graph in value.items()]
        return {key: as_files(one, folder, str(key)) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(as_files(one, folder, f"{name}-{place}") for place, one in enumerate(value))
    return value


def _written(path: Path, write: Any) -> str:
    with writing(path, "nothing was run"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_file(path) as unfinished:
            write(unfinished)
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
