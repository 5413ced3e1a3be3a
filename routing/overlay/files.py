"""Overlays from files: GraphML, GML and edge lists, as they come.

Real files are untidy (the Topology Zoo has parallel links, brokers without a place and islands), so a reader
tidies and says what it did: parallel links collapse to the fastest, self-loops are left out, arrows become two-way
links, the largest component stays, brokers without coordinates are put among their neighbours, and labels that several
brokers share are made distinct: None, None (2), None (3).

An edge list has one link per line, `a b [latency]`, separated by blanks or commas, `#` starts a comment; the
attribute dictionaries that `networkx.write_edgelist` appends are understood too.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx

from coverlay import CoverlayError, quoted

LATENCY_NAMES = ("latency", "delay")  # link attributes looked for when the user names none
# Degrees first: where a file has them, x and y are where a program drew the brokers.
COORDINATES = (("longitude", "latitude"), ("lon", "lat"), ("lng", "lat"), ("long", "lat"), ("x", "y"))
HEADERS = ({"source", "target"}, {"from", "to"})  # first lines that name the columns
LISTED = 5  # names shown in a warning before it says how many more


@dataclass(frozen=True)
class GraphFile:
    """A connected graph on 0..n-1 with `name`, perhaps `x`, `y`; links perhaps with `latency`."""

    graph: nx.Graph
    placed: bool = True  # every broker has x and y, or gets them from its kind: lengths of links mean something
    geographic: bool = False  # which are longitude and latitude in degrees
    timed: bool = False  # every link has a latency
    warnings: tuple[str, ...] = ()


def read_graph(path: str, latency_names: tuple[str, ...]) -> GraphFile:
    """Read and tidy the graph in `path`; the link attributes `latency_names` give milliseconds."""
    return tidied(_raw(path), latency_names, path, f"overlay.file {path!r}", labelled=True)


def tidied(raw: nx.Graph, latency_names: tuple[str, ...], called: str, where: str, labelled: bool = False) -> GraphFile:
    """A connected graph of brokers from any graph, which stays as it is.

    Brokers are named as their nodes are, or by their attribute `label` if they are `labelled`. Warnings and errors say
    what the graph is `called` and `where` it is.
    """
    if raw.number_of_nodes() == 0:
        raise CoverlayError(f"{where} holds no brokers")
    warnings: list[str] = []
    simple, timed = _collapse(raw, called, where, latency_names, warnings)
    connected = _largest_component(simple, called, warnings)
    graph = nx.convert_node_labels_to_integers(_ordered(connected), ordering="default", label_attribute="key")
    _name(graph, called, labelled, warnings)
    placed, geographic = _locate(graph, called, where, warnings)
    return GraphFile(graph, placed, geographic, timed, tuple(warnings))


def _raw(path: str) -> nx.MultiGraph:
    file = Path(path)
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise CoverlayError(f"overlay.file {path!r} ends in none of: {', '.join(sorted(READERS))}")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CoverlayError(f"overlay.file {path!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CoverlayError(f"overlay.file {path!r} is not UTF-8 text") from None
    return reader(text, path)


def _read_graphml(text: str, path: str) -> nx.MultiGraph:
    # NetworkX raises nearly anything on a broken file, from ParseError to KeyError.
    try:
        return nx.parse_graphml(text, force_multigraph=True)
    except Exception as error:
        raise CoverlayError(f"overlay.file {path!r} is not GraphML that can be read: {error}") from None


def _read_gml(text: str, path: str) -> nx.MultiGraph:
    # Most files with parallel links do not declare them, and NetworkX then refuses the file.
    if not re.search(r"\bmultigraph\s+1\b", text):
        text = re.sub(r"\bgraph\s*\[", "graph [\n multigraph 1\n", text, count=1)
    try:
        graph = nx.parse_gml(text.splitlines(), label="id")
    except Exception as error:
        raise CoverlayError(f"overlay.file {path!r} is not GML that can be read: {error}") from None
    for node, data in graph.nodes(data=True):
        graphics = data.get("graphics", {})  # where GML editors keep x and y
        if not isinstance(graphics, dict):
            said = f"node {quoted(node)} has graphics {quoted(graphics)}"
            raise CoverlayError(f"overlay.file {path!r}: {said}; it must be one table, [ x … y … ]")
        data.update(graphics)
    return graph


def _read_edges(text: str, path: str) -> nx.MultiGraph:
    graph = nx.MultiGraph()
    for where, fields, data in _edge_lines(text, path):
        if len(fields) not in (2, 3):
            raise CoverlayError(f"{where}: {quoted(' '.join(fields))} is not a link: broker broker [latency]")
        if len(fields) == 3:
            data["latency"] = _milliseconds(fields[2], where)
        link = graph.add_edge(fields[0], fields[1])
        graph.edges[fields[0], fields[1], link].update(data)  # its names may be those of add_edge's own arguments
    return graph


def _edge_lines(text: str, path: str) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    first = True
    for count, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].strip()
        if not content:
            continue
        where = f"overlay.file {path!r}, line {count}"
        content, brace, attributes = content.partition("{")
        fields = [field for field in re.split(r"[,;\s]+", content) if field]
        if first and {field.lower() for field in fields[:2]} in HEADERS:
            first = False
            continue
        first = False
        yield where, fields, _dictionary(brace + attributes, where) if brace else {}


def _dictionary(text: str, where: str) -> dict[str, Any]:
    try:
        data = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):  # of keys that are lists, or deep nesting
        data = None
    if not isinstance(data, dict):
        raise CoverlayError(f"{where}: {quoted(text)} is not a dictionary of link attributes")
    return {str(key): value for key, value in data.items()}


def _milliseconds(value: object, where: str) -> float:
    result = _finite(value)
    if not result >= 0:
        raise CoverlayError(f"{where}: latency {quoted(value)} is not a number of milliseconds of at least 0")
    return result


def _collapse(
    raw: nx.Graph, path: str, where: str, names: tuple[str, ...], warnings: list[str]
) -> tuple[nx.Graph, bool]:
    """One link per pair, the fastest; the flag says whether links carry latencies."""
    if raw.is_directed() and raw.number_of_edges():
        warnings.append(f"{path} has directed links: each is used in both directions")
    simple = nx.Graph()
    simple.add_nodes_from(raw.nodes(data=True))
    loops, seen, untimed = 0, set(), []
    for u, v, data in raw.edges(data=True):
        # The two arrows of one link are not parallel links; two arrows the same way are.
        arrow = (u, v) if raw.is_directed() else frozenset((u, v))
        if u == v:
            loops += 1
            continue
        seen.add(arrow)
        found = next((data[name] for name in names if name in data), None)
        if found is None:
            untimed.append((u, v))
            value = math.inf
        else:
            value = _milliseconds(found, f"{where}, link {u}–{v}")
        if not simple.has_edge(u, v) or value < simple.edges[u, v]["latency"]:
            simple.add_edge(u, v, latency=value)
    parallel = raw.number_of_edges() - loops - len(seen)
    if parallel:
        warnings.append(f"{path} has {_count(parallel, 'parallel link')}: the fastest of each pair was kept")
    if loops:
        warnings.append(f"{path} has {_count(loops, 'link')} from a broker to itself: left out")
    links = raw.number_of_edges() - loops
    asked = bool(names) and names != LATENCY_NAMES
    if untimed and (len(untimed) < links or asked):
        u, v = untimed[0]
        raise CoverlayError(
            f"{where}: link {u}–{v} has no attribute {' or '.join(map(repr, names))}; "
            "give it to every link or name another with overlay.latency_attribute"
        )
    return simple, not untimed


def _largest_component(graph: nx.Graph, path: str, warnings: list[str]) -> nx.Graph:
    # The sort is stable: among equals the first in the file wins.
    components = sorted(nx.connected_components(graph), key=len, reverse=True)
    if len(components) == 1:
        return graph
    kept = components[0]
    warnings.append(
        f"{path} has {len(components)} components: the largest was kept, {len(kept)} of {len(graph)} brokers"
    )
    # Not `graph.subgraph`: that iterates in set order, which for texts differs from process to process.
    graph.remove_nodes_from([node for node in graph if node not in kept])
    return graph


def _ordered(graph: nx.Graph) -> nx.Graph:
    """Brokers in the order of the file, or by number where all of them are numbers."""
    nodes = list(graph)
    if all(re.fullmatch(r"-?\d{1,18}", str(node)) for node in nodes):
        nodes.sort(key=lambda node: int(str(node)))
    ordered = nx.Graph()
    ordered.add_nodes_from((node, graph.nodes[node]) for node in nodes)
    ordered.add_edges_from((u, v, dict(graph.edges[u, v])) for u, v in graph.edges)
    return ordered


def _name(graph: nx.Graph, path: str, labelled: bool, warnings: list[str]) -> None:
    """Labels become names, or the graph's own nodes where there is no label; repeated ones are made distinct."""
    given = [
        (node, data["label"] if labelled and data.get("label") not in (None, "") else data["key"])
        for node, data in graph.nodes.items()
    ]
    labels = [str(label).strip() or str(node) for node, label in given]
    names = distinct(labels)
    changed = [name for name, label in zip(names, labels, strict=True) if name != label]
    if changed:
        warnings.append(f"{path} has labels that several brokers share; renamed: {_listed(changed)}")
    for (_, data), name in zip(graph.nodes(data=True), names, strict=True):
        data["name"] = name


def distinct(labels: list[str]) -> list[str]:
    """The labels, the second of equal ones with " (2)" and so on; no broker gets a name that the file gives another."""
    taken, names = set(labels), []
    seen: dict[str, int] = {}
    for label in labels:
        name = label
        if label in seen:
            while name in taken:
                seen[label] += 1
                name = f"{label} ({seen[label]})"
        seen.setdefault(label, 1)
        taken.add(name)
        names.append(name)
    return names


def _locate(graph: nx.Graph, path: str, where: str, warnings: list[str]) -> tuple[bool, bool]:
    """Set x and y of all brokers, or of none; returns (placed, geographic)."""
    attributes = [{str(key).lower(): value for key, value in graph.nodes[node].items()} for node in graph]
    for node in graph:
        for axis in ("x", "y"):
            graph.nodes[node].pop(axis, None)
    for horizontal, vertical in COORDINATES:
        known: dict[int, tuple[float, float]] = {}
        for node, data in enumerate(attributes):
            place = (_finite(data.get(horizontal)), _finite(data.get(vertical)))
            if not any(map(math.isnan, place)):
                known[node] = place
        if horizontal != "x":
            _refuse_beyond_the_globe(graph, known, where)
        if len(known) < len(attributes) and len(set(known.values())) == 1:
            warnings.append(f"{path} has coordinates of one place only, which give links no length: they are not used")
        elif known:
            if len(known) < len(attributes):
                missing = [graph.nodes[node]["name"] for node in graph if node not in known]
                warnings.append(
                    f"{path} gives {len(missing)} of {len(attributes)} brokers no coordinates, or half of them: "
                    f"{_listed(missing)} were placed among their neighbours"
                )
                _spread(graph, known)
            for node, (x, y) in known.items():
                graph.nodes[node].update(x=x, y=y)
            return True, horizontal != "x"
    return False, False


def _refuse_beyond_the_globe(graph: nx.Graph, known: dict[int, tuple[float, float]], where: str) -> None:
    for node, (longitude, latitude) in known.items():
        if abs(latitude) > 90 or abs(longitude) > 180:
            place = f"{quoted(graph.nodes[node]['name'])} is at latitude {latitude:g}, longitude {longitude:g}"
            raise CoverlayError(f"{where}: broker {place}; degrees go from -90 to 90 and from -180 to 180")


def _finite(value: object) -> float:
    """The number that a value is or spells; NaN if it is none, or not finite."""
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return result if math.isfinite(result) else math.nan


def _spread(graph: nx.Graph, known: dict[int, tuple[float, float]]) -> None:
    """Give every unplaced broker the mean place of its placed neighbours, ring by ring.

    Ends because the graph is connected and at least one broker has a place.
    """
    while len(known) < len(graph):
        ring = {}
        for node in graph:
            near = [known[other] for other in sorted(graph[node]) if other in known]
            if node not in known and near:
                ring[node] = (sum(x for x, _ in near) / len(near), sum(y for _, y in near) / len(near))
        known.update(ring)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _listed(names: list[str]) -> str:
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more} more" if more > 0 else "")


READERS: dict[str, Callable[[str, str], nx.MultiGraph]] = {
    ".graphml": _read_graphml,
    ".gml": _read_gml,
    **dict.fromkeys((".edgelist", ".edges", ".csv", ".tsv", ".txt"), _read_edges),
}
