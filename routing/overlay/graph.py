"""The overlay: which brokers are linked, how long a link takes, and the tree that messages follow.

`build_overlay` generates one of the named kinds, `load_overlay` reads a file. Both end in `Overlay`, whose
`tree` is the graph itself where it has no cycle and otherwise its spanning tree of least total latency
(Kruskal; equal latencies go by broker numbers, so one graph has one tree).

A generated graph that comes out disconnected is drawn again, up to `DRAWS` times; keeping the largest
component instead would silently change the number of brokers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError, did_you_mean, quoted, unknown_name
from routing.options import accepted, reject_unknown, whole
from routing.overlay import layout
from routing.overlay.files import LATENCY_NAMES, GraphFile, read_graph, tidied
from routing.overlay.kinds import OVERLAYS
from routing.overlay.latency import (
    Constant,
    Distance,
    Given,
    GreatCircle,
    LatencyModel,
    globe_lengths,
    latency_model,
    plane_lengths,
)
from routing.overlay.map import Area, read_map

__all__ = ["OVERLAYS", "Overlay", "build_overlay", "load_overlay", "overlay_options", "spanning_tree"]

DRAWS = 100  # parameters under which fewer than one draw in a hundred connects are a mistake, not bad luck

GRAPH = "the graph"  # what messages call one that is no file
MOST_DIGITS = 18  # of a broker's number; Python refuses to parse thousands

Floats = NDArray[np.float64]
LatencySpec = LatencyModel | Mapping[str, Any] | float | None


@dataclass(frozen=True, eq=False)
class Overlay:
    """Brokers 0..n-1 (`name`, `x`, `y`), links (`latency` in ms), and the tree that is routed on."""

    graph: nx.Graph
    tree: nx.Graph
    kind: str
    warnings: tuple[str, ...] = ()
    geographic: bool = False  # x and y are longitude and latitude in degrees
    nodes: tuple[Hashable, ...] = ()  # what its graph itself calls the brokers

    @property
    def spots(self) -> Floats:
        """(n, 2) x and y of the brokers in their picture."""
        return np.array([(self.graph.nodes[b]["x"], self.graph.nodes[b]["y"]) for b in range(self.brokers)])

    @property
    def map(self) -> Floats | None:
        """(n, 2) latitude and longitude of the brokers, where they are on a map."""
        return np.ascontiguousarray(self.spots[:, ::-1]) if self.geographic else None

    @property
    def brokers(self) -> int:
        return int(self.graph.number_of_nodes())

    def name(self, broker: int) -> str:
        return str(self.graph.nodes[broker]["name"])

    def called(self, given: object) -> int:
        return broker_called(given, self._numbers)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self.name(broker): broker for broker in range(self.brokers)}

    def latency(self, broker: int, neighbour: int) -> float:
        return float(self.graph.edges[broker, neighbour]["latency"])

    def check(self) -> None:
        """Raise AssertionError unless all that the brokers rely on holds."""
        count = self.brokers
        assert list(self.graph) == list(self.tree) == list(range(count)), "brokers are 0..n-1 in order"
        assert nx.is_tree(self.tree), "messages follow a tree"
        assert all(self.graph.has_edge(u, v) for u, v in self.tree.edges), "the tree is part of the graph"
        for node in self.graph:
            assert set(self.graph.nodes[node]) == {"name", "x", "y"}, "every broker has a name and a place"
        assert len(self._numbers) == count, "names are distinct"
        for u, v, data in self.graph.edges(data=True):
            assert u != v, "no broker is its own neighbour"
            assert np.isfinite(data["latency"]), "latencies are finite"
            assert data["latency"] >= 0, "latencies are not negative"


def broker_called(given: object, numbers: Mapping[str, int]) -> int:
    """The broker of that name or number; where a name is also the number of another broker, the name counts."""
    named = numbers.get(str(given).strip())
    if named is not None:
        return named
    text = str(given).strip().removesuffix(".0")  # tables with an empty cell hold whole numbers as floats
    if text.isdecimal() and len(text) < MOST_DIGITS and int(text) < len(numbers):
        return int(text)
    allowed = f"brokers are called by number, 0 to {len(numbers) - 1}, or by name, e.g. {quoted(next(iter(numbers)))}"
    raise CoverlayError(f"there is no broker {quoted(given)}; {allowed}{did_you_mean(given, numbers)}")


def overlay_options(kind: str) -> tuple[str, ...]:
    """The options that `build_overlay` takes for this kind."""
    if kind not in OVERLAYS:
        raise unknown_name("overlay kind", kind, OVERLAYS)
    return accepted(OVERLAYS[kind])


def build_overlay(
    kind: str,
    brokers: int,
    rng: np.random.Generator,
    latency: LatencySpec = None,
    map: Mapping[str, Any] | None = None,
    floor: float = 0.0,
    **options: Any,
) -> Overlay:
    """Generate an overlay of exactly `brokers` brokers, on a `map` if given (map.py); `floor` as in `assemble`."""
    reject_unknown(f'overlay kind "{kind}"', options, overlay_options(kind))
    OVERLAYS.check_options("overlay", kind, options)
    brokers = whole("overlay.brokers", brokers, 1)
    # A stream each, so that another latency model or map leaves the graph as it is.
    structure, links, places = rng.spawn(3)
    for _ in range(DRAWS):
        graph = OVERLAYS[kind](brokers, structure, **options)
        if not isinstance(graph, nx.Graph) or graph.is_directed() or sorted(graph) != list(range(brokers)):
            made = f"{quoted(graph)}, not an undirected NetworkX graph of the brokers 0 to {brokers - 1}"
            raise CoverlayError(f'overlay kind "{kind}" made {made}')
        if nx.is_connected(graph):
            break
    else:
        raise CoverlayError(
            f'overlay kind "{kind}" with {brokers} brokers and {_said(options)} came out disconnected '
            f"{DRAWS} times; ask for more links"
        )
    area = None if map is None else read_map(map)
    timed = all("latency" in data for *_, data in graph.edges(data=True))
    model = _own_latencies(graph) if latency is None and timed and graph.edges else latency_model(latency)
    return assemble(GraphFile(graph), kind, model, links, area, places, floor)


def load_overlay(
    source: str | nx.Graph,
    rng: np.random.Generator,
    latency: LatencySpec = None,
    latency_attribute: str | None = None,
    map: Mapping[str, Any] | None = None,
    floor: float = 0.0,
) -> Overlay:
    """Any graph, or one in a GraphML, GML or edge-list file; what had to be changed is in `warnings`.

    Latencies come from `latency` if given, else from the link attribute `latency_attribute` (or one named
    `latency` or `delay`), else from coordinates, else they are 1 ms and a warning says so.
    """
    if latency is not None and latency_attribute is not None:
        raise CoverlayError("overlay.latency and overlay.latency_attribute exclude each other; give one of them")
    read, path = _read(source, latency is not None, latency_attribute), source if isinstance(source, str) else GRAPH
    warnings = list(read.warnings)
    if read.geographic and map is not None:
        raise CoverlayError(f"{path} gives latitude and longitude of its brokers, so overlay.map has nothing to place")
    model = latency_model(latency) if latency is not None else _own_model(read, map is not None)
    if latency is None and isinstance(model, Distance):
        rule = f"links take {model.per_unit:g} ms per unit of length; set overlay.latency to change that"
        warnings.append(f"{path} has x and y of its brokers and no latencies: {rule}")
    elif latency is None and isinstance(model, Constant):
        warnings.append(f"{path} has neither latencies nor coordinates: every link takes {model.value:g} ms")
    area = None if map is None else read_map(map)
    places = rng.spawn(1)[0] if area else None
    return assemble(replace(read, warnings=tuple(warnings)), "file", model, rng, area, places, floor, path)


def _read(source: str | nx.Graph, latency_given: bool, latency_attribute: str | None) -> GraphFile:
    names = () if latency_given else LATENCY_NAMES if latency_attribute is None else (latency_attribute,)
    return read_graph(source, names) if isinstance(source, str) else tidied(source, names, GRAPH, GRAPH)


def _own_model(read: GraphFile, on_map: bool) -> LatencyModel:
    """The latencies that a file gives its links itself."""
    links = sorted((min(u, v), max(u, v)) for u, v in read.graph.edges)
    if links and read.timed:
        return _own_latencies(read.graph)
    if read.geographic or on_map:
        return GreatCircle()
    return Distance() if read.placed else Constant()


def _own_latencies(graph: nx.Graph) -> LatencyModel:
    links = sorted((min(u, v), max(u, v)) for u, v in graph.edges)
    return Given(tuple(graph.edges[link]["latency"] for link in links))


def latency_origin(path: str, latency_attribute: str | None = None, on_map: bool = False) -> str:
    """Where the latencies of an overlay in a file come from, if no model of them is given."""
    model = _own_model(_read(path, False, latency_attribute), on_map)
    if isinstance(model, GreatCircle):
        return f"its kilometres, at {model.ms_per_km:g} ms each"
    if isinstance(model, Distance):
        return f"its x and y, at {model.per_unit:g} ms per unit"
    return f"{model.value:g} ms per link, the default" if isinstance(model, Constant) else "those in the file"


def assemble(
    read: GraphFile,
    kind: str,
    model: LatencyModel,
    rng: np.random.Generator,
    area: Area | None,
    places: np.random.Generator | None,
    floor: float,
    file: str | None = None,
) -> Overlay:
    """Complete a connected graph on 0..n-1: places, names, latencies, tree.

    `area` puts the brokers on a map, with random numbers from `places`. No link takes less than `floor` ms; a warning
    tells of links of a `file` that take no time at all.
    """
    graph, known, geographic, warnings = read.graph, read.placed, read.geographic, read.warnings
    count = graph.number_of_nodes()
    links = sorted((min(u, v), max(u, v)) for u, v in graph.edges)
    if all("x" in graph.nodes[node] and "y" in graph.nodes[node] for node in range(count)):
        spots = np.array([(graph.nodes[node]["x"], graph.nodes[node]["y"]) for node in range(count)], float)
    else:
        spots = layout.positions(graph)
    if area is not None and places is not None:
        spots, known, geographic = area.placed(spots, places), True, True
    if not geographic and isinstance(model, GreatCircle):
        raise CoverlayError('latency.kind is "great-circle", but the brokers are on no map; give overlay.map')
    lengths = (globe_lengths if geographic else plane_lengths)(spots, links) if known else np.full(len(links), np.nan)
    result = nx.Graph()
    for node, (x, y) in enumerate(spots.tolist()):
        result.add_node(node, name=str(graph.nodes[node].get("name", f"b{node}")), x=x, y=y)
    latencies = np.maximum(model.draw(lengths, rng), floor)
    for (u, v), value in zip(links, latencies.tolist(), strict=True):
        result.add_edge(u, v, latency=value)
    if file is not None and not latencies.all():
        zero = f"{np.count_nonzero(latencies == 0)} of {len(links)} links of {file} take 0 ms"
        warnings = (*warnings, f"{zero}; overlay.latency_floor = 0.1 would give each at least 0.1 ms")
    nodes = tuple(graph.nodes[node].get("key", node) for node in range(count))
    return Overlay(result, spanning_tree(result), kind, warnings, geographic, nodes)


def spanning_tree(graph: nx.Graph) -> nx.Graph:
    """The spanning tree of least latency; ties go to the smaller pair of brokers."""
    if graph.number_of_edges() == graph.number_of_nodes() - 1:
        return graph
    tree = nx.Graph()
    tree.add_nodes_from(graph.nodes(data=True))
    joined = nx.utils.UnionFind(graph)
    ordered = sorted((data["latency"], min(u, v), max(u, v)) for u, v, data in graph.edges(data=True))
    for value, u, v in ordered:
        if joined[u] != joined[v]:
            joined.union(u, v)
            tree.add_edge(u, v, latency=value)
    return tree


def _said(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in options.items()) or "default options"
