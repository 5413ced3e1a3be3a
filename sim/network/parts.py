"""From what users give to the parts of a network: the overlay, the schema, the settings as an experiment."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import networkx as nx
import pandas as pd
import pyarrow as pa

from broker.language import Event as Said
from broker.language import Operator, Predicate, Subscription, parse_event, parse_subscription
from broker.language.schema import PLACE, Schema
from coverlay import CoverlayError, quoted, unknown_name
from routing.overlay.graph import Overlay, load_overlay
from sim.experiment.build import overlay_of
from sim.experiment.config import Experiment, parse
from sim.experiment.dotted import MISSING, lookup, remove
from sim.experiment.effects import idle
from sim.experiment.plain import plain
from sim.experiment.start import guessed, of_attribute
from sim.plugins import load_used
from sim.random_streams import Stream
from sim.workloads.tables import Table

MOST_NAMED = 8  # brokers in a message


class Keys(TypedDict, total=False):
    """Settings of a network: sections of an experiment file as tables, and some of their keys by name."""

    overlay: Mapping[str, Any]
    links: Mapping[str, Any]
    broker: Mapping[str, Any]
    routing: Mapping[str, Any]
    covering: Mapping[str, Any]
    matching: Mapping[str, Any]
    run: Mapping[str, Any]
    latency: str | float | Mapping[str, Any]
    strategy: str
    mode: str
    cover: str
    advertisements: str
    trees: str
    root: Hashable
    failover: str
    epsilon: float
    semantics: str
    k: int
    scope: str


SECTIONS = ("overlay", "links", "broker", "routing", "covering", "matching", "run")
ROUTING = ("strategy", "mode", "cover", "advertisements", "trees", "root", "failover")
BARE = {
    **{name: f"routing.{name}" for name in ROUTING},
    "epsilon": "covering.epsilon",
    **{name: f"matching.{name}" for name in ("semantics", "k", "scope")},
}
BY_CALLS = {
    "workload": "subscribe, publish or play",
    "arrivals": "subscribe and publish with time=",
    "faults": "cut and crash, or play(faults=…)",
    "sweep": "sim.run(net, {key: [value, …]})",
    "case": "sim.run(net, …)",
    "seeds": "seed=",
    "engine": "sim.run(net, {'run.engine': …})",
    "run.engine": "sim.run(net, {'run.engine': …})",
    "run.samples": "net.tables, at any time",
}


def sections_from(keys: Mapping[str, Any], brokers: Brokers | None = None) -> dict[str, dict[str, Any]]:
    """Settings as sections of an experiment file. Without `brokers`, those that name some are left out."""
    data: dict[str, dict[str, Any]] = {}
    for key, value in keys.items():
        if key in BY_CALLS:
            raise CoverlayError(f"{key} is not a setting of a network; use {BY_CALLS[key]}")
        if key == "method":
            sections = 'covering={"method": …} or matching={"method": …}'
            raise CoverlayError(f"method is a key of two sections; give {sections}")
        if key in SECTIONS:
            if not isinstance(value, Mapping):
                raise CoverlayError(f"{key} is {quoted(value)}; it must be a table of keys, {{name: value, …}}")
            for inner in value:
                if instead := BY_CALLS.get(f"{key}.{inner}"):
                    raise CoverlayError(f"{key}.{inner} is not a setting of a network; use {instead}")
            data.setdefault(key, {}).update(plain(value))
        elif key == "latency":
            data.setdefault("overlay", {}).update(_latency(value))
        elif key in BARE:
            section, _, inner = BARE[key].partition(".")
            data.setdefault(section, {})[inner] = plain(value)
        else:
            raise unknown_name("key of a network", key, [*SECTIONS, "latency", *BARE])
    _number_brokers(data, brokers)
    return data


FAILING = {"faults": {"cut_fraction": 0.5}}  # anything may fail by calls, which settings cannot know


def settings_from(
    sections: Mapping[str, Mapping[str, Any]],
    name: str,
    graph: Any = None,
    chosen: Mapping[str, Any] | None = None,
    plugins: Sequence[str] = (),
) -> Experiment:
    """The settings as an experiment without workload, checked as those of a file are.

    What has no effect is a mistake; of settings that are changed, only if it is in the `chosen` sections.
    """
    data: dict[str, Any] = {"name": name, "plugins": list(plugins), **copy.deepcopy(dict(sections))}
    if isinstance(graph, Mapping):
        data["overlay"] = {**plain(graph), **data.get("overlay", {})}
    elif isinstance(graph, str | Path):
        data["overlay"] = {"file": str(graph), **data.get("overlay", {})}
    data["run"] = {**data.get("run", {}), "samples": 0}
    for item in idle(parse({**data, **FAILING}, name)):
        if item.key.startswith("faults."):
            continue
        of_graph = item.key == "overlay.latency_attribute" and isinstance(graph, nx.Graph)
        if item.misleads and not of_graph and (chosen is None or lookup(chosen, item.key) is not MISSING):
            raise CoverlayError(f"{name}: {item.key} = {quoted(item.value)} has no effect: {item.reason}")
        if not of_graph:
            remove(data, item.key)
    experiment = parse(data, name)
    if experiment.routing.rank != "none":
        why = "it needs the scores of all subscriptions before the first one comes"
        raise CoverlayError(f"routing.rank = {quoted(experiment.routing.rank)} is for experiments (sim.run): {why}")
    return experiment


def import_plugins(given: Any, keys: Mapping[str, Any]) -> list[str]:
    """Import plug-ins, and what installed packages announce for the names that are chosen; returns their names."""
    given = [given] if isinstance(given, str | Path) else given
    if not isinstance(given, Sequence):
        raise CoverlayError(f'plugins is {quoted(given)}; it must be a list of files and modules, ["mine.py"]')
    files = [str(Path(name).resolve()) if str(name).endswith(".py") else str(name) for name in given]
    load_used({"plugins": files, **keys})
    return files


def sections_of(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """The sections that were given; the overlay and the workload are no settings of a network any more."""
    given = experiment.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
    return {name: given[name] for name in SECTIONS if name in given and name != "overlay"}


def _latency(value: Any) -> dict[str, Any]:
    value = plain(value)
    if isinstance(value, str):
        return {"latency_attribute": value}
    if not isinstance(value, Mapping) and not is_number(value):
        forms = "ms for all links, the name of a link attribute, or a table of overlay.latency"
        raise CoverlayError(f"latency is {quoted(value)}; it must be {forms}")
    return {"latency": value if isinstance(value, Mapping) else {"kind": "constant", "value": float(value)}}


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_brokers(data: dict[str, dict[str, Any]], brokers: Brokers | None) -> None:
    for section, key in (("routing", "root"), ("covering", "epsilon_per_link")):
        if key not in data.get(section, {}):
            continue
        given = data[section].pop(key)
        if brokers is not None and key == "root":
            data[section][key] = brokers.number(given)
        elif brokers is not None:
            links = {(brokers.number(a), brokers.number(b)): epsilon for (a, b), epsilon in given.items()}
            data[section][key] = {f"{a}-{b}": epsilon for (a, b), epsilon in links.items()}


def overlay_from(graph: Any, experiment: Experiment, stream: Stream) -> Overlay:
    if isinstance(graph, nx.Graph):
        o = experiment.overlay
        given = o.latency if "latency" in o.model_fields_set else None
        return load_overlay(graph, stream("overlay"), given, o.latency_attribute, o.map, o.latency_floor)
    if isinstance(graph, str | Path | Mapping):
        return overlay_of(experiment, stream)
    raise CoverlayError(f"the graph is {quoted(graph)}; it must be a NetworkX graph, a file or an [overlay] table")


@dataclass(frozen=True)
class Brokers:
    """What the user calls the brokers."""

    nodes: tuple[Hashable, ...]

    @staticmethod
    def of(graph: Any, overlay: Overlay) -> Brokers:
        """The nodes of a graph; brokers of a file by name, of a generated overlay by number."""
        if isinstance(graph, nx.Graph):
            return Brokers(overlay.nodes)
        if overlay.kind == "file":
            return Brokers(tuple(map(overlay.name, range(overlay.brokers))))
        return Brokers(tuple(range(overlay.brokers)))

    @cached_property
    def _numbers(self) -> dict[Hashable, int]:
        return {node: number for number, node in enumerate(self.nodes)}

    def number(self, node: object) -> int:
        try:
            found = self._numbers.get(node)
        except TypeError:  # it is not hashable
            found = None
        if found is None:
            named = ", ".join(map(repr, self.nodes[:MOST_NAMED])) + (", …" if len(self.nodes) > MOST_NAMED else "")
            raise CoverlayError(f"there is no broker {quoted(node)} in this network; there are: {named}")
        return int(found)

    def __getitem__(self, number: int) -> Hashable:
        """The node of a number; None for a client."""
        return self.nodes[number] if number >= 0 else None


def schema_from(given: Any) -> tuple[Schema, tuple[str, ...]]:
    """The schema, and notes about what was guessed."""
    table, notes = schema_table(given)
    return Schema.from_table(table), notes


def schema_table(given: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A schema as in experiment files, from the forms that Python may give, and notes about what was guessed."""
    if isinstance(given, Mapping):
        return {str(name): _attribute(str(name), value) for name, value in given.items()}, ()
    if not isinstance(given, pd.DataFrame | pa.Table):
        raise CoverlayError(f"schema is {quoted(given)}; it must be a dict: attribute → (low, high), str, range, …")
    cells = Table.of("schema", given).columns
    table = {str(name): guessed(cells[name]) for name in cells if of_attribute(name)}
    said = ", ".join(f"{name} is {entry['kind']}" for name, entry in table.items())
    return table, (f"the schema was guessed from a frame: {said}; check kinds and bounds",)


def table_of(schema: Schema) -> dict[str, Any]:
    """The table of an experiment file that gives this schema."""
    table: dict[str, Any] = {}
    for attribute in schema.attributes:
        table[attribute.name] = {"kind": attribute.kind}
        if attribute.kind == "categorical":
            table[attribute.name]["categories"] = list(attribute.categories)
        elif attribute.kind != "text":
            table[attribute.name] |= {"low": attribute.low, "high": attribute.high}
    return table


def _attribute(name: str, given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(plain(given))
    if given is str:
        return {"kind": "text"}
    if isinstance(given, str) and given in PLACE:
        return {"kind": given}
    if isinstance(given, range) and given.step == 1:
        return {"kind": "integer", "low": given.start, "high": given.stop - 1}
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given):
        if all(isinstance(one, str) for one in given):
            return {"kind": "categorical", "categories": list(given)}
        if len(given) == 2 and isinstance(given, tuple):
            low, high = plain(given)
            return {"kind": "continuous", "low": low, "high": high}
    forms = '(low, high), range(low, high + 1), a list of texts, str, "latitude", "longitude" or a table'
    raise CoverlayError(f"schema: {name} is {quoted(given)}; it must be {forms}")


def subscription_from(where: Any, score: float | None) -> Subscription:
    """A subscription in the language, or as a mapping: attribute → value, (low, high) or set of values."""
    if isinstance(where, str):
        said = parse_subscription(where)
    elif isinstance(where, Mapping):
        said = Subscription(tuple(p for name, wanted in where.items() for p in _predicates(str(name), wanted)))
    else:
        raise CoverlayError(f"where is {quoted(where)}; it must be a text like 'price < 50', or a mapping")
    if score is None:
        return said
    if not is_number(plain(score)):
        raise CoverlayError(f"score is {quoted(score)}; it must be a number")
    return Subscription(said.predicates, score=float(score), near=said.near)


def _predicates(name: str, wanted: Any) -> list[Predicate]:
    if isinstance(wanted, set | frozenset | list):
        values = plain(list(wanted))
        if not (all(map(is_number, values)) or all(isinstance(value, str) for value in values)):
            raise CoverlayError(f"{name} is {quoted(wanted)}; a set has numbers, or texts")
        return [Predicate(name, Operator.IN, tuple(sorted(values)))]
    if not isinstance(wanted, tuple):
        return [Predicate(name, Operator.EQUAL, (plain(wanted),))]
    if len(wanted) != 2:
        raise CoverlayError(f"{name} is {quoted(wanted)}; bounds are (low, high), None where there is none")
    low, high = plain(wanted)
    if low is not None and high is not None:
        return [Predicate(name, Operator.BETWEEN, (low, high))]
    sides = (Operator.AT_LEAST, low), (Operator.AT_MOST, high)
    return [Predicate(name, operator, (bound,)) for operator, bound in sides if bound is not None]


def event_from(given: Any, weights: Mapping[str, float] | None) -> Said:
    """An event in the language, or as a mapping of values."""
    if isinstance(given, str):
        said = parse_event(given)
    elif isinstance(given, Mapping):
        said = Said({str(name): value for name, value in plain(given).items() if value is not None})
    else:
        raise CoverlayError(f"event is {quoted(given)}; it must be a mapping like {{'price': 9.5}}, or a text")
    if weights is None:
        return said
    if not isinstance(weights, Mapping):
        raise CoverlayError(f"weights are {quoted(weights)}; they must be a mapping like {{'price': 2.0}}")
    for name, weight in plain(weights).items():
        if not is_number(weight) or not 0 <= weight < math.inf:
            raise CoverlayError(f"the weight of {name} is {quoted(weight)}; it must be a finite number of at least 0")
    return Said(said.values, said.at, {**said.weights, **{str(k): float(v) for k, v in weights.items()}})
