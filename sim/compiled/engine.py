"""A run of the compiled engine: the arrays of its world, and the loop that drives the kernels.

engine = Engine(overlay, settings, workload, timeline, samples, stream)
engine.run()
tables = tables_of(engine)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import covering
from broker.settings import Settings
from broker.transport import WORK, service_options
from covering.auto import AutoIndex
from covering.budget import BUDGET
from covering.packed_words import Fields
from covering.stats import footprint
from routing.overlay.graph import Overlay
from sim.compiled import records as r
from sim.compiled.advance import BLOCK, DONE, DRAW, UPDATE, advance
from sim.compiled.bulk import load
from sim.compiled.covers_emulated import grids
from sim.compiled.filters import order_filters, widest_places
from sim.compiled.link_ledgers import update_ledgers
from sim.compiled.residues import PLAIN, residue_arrays
from sim.compiled.state import Arrays, GrowingArrays, growing, world_of
from sim.compiled.tables import fill_tables
from sim.compiled.topology import Topology, topology_of
from sim.compiled.trace import Trace
from sim.random_streams import Stream
from sim.workloads import Workload
from sim.workloads.arrivals import PUBLISH, UNSUBSCRIBE, Timeline

FIRST_ROWS = 1024  # of an array that grows
_DRAWN_AHEAD = 256  # random numbers per stream that are drawn at once
_TOLD_EVERY = 64  # updates of ledgers between two calls of `tell`, which takes longer than many of them


class Engine:
    """Builds the world of one run and runs it."""

    def __init__(
        self,
        overlay: Overlay,
        settings: Settings,
        workload: Workload,
        timeline: Timeline,
        samples: int,
        stream: Stream,
        held: float = 1.0,  # share of the events whose deliveries are written down one by one
    ) -> None:
        self.overlay, self.settings, self.workload, self.timeline = overlay, settings, workload, timeline
        self.topology: Topology = topology_of(overlay, settings)
        settings.check_links(self.topology.links)
        self.homes = timeline.homes(len(workload.lo))
        self._run = np.zeros(1, r.RUN)
        self._set_strategy()
        self._set_transport(stream)
        self._run["k"] = -1 if settings.k is None else settings.k
        self._run["samples"] = samples if len(timeline) else 0
        for name in ("outbox", "unused_message", "unused_index", "begun", "ended"):
            self._run[name] = -1
        self.arrays = Arrays(
            run=self._run,
            **self._overlay_arrays(),
            **self._client_arrays(),
            **self._index_arrays(),
            **self._trace_arrays(),
            **self._prices(),
            draws=np.empty((len(self._wire_streams), _DRAWN_AHEAD)),
            service_draws=np.empty((len(self._service_streams), _DRAWN_AHEAD)),
            messages=np.empty(FIRST_ROWS, r.MESSAGE),
            calendar=np.empty(FIRST_ROWS, r.CALL),
            nodes=np.empty(FIRST_ROWS, r.NODE),
            keys=np.empty(FIRST_ROWS, np.int64),
            equal=np.full(2 * FIRST_ROWS, -1, np.int32),
            updates=np.empty(1, r.UPDATE),
            passed=np.empty(FIRST_ROWS, r.PASSED),
            no_nodes=np.empty(0, np.int64),
        )
        self._draw()
        self.world = world_of(self.arrays)
        self.trace = Trace(self.arrays, held)
        if len(timeline.preloaded):
            routes = self.topology.routes[: int(self._run["routes"][0])]
            load(self.world, self._update_ledgers, timeline.preloaded, routes, overlay.brokers)
            fill_tables(self.world, self.arrays, self.growing, timeline.preloaded)

    @property
    def now(self) -> float:
        return float(self._run["now"][0])

    @property
    def growing(self) -> GrowingArrays:
        """The arrays that kernels lengthen, as they are now."""
        arrays: GrowingArrays = growing(self.world)
        return arrays

    def run(self, tell: Callable[[float], None] = lambda now: None) -> None:
        """Run until nothing is under way any more; `tell` is given the simulated time now and then."""
        world, updates = self.world, 0
        while (stopped := advance(world)) != DONE:
            if stopped == UPDATE:
                self._update_ledgers()
                updates += 1
            elif stopped == DRAW:
                self._draw()
            else:
                self.trace.take(self.growing.decisions)
            if stopped != UPDATE or updates % _TOLD_EVERY == 0:
                tell(self.now)
        self.trace.take(self.growing.decisions)

    def _update_ledgers(self) -> None:
        update_ledgers(self.world, self._approximate)

    def _draw(self) -> None:
        """Draw random numbers where all are used up; every stream keeps its order, as if drawn one by one."""
        for records, rows, streams, law in (
            (self.arrays.wires, self.arrays.draws, self._wire_streams, "random"),
            (self.arrays.brokers, self.arrays.service_draws, self._service_streams, "standard_exponential"),
        ):
            for row, stream in enumerate(streams):
                if records["drawn"][row] == _DRAWN_AHEAD:
                    rows[row] = getattr(stream, law)(_DRAWN_AHEAD)
                    records["drawn"][row] = 0

    def _set_strategy(self) -> None:
        settings, routing, run = self.settings, self.settings.routing, self._run
        options = dict(routing.method_options)
        run["strategy"] = r.DECIDES.index(r.compiled_as(settings.strategy))
        run["active"], run["ask_exact"] = settings.mode == "active", settings.ask_exact
        run["probe_cap"], run["node_budget"] = options.get("probe_cap", -1), options.get("node_budget", -1)
        run["budget"] = options.get("budget", BUDGET)
        run["gives_up"] = covering.may_miss(routing.method, 0.0, options)
        run["auto"], run["first_method"] = routing.method == AutoIndex.name, r.KDTREE
        if routing.method in r.SEARCHES:
            run["first_method"] = r.SEARCHES.index(routing.method)
        run["bits"] = options.get("bits") or 0
        approximate = run["first_method"][0] in (r.EMULATED, r.BUDGET)
        self._approximate = grids(routing.domain) if approximate else None

    def _set_transport(self, stream: Stream) -> None:
        links, service, run = self.settings.links, dict(self.settings.service), self._run
        run["only_latency"] = links.only_latency
        run["bandwidth"], run["jitter"] = links.bandwidth or 0.0, links.jitter
        kind = service.get("kind", "none")
        run["service"] = r.SERVICES.index(kind)
        if kind != WORK:
            for name, option in zip(("service_base", "service_slope"), service_options()[kind], strict=False):
                run[name] = service[option]
        capacity = self.settings.queue_capacity
        run["capacity"] = -1 if capacity is None else capacity
        wires = self.topology.wires[["source", "target"]].tolist() if links.jitter else []
        self._wire_streams = [stream(f"link/{source}/{target}") for source, target in wires]
        serving = range(self.overlay.brokers) if kind == "exponential" else range(0)
        self._service_streams = [stream(f"service/{broker}") for broker in serving]

    def _prices(self) -> dict[str, Any]:
        """What work costs, and how probes lie on pages, which counts even where work costs nothing."""
        given, attributes = self.settings.prices, len(self.settings.routing.domain)
        prices, searches = np.zeros(1, r.PRICES), np.zeros(len(r.SEARCHES), r.SEARCH_PRICE)
        methods = [method for method in covering.METHODS.values() if method is not AutoIndex]
        touches = {name: method.touches for method in methods for name in method.charged_as()}
        for row, method in zip(searches, r.SEARCHES, strict=True):
            # What a strategy searches by itself is a look-up, like one of a key.
            row["per_page"], row["apart"], row["boxes_per_page"] = footprint(touches.get(method, "keys"), attributes)
            if given is not None and method in given.search:
                for name, value in vars(given.search[method]).items():
                    row[name] = value
        for name in r.PRICES.names or () if given is not None else ():
            prices[name] = getattr(given, name)
        return {"prices": prices, "search_prices": searches}

    def _overlay_arrays(self) -> dict[str, Any]:
        t, count = self.topology, self.overlay.brokers
        prunes = self.settings.mode == "prune"
        self._run["trees"], self._run["prunes"] = len(t.trees), prunes
        self._run["routes"] = len(t.routes) // (1 + prunes)
        self._run["widest"] = max(1, prunes + int(np.diff(t.learn_first[:: len(t.trees)]).max(initial=0)))
        t.wires["drawn"] = _DRAWN_AHEAD  # all used up: the first ones are drawn at once
        population = np.bincount(self.homes[self.homes >= 0], minlength=count)
        brokers = np.zeros(count, r.BROKER)
        for name in ("head", "tail", "outbox"):
            brokers[name] = -1
        brokers["drawn"] = _DRAWN_AHEAD
        self._most_local = int(population.max(initial=0))
        names = ("wires", "routes", "learn_first", "learn", "near_first", "near")
        return {"brokers": brokers, **{name: getattr(t, name) for name in names}}

    def _client_arrays(self) -> dict[str, Any]:
        workload, line = self.workload, self.timeline
        count, d = workload.lo.shape
        points = np.empty((count, 2 * d))
        points[:, 0::2], points[:, 1::2] = -workload.lo, workload.hi
        subscriptions = np.zeros(count, r.SUBSCRIPTION)
        subscriptions["home"], subscriptions["node"] = self.homes, -1
        subscriptions["score"] = workload.scores
        self._run["relaxed"] = relaxed = self.settings.routing.semantics == "relaxed"
        if relaxed and count:
            subscriptions["group"] = _numbered(workload.mentioned)
        if self._run["strategy"][0] == r.IDENTITY and count:
            # One class for equal Filter.key and group; + 0.0 makes −0 and 0 equal, which they are not in a residue.
            keys, listed = {"": 0}, np.zeros((count, 1))
            for row, residue in workload.residues.items():
                listed[row] = keys.setdefault(repr(residue), len(keys))
            rows = np.concatenate([workload.lo + 0.0, workload.hi + 0.0, workload.mentioned, listed], axis=1)
            subscriptions["equal"] = _numbered(rows)
        self._run["groups"] = int(subscriptions["group"].max(initial=0)) + 1
        self._run["classes"] = count + 1
        numbers, residues = residue_arrays(workload.residues.values())
        subscriptions["residue"] = PLAIN
        for row, residue in workload.residues.items():
            subscriptions["residue"][row] = numbers[residue]
        if (line.kind == UNSUBSCRIBE).any() and self._run["strategy"][0] == r.COVERING:
            subscriptions["place"] = widest_places(workload, self.settings.routing)
        timeline = np.empty(len(line), r.ACT)
        timeline["time"], timeline["kind"], timeline["index"] = line.time, line.kind, line.index
        timeline["broker"] = line.broker
        return {
            "points": points,
            "subscriptions": subscriptions,
            **residues,
            "integral": np.array(self.settings.routing.integral or [False] * d, np.bool_),
            **order_filters(subscriptions, workload, self.settings.routing.domain),
            "events": np.require(workload.events, np.float64, ["C", "W"]),
            "timeline": timeline,
            "operations": np.zeros(int((line.kind != PUBLISH).sum()) + len(line.preloaded), r.OPERATION),
            "tables": np.zeros(self.overlay.brokers + int(self._run["routes"][0]), r.TABLE),  # sieves have none
            "entries": np.empty(0, np.int32),
            "found_ids": np.empty(self._most_local, np.int64),
            "found_scores": np.empty(self._most_local),
        }

    def _index_arrays(self) -> dict[str, Any]:
        domain, run = self.settings.routing.domain, self._run[0]
        chains = np.empty(len(self.topology.routes) * int(run["groups"]), r.CHAIN)
        chains["first"] = chains["last"] = -1
        fields = Fields.of(domain)
        box = np.empty((2 * len(domain), 2))
        box[0::2], box[1::2] = -domain[:, ::-1], domain
        return {
            "chains": chains,
            "indexes": np.empty(FIRST_ROWS, r.INDEX),
            "index_points": np.empty((0, len(box))),
            "index_words": np.empty(0, np.uint64),
            "index_owners": np.empty(0, np.int32),
            "index_tops": np.empty((0, len(box))),
            "index_top_words": np.empty(0, np.uint64),
            "grid": fields.grid,
            "guards": fields.guards.astype(np.uint64),
            "domain": np.require(domain, np.float64, ["C", "W"]),
            "box": box,
        }

    def _trace_arrays(self) -> dict[str, Any]:
        samples = int(self._run["samples"][0])
        return {
            # A message adds a row to each, an event at most one delivery per local client; only `decisions` grows.
            "control": np.empty(BLOCK + 1 + len(self.timeline.preloaded), r.CONTROL),
            "decisions": np.empty(BLOCK, r.DECISION),
            "publications": np.empty(BLOCK + 1, r.PUBLICATION),
            "deliveries": np.empty(BLOCK + 1 + self._most_local, r.DELIVERY),
            "faults": np.empty(BLOCK + 1, r.FAULT),
            "published": np.empty(int((self.timeline.kind == PUBLISH).sum()), r.PUBLISHED),
            "sample_due": np.array(self.timeline.sample_times(samples), float),
            "sampled_at": np.zeros(samples + 1),  # and the final one
            "samples": np.zeros((samples + 1, self.overlay.brokers + 2 * len(self.topology.wires)), np.int64),
        }


def _numbered(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Equal rows get equal numbers."""
    return np.unique(rows, axis=0, return_inverse=True)[1].astype(np.int64).reshape(-1)
