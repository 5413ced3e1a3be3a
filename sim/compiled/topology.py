"""The overlay as flat arrays: wires, routes, and who is told by whom (see records.py for the words)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broker.settings import Settings
from covering.curve.emulated import EmulatedIndex
from routing.overlay.graph import Overlay
from routing.overlay.trees import Tree, links_of, reaches, trees_of
from routing.strategies import strategy
from sim.compiled.covers_emulated import asked_share
from sim.compiled.records import EVERYTHING, NEAR, NOTHING, ROUTE, WIRE

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Topology:
    """A part, a broker in one tree, has the number broker × number of trees + place of the tree."""

    trees: list[Tree]
    links: list[tuple[int, int]]
    wires: NDArray[Any]  # in the order of broker.Network: by source, then target
    routes: NDArray[Any]  # and their sieves
    learn_first: Ints  # per part: routes that lead on from it
    learn: Ints
    near_first: Ints  # per part: its neighbours
    near: NDArray[Any]  # who it is, the wire to it, the route from it (or EVERYTHING or NOTHING), its part


def topology_of(overlay: Overlay, settings: Settings) -> Topology:
    trees = list(trees_of(overlay, settings.trees, settings.root).values())
    links, place = links_of(trees), {tree.name: at for at, tree in enumerate(trees)}
    ends = sorted([*links, *((b, a) for a, b in links)])
    wires = np.zeros(len(ends), WIRE)
    wires["source"], wires["target"] = np.array(ends, np.int64).reshape(-1, 2).T
    wires["latency"] = [overlay.latency(a, b) for a, b in ends]
    wires["head"] = wires["tail"] = -1
    wire_of = {pair: wire for wire, pair in enumerate(ends)}
    sends_to = strategy(settings.strategy).sends_to
    # Who learns, and who gets everything, per part, in the order in which brokers go through them.
    parts = [(broker, tree) for broker in range(overlay.brokers) for tree in trees]
    told = [reaches(tree, broker, sends_to) for broker, tree in parts]
    rows: list[tuple[Any, ...]] = []
    learn: list[int] = []
    route_of: dict[tuple[int, int, int], int] = {}
    for (broker, tree), (learners, _) in zip(parts, told, strict=True):
        for target in learners:
            epsilon = settings.routing_on(tree, broker, target).epsilon
            route_of[tree.name, broker, target] = len(rows)
            learn.append(len(rows))
            part = target * len(trees) + place[tree.name]
            wire = wire_of[broker, target]
            share = asked_share(epsilon) if settings.routing.method == EmulatedIndex.name else (1, 0)
            rows.append((broker, target, wire, tree.name, part, epsilon, *share))
    routes = np.zeros(len(rows), ROUTE)
    columns = ("source", "target", "wire", "tree", "part", "epsilon", "numerator", "shift")
    for name, column in zip(columns, zip(*rows, strict=True), strict=False):  # without rows there are no columns
        routes[name] = column
    if settings.mode == "prune":
        sieves = routes.copy()
        sieves["epsilon"], sieves["numerator"], sieves["shift"] = 0.0, 1, 0
        routes = np.concatenate([routes, sieves])
    near: list[tuple[int, int, int, int]] = []
    near_first = [0]
    for (broker, tree), (_, silent) in zip(parts, told, strict=True):
        for other in tree.neighbours(broker):
            incoming = EVERYTHING if other in silent else route_of.get((tree.name, other, broker), NOTHING)
            near.append((other, wire_of[broker, other], incoming, other * len(trees) + place[tree.name]))
        near_first.append(len(near))
    learn_first = np.concatenate([[0], np.cumsum([len(learners) for learners, _ in told])]).astype(np.int64)
    first, edges = np.array(near_first, np.int64), np.array(near, NEAR)
    return Topology(trees, links, wires, routes, learn_first, np.array(learn, np.int64), first, edges)
