"""A run of the compiled engine: all arrays, grown when the kernel asks for room, and the loop that drives it.

    world = World(overlay, settings, workload, timeline, samples, stream)
    world.run()
    tables = tables_of(world)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from broker.network import Settings
from broker.transport import SERVICE_OPTIONS
from covering.bank import EMULATED, KDTREE, PACKED, SCAN, Bank
from covering.bank_emulated import asked_share
from covering.ids import _put_range
from covering.keys import Quantiser, greedy_bits
from covering.memory import Memory, block_for, column_in, small_pages
from routing.overlay import Overlay
from sim.compiled import arrays as a
from sim.compiled import counters as c
from sim.compiled import records as r
from sim.compiled.advance import advance
from sim.compiled.bulk import load, subscriptions_behind
from sim.compiled.ledger import decide_linked
from sim.compiled.process import control_message, publication
from sim.compiled.room import lacks_room_linked
from sim.compiled.topology import Topology, topology_of
from sim.streams import Stream
from sim.workloads import Workload
from sim.workloads.arrivals import PUBLISH, SUBSCRIBE, Timeline

FIRST_ROOM = 1024  # rows of an array to begin with
BLOCK_ROWS = 1 << 18  # of the trace, at most: few chunks; what is not written of the last one takes no memory
_DRAWN_AHEAD = 256  # random numbers per stream that are drawn at once
_SERVICES = {"none": r.NO_SERVICE, "constant": r.CONSTANT, "exponential": r.EXPONENTIAL, "linear": r.LINEAR}
_FIRST_KIND = {"scan": SCAN, "packed": PACKED, "kdtree": KDTREE, "auto": KDTREE, "zorder-emulated": EMULATED}
_STRATEGIES = {
    "flooding": r.SIMPLE,
    "simple": r.SIMPLE,
    "identity": r.IDENTITY,
    "covering": r.COVERING,
    "hierarchical": r.COVERING,
}
_GROWING = {a.PUBLICATIONS: c.PUBLICATIONS, a.DELIVERIES: c.DELIVERIES, a.FAULTS: c.FAULTS, a.NODES: c.NODES,
            a.MESSAGES: c.IN_FLIGHT, a.HEAP: c.HEAP}  # fmt: skip
_ROW_DTYPES = {a.PUBLICATIONS: r.PUBLICATION_ROW, a.DELIVERIES: r.DELIVERY_ROW, a.FAULTS: r.FAULT_ROW,
               a.NODES: r.NODE, a.STANDINGS: r.STANDING, a.MESSAGES: r.MESSAGE, a.HEAP: r.CALL}  # fmt: skip
_BLOCKS = {a.CONTROL: (c.CONTROL, r.CONTROL_ROW), a.DECISIONS: (c.DECISIONS, r.DECISION_ROW),
           a.SEARCHES: (c.DECISIONS, r.SEARCH_ROW)}  # fmt: skip


class World:
    """The state of one run."""

    def __init__(
        self,
        overlay: Overlay,
        settings: Settings,
        workload: Workload,
        timeline: Timeline,
        samples: int,
        stream: Stream,
    ) -> None:
        self.overlay, self.settings, self.workload, self.timeline = overlay, settings, workload, timeline
        self.topology: Topology = topology_of(overlay, settings)
        settings.check_links(self.topology.links)
        self.memory = Memory(a.COUNT, a.LINKS)
        for place, kernel in (
            (a.DECIDE, decide_linked), (a.CONTROL_MESSAGE, control_message), (a.PUBLICATION, publication),
            (a.LACKS_ROOM, lacks_room_linked),
        ):  # fmt: skip
            self.memory.link(place, kernel)
        self.n = np.zeros(c.COUNT, np.int64)
        self.numbers = np.zeros(c.NUMBERS)
        self.put(a.COUNTERS, self.n)
        self.put(a.NUMBERS, self.numbers)
        self.n[c.FREE] = -1
        self.n[c.CLIENTS_ACT] = self.n[c.SAMPLER_ACTS] = 1
        for place, dtype in _ROW_DTYPES.items():
            self.put(place, np.empty(FIRST_ROOM, dtype))
        self._full: dict[int, list[tuple[NDArray[np.uint8], int]]] = {place: [] for place in _BLOCKS}
        for place, (_, layout) in _BLOCKS.items():
            self.put(place, block_for(FIRST_ROOM, layout))
        requests = int((timeline.kind != PUBLISH).sum()) + len(timeline.preloaded)
        self.put(a.OPERATIONS, np.zeros(requests, r.OPERATION))
        self._put_overlay()
        self._put_subscriptions()
        self._put_strategy()
        self._put_transport(stream)
        self._put_timeline(samples)
        if self.n[c.STRATEGY] == r.SIMPLE and len(self.topology.routes) and not len(timeline.preloaded):
            self._reserve_all()
        if len(timeline.preloaded):
            load(self)

    def put(self, place: int, array: NDArray[Any]) -> None:
        self.memory.put(place, array)

    def get(self, place: int, count: int = -1) -> NDArray[Any]:
        """The array at a place of the table, or as many rows of it as a counter says."""
        array: NDArray[Any] = self.memory.get(place)
        return array if count < 0 else array[: self.n[count]]

    def parts(self, place: int) -> list[dict[str, NDArray[Any]]]:
        """The columns of what is kept in blocks, block by block."""
        counter, layout = _BLOCKS[place]
        blocks = [*self._full[place], (self.get(place), int(self.n[counter]))]
        return [{name: column_in(block, layout, name, count) for name in layout.names or ()} for block, count in blocks]

    def _put_overlay(self) -> None:
        t = self.topology
        self.n[c.TREES] = len(t.trees)
        for place, array in (
            (a.WIRES, t.wires), (a.ROUTES, t.routes), (a.LEARN_FIRST, t.learn_first), (a.LEARN, t.learn),
            (a.NEAR_FIRST, t.near_first), (a.NEIGHBOUR, t.neighbour), (a.NEAR_WIRE, t.near_wire),
            (a.NEAR_ROUTE, t.near_route), (a.NEAR_PLANE, t.near_plane),
        ):  # fmt: skip
            self.put(place, array)
        spans = [np.diff(first[:: len(t.trees)]) for first in (t.learn_first, t.near_first)]
        self.n[c.WIDEST] = max(1, *(int(span.max(initial=0)) for span in spans))
        sources = np.arange(self.overlay.brokers)
        self.put(a.TREE_OF, sources if len(t.trees) > 1 else np.zeros_like(sources))

    def _put_subscriptions(self) -> None:
        w = self.workload
        count, d = w.lo.shape
        self.n[c.ATTRIBUTES] = d
        points = np.empty((count, 2 * d))
        points[:, 0::2], points[:, 1::2] = -w.lo, w.hi
        groups = np.zeros(count, np.int64)
        if self.settings.semantics == "relaxed" and count:
            groups = np.unique(w.mentioned, axis=0, return_inverse=True)[1].astype(np.int64).reshape(-1)
        self.n[c.GROUPS] = int(groups.max(initial=0)) + 1
        for place, array in (
            (a.POINTS, points), (a.GROUPS, groups), (a.LO, w.lo), (a.HI, w.hi), (a.MENTIONED, w.mentioned),
            (a.WEIGHTS, w.weights), (a.SCORES, w.scores), (a.HOME_CHILD, np.full(count, -1, np.int32)),
            (a.PLACES, np.full(count, -1, np.int64)), (a.EVENTS, w.events),
        ):  # fmt: skip
            self.put(place, np.ascontiguousarray(array))
        short = _only_mentioned(w)
        for place, array in zip((a.NAMED, a.NAMED_LO, a.NAMED_HI), short, strict=True):
            self.put(place, array)
        width = short[0].shape[1]
        kind: Any
        for place, kind in ((a.ROW_NAMED, np.int32), (a.ROW_LO, np.float64), (a.ROW_HI, np.float64)):
            self.put(place, np.empty((0, width), kind))
        self.put(a.ROW_NODE, np.empty(0, np.int32))
        self.homes = self.timeline.homes(count)
        self.put(a.HOME, self.homes.astype(np.int32))
        population = np.bincount(self.homes[self.homes >= 0], minlength=self.overlay.brokers)
        self.brokers = np.zeros(self.overlay.brokers, r.BROKER)
        self.brokers["first"] = np.cumsum(population) - population
        self.brokers["head"] = self.brokers["tail"] = -1
        self.put(a.BROKERS, self.brokers)
        total = max(1, int(population.sum()))
        for place, kind in (
            (a.LOCAL_LO, np.float64), (a.LOCAL_HI, np.float64), (a.LOCAL_WEIGHTS, np.float64),
            (a.LOCAL_MENTIONED, np.uint8),
        ):  # fmt: skip
            self.put(place, np.empty((d, total), kind))
        self.put(a.LOCAL_SCORES, np.empty(total))
        self.put(a.LOCAL_IDS, np.empty(total, np.int64))

    def _put_strategy(self) -> None:
        settings, routing, n = self.settings, self.settings.routing, self.n
        options = dict(routing.method_options)
        kind = _FIRST_KIND.get(routing.method, SCAN)
        n[c.STRATEGY] = strategy = _STRATEGIES[settings.strategy]
        n[c.ACTIVE], n[c.ASK_EXACT] = settings.active, settings.ask_exact
        n[c.GIVES_UP], n[c.PROBE_CAP] = "probe_cap" in options, options.get("probe_cap", -1)
        n[c.AUTO] = routing.method == "auto"
        n[c.K], n[c.RELAXED] = -1 if settings.k is None else settings.k, settings.semantics == "relaxed"
        indexes = len(self.topology.routes) * int(n[c.GROUPS]) if strategy == r.COVERING else 0
        self.bank = Bank(indexes, routing.domain, kind)
        self.bank.keep_slots(np.empty(FIRST_ROOM, np.int32))
        self.put(a.BANK, self.bank.table)
        bits = options.get("bits") or greedy_bits(2 * len(routing.domain))
        curve = Quantiser.of(routing.domain, bits)
        n[c.BITS] = bits
        shares = np.array([asked_share(epsilon) for epsilon in self.topology.epsilons] or [(1, 0)], np.int64)
        for place, array in (
            (a.CURVE_OFFSET, curve.offset), (a.CURVE_SCALE, curve.scale), (a.NUMERATORS, shares[:, 0].copy()),
            (a.SHIFTS, shares[:, 1].copy()),
        ):  # fmt: skip
            self.put(place, array)
        identity = strategy == r.IDENTITY
        n[c.CLASSES] = len(self.workload.lo) + 1
        self.put(a.CLASSES, _equal_classes(self.workload) if identity else np.zeros(1, np.int64))
        self.put(a.KEYS, np.empty(FIRST_ROOM if identity else 1, np.int64))
        self.put(a.EQUAL, np.full(2 * len(self.get(a.KEYS)), -1, np.int32))

    def _put_transport(self, stream: Stream) -> None:
        links, service, numbers = self.settings.links, dict(self.settings.service), self.numbers
        self.n[c.ONLY_LATENCY] = not links.is_random and links.bandwidth is None
        numbers[c.BANDWIDTH], numbers[c.JITTER] = links.bandwidth or 0.0, links.jitter
        kind = service.get("kind", "none")
        self.n[c.SERVICE] = _SERVICES[kind]
        for place, option in zip((c.SERVICE_BASE, c.SERVICE_SLOPE), SERVICE_OPTIONS[kind], strict=False):
            numbers[place] = service[option]
        capacity = self.settings.queue_capacity
        self.n[c.CAPACITY] = -1 if capacity is None else capacity
        wires = self.topology.wires[["source", "target"]].tolist() if links.jitter else []
        self._wire_rngs = [stream(f"link/{source}/{target}") for source, target in wires]
        serving = range(self.overlay.brokers) if kind == "exponential" else range(0)
        self._service_rngs = [stream(f"service/{broker}") for broker in serving]
        for draws, drawn, rngs in (
            (a.DRAWS, a.DRAWN, self._wire_rngs), (a.SERVICE_DRAWS, a.SERVICE_DRAWN, self._service_rngs),
        ):  # fmt: skip
            self.put(draws, np.empty((len(rngs), _DRAWN_AHEAD)))
            self.put(drawn, np.full(len(rngs), _DRAWN_AHEAD))  # all used up: the first need fills them

    def _put_timeline(self, samples: int) -> None:
        line = self.timeline
        wanted = samples if len(line) else 0
        last = float(line.time[-1]) if len(line) else 0.0
        self.n[c.WANTED_SAMPLES] = wanted
        self.put(a.DUE, last * np.arange(1, wanted + 1) / max(wanted, 1))
        self.put(a.SAMPLED_AT, np.zeros(wanted + 1))  # and the final one
        self.put(a.SAMPLES, np.zeros((wanted + 1, len(self.brokers) + len(self.topology.wires)), np.int64))
        for place, array in (
            (a.TIMES, line.time), (a.KINDS, line.kind.astype(np.int64)), (a.INDEX, line.index),
            (a.HOMES, line.broker),
        ):  # fmt: skip
            self.put(place, np.ascontiguousarray(array))

    def _reserve_all(self) -> None:
        """Where nothing is held back, how much there will be is known: every subscription over every link."""
        comers = int((self.timeline.kind == SUBSCRIBE).sum())
        links = len(self.topology.routes) if len(self.topology.trees) > 1 else self.overlay.brokers - 1
        self.put(a.NODES, small_pages((comers * links + c.SLACK,), r.NODE))
        self.follow_nodes()
        came = self.homes[self.timeline.index[self.timeline.kind == SUBSCRIBE]]
        passed = subscriptions_behind(self.topology.routes, np.bincount(came, minlength=self.overlay.brokers))
        self.topology.routes["row"], self.topology.routes["room"] = np.cumsum(passed) - passed, passed
        self.n[c.ROWS] = passed.sum()
        self.grow_rows(int(passed.sum()))

    # ── running ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def now(self) -> float:
        return float(self.numbers[c.NOW])

    def run(self) -> None:
        """Until nothing is under way any more."""
        while advance(self.memory.address) == c.ROOM:
            self.make_room()
        at, brokers = int(self.n[c.WANTED_SAMPLES]), len(self.brokers)
        samples = self.get(a.SAMPLES)
        samples[at, :brokers] = self.brokers["local"]
        samples[at, brokers:] = self.topology.wires["entries"]
        self.get(a.SAMPLED_AT)[at] = self.now

    def make_room(self) -> None:
        """Lengthen what the next message may overrun, and draw more random numbers where few are left."""
        n = self.n
        answers = int(n[c.NEED_ANSWERS])
        self.new_block(a.CONTROL, 1)
        self.new_block(a.DECISIONS, answers)
        needs = {a.MESSAGES: answers, a.DELIVERIES: int(n[c.NEED_DELIVERIES]), a.NODES: int(n[c.NEED_NODES])}
        for place, counter in _GROWING.items():
            self.lengthen(place, int(n[counter]) + needs.get(place, 0) + c.SLACK)
        self.lengthen(a.HEAP, len(self.get(a.MESSAGES)) + 2 * c.SLACK)
        self.follow_nodes()
        self.grow_rows(int(n[c.ROWS] + n[c.NEED_ROWS]))
        if n[c.NEED_SLOTS]:
            self.bank.grow(int(n[c.NEED_SLOTS]))
            n[c.NEED_SLOTS] = 0
        if self._wire_rngs:
            drawn = self.get(a.DRAWN)
            self.put(a.DRAWS, _refill(self.get(a.DRAWS), drawn, self._wire_rngs, answers, "random"))
        if self._service_rngs:
            drawn = self.get(a.SERVICE_DRAWN)
            fresh = _refill(self.get(a.SERVICE_DRAWS), drawn, self._service_rngs, 1, "standard_exponential")
            self.put(a.SERVICE_DRAWS, fresh)

    def new_block(self, place: int, needed: int) -> None:
        """Put a block of the trace aside if it has no room for `needed` more rows, and go on with a larger one."""
        counter = _BLOCKS[place][0]
        room, used = len(self.get(place)), int(self.n[counter])
        if used + needed <= room:
            return
        for other, (counted, layout) in _BLOCKS.items():  # those with the same number of rows go together
            if counted == counter and not (other == a.SEARCHES and self.n[c.STRATEGY] == r.SIMPLE):
                self._full[other].append((self.get(other), used))
                self.put(other, block_for(max(needed, min(BLOCK_ROWS, 4 * room)), layout))
        self.n[counter] = 0

    def lengthen(self, place: int, needed: int) -> None:
        """Give an array at least `needed` rows, at least twice as many as before if it has to grow."""
        rows = self.get(place)
        if needed > len(rows):
            longer = np.empty((max(needed, 2 * len(rows)), *rows.shape[1:]), rows.dtype)
            # As bytes: numpy copies records one by one, which takes ten times as long.
            longer.reshape(-1).view(np.uint8)[: rows.nbytes] = rows.reshape(-1).view(np.uint8)
            self.put(place, longer)

    def follow_nodes(self) -> None:
        """What is kept by node has as many rows as there are nodes."""
        room, slots = len(self.get(a.NODES)), self.bank.slots
        if self.n[c.STRATEGY] != r.SIMPLE:
            self.lengthen(a.STANDINGS, room)
        if self.n[c.STRATEGY] == r.COVERING and len(slots) < room:
            self.bank.keep_slots(np.concatenate([slots, np.empty(room - len(slots), np.int32)]))
        if self.n[c.STRATEGY] == r.IDENTITY and len(self.get(a.KEYS)) < room:
            held = np.sort(self.get(a.EQUAL)[self.get(a.EQUAL) >= 0])
            self.lengthen(a.KEYS, room)
            self.put(a.EQUAL, np.full(2 * len(self.get(a.KEYS)), -1, np.int32))
            for node in held.tolist():
                _put_range(self.get(a.EQUAL), self.get(a.KEYS), node, node + 1)

    def grow_rows(self, needed: int) -> None:
        """Give the tables so many rows in all. Bounds are not copied: the next events fill them in."""
        self.lengthen(a.ROW_NODE, needed)
        rows = len(self.get(a.ROW_NODE))
        if rows > len(self.get(a.ROW_LO)):
            for place in (a.ROW_NAMED, a.ROW_LO, a.ROW_HI):
                old = self.get(place)
                self.put(place, small_pages((rows, old.shape[1]), old.dtype))
            self.topology.routes["filled"] = 0


def _only_mentioned(workload: Workload) -> tuple[NDArray[Any], ...]:
    """Per subscription the attributes that it mentions, −1 after the last, and their bounds: rows of a LinkTable."""
    named = workload.mentioned
    width = max(1, int(named.sum(axis=1).max(initial=0)))
    order = np.argsort(~named, axis=1, kind="stable")[:, :width]
    rows = np.arange(len(named))[:, None]
    there = named[rows, order]
    return (
        np.where(there, order, -1).astype(np.int32),
        np.ascontiguousarray(workload.lo[rows, order]),
        np.ascontiguousarray(workload.hi[rows, order]),
    )


def _equal_classes(workload: Workload) -> NDArray[np.int64]:
    """Subscriptions that identity routing takes for the same, numbered: equal Filter.key and group."""
    rows = np.concatenate([workload.lo + 0.0, workload.hi + 0.0, workload.mentioned], axis=1)
    classes: NDArray[np.int64] = np.unique(rows, axis=0, return_inverse=True)[1].astype(np.int64).reshape(-1)
    return classes


def _refill(
    draws: NDArray[np.float64], drawn: NDArray[np.int64], rngs: list[np.random.Generator], least: int, law: str
) -> NDArray[np.float64]:
    """Replace the numbers that were used; every stream keeps its order, as if drawn one by one."""
    width = max(draws.shape[1], least)
    fresh = np.empty((len(draws), width))
    for row, rng in enumerate(rngs):
        left = draws.shape[1] - int(drawn[row])
        fresh[row, :left] = draws[row, drawn[row] :]
        fresh[row, left:] = getattr(rng, law)(width - left)
        drawn[row] = 0
    return fresh
