"""`sim.Network`: brokers on a graph of your own, used call by call, or by processes of SimPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Unpack

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import simpy

from broker import network as reference
from broker import trace
from broker.language import compile_subscription
from broker.language.schema import Schema
from coverlay import BrokenGuarantee, CoverlayError, quoted
from routing.filter import Filter
from routing.overlay.graph import Overlay
from sim.experiment import oracle
from sim.experiment.agenda import Agenda, Kind
from sim.experiment.build import rules_of, settings_of
from sim.experiment.config import Experiment
from sim.experiment.oracle import Verdict
from sim.network import files
from sim.network.acts import Acts
from sim.network.handles import Advertisement, Delivery, Event, Subscription
from sim.network.noticing import Noticing
from sim.network.parts import (
    Brokers,
    Keys,
    event_from,
    import_plugins,
    overlay_from,
    schema_from,
    sections_from,
    sections_of,
    settings_from,
    subscription_from,
)
from sim.network.requests import Done, Published, Requests, Row
from sim.network.settling import Settling
from sim.network.told import LiveTrace, frame_of, with_nodes
from sim.plugins import explained
from sim.random_streams import streams
from sim.tell.as_text import filter_in_words
from sim.tell.explain import Explainer
from sim.tell.tables import of_network
from sim.workloads.tables import not_negative

MOST_SHOWN = 10  # subscriptions, in a notebook


class Network:
    """A network of brokers that you use call by call; see docs/python.md.

    >>> import networkx as nx, sim
    >>> net = sim.Network(nx.path_graph(["a", "b", "c"]), schema={"price": (0, 1000)})
    >>> cheap = net.subscribe(at="c", where="price < 50")
    >>> event = net.publish(at="a", event={"price": 42})
    >>> net.run()
    >>> net.deliveries[["event", "broker", "subscription", "hops"]].values.tolist()
    [[0, 'c', 0, 2]]
    >>> net.check().missed
    0

    Calls without a time happen one after the other, each when the network is at rest; with `time=t`, at t; during
    `run()`, in a process of SimPy, at once.
    """

    def __init__(
        self,
        graph: Any,
        *,
        schema: Any,
        seed: int = 1,
        name: str = "network",
        plugins: str | Path | Sequence[str | Path] = (),
        **keys: Unpack[Keys],
    ) -> None:
        named = import_plugins(plugins, keys)
        with explained():
            experiment = settings_from(sections_from(keys), name, graph, plugins=named)
            overlay = overlay_from(graph, experiment, streams(_seed(seed)))
            brokers = Brokers.of(graph, overlay)
            experiment = settings_from(sections_from(keys, brokers), name, graph, plugins=named)
        known, guesses = schema_from(schema)
        self._begin(overlay, brokers, experiment, known, seed, (*overlay.warnings, *guesses))

    def _begin(
        self,
        overlay: Overlay,
        brokers: Brokers,
        experiment: Experiment,
        schema: Schema,
        seed: int,
        notes: tuple[str, ...],
    ) -> None:
        self.overlay, self.brokers, self.settings = overlay, brokers, experiment
        self.schema, self.seed, self.notes = schema, seed, notes
        self.requests = Requests(schema)
        self.reference = reference.Network(overlay, settings_of(experiment, self.requests.workload()), streams(seed))
        self._agenda = Agenda(self.reference.env)
        self.acts = Acts(self.reference, self.requests, Noticing(self.reference, self._agenda))
        self.settling = Settling(self.reference)
        self.handles: dict[int, Subscription] = {}  # by the number in the trace
        self._streams: dict[str, np.random.Generator] = {}
        self._advertisements = 0
        self._running = False
        self._broken: BaseException | None = None
        self.reference.recorder.on_delivery = self._deliver

    @classmethod
    def _made(cls, *parts: Any) -> Network:
        network = cls.__new__(cls)
        network._begin(*parts)
        return network

    # ── calls ──────────────────────────────────────────────────────────────────────────────────────────

    def subscribe(
        self,
        at: Hashable,
        where: str | Mapping[str, Any] = "true",
        *,
        score: float | None = None,
        id: str | None = None,
        time: float | None = None,
        until: float | None = None,
    ) -> Subscription:
        """A client at broker `at` asks for events; `where` in the subscription language, or a mapping of attributes.

        `until`: when it leaves again, in ms.
        """
        broker, filter = self.brokers.number(at), self.filter_of(where, score)
        self._check_until(time, until)
        if id is not None and not isinstance(id, str):
            raise CoverlayError(f"id is {quoted(id)}; it must be a text")
        if id is not None and any(row.id == id for row in self.requests.rows):
            raise CoverlayError(f"{quoted(id)} is the id of another subscription already")
        row = self.requests.new_row(broker, filter, id)
        handle = self.handles[row.number] = Subscription(self, row)

        def leave() -> None:
            if handle.in_force:
                self.acts.leave(handle._row)

        self._schedule_both(partial(self.acts.join, row), leave, until, time, (Kind.REQUEST, Kind.REQUEST))
        return handle

    def publish(
        self,
        at: Hashable,
        event: str | Mapping[str, Any],
        *,
        weights: Mapping[str, float] | None = None,
        time: float | None = None,
    ) -> Event:
        """A client at broker `at` publishes an event, `{"price": 9.5}` or `'price = 9.5 at (48.2, 11.5)'`."""
        broker, said = self.brokers.number(at), event_from(event, weights)
        values = said.encode(self.schema)
        published = Published(broker, values, said.encode_weights(self.schema) if said.weights else None)
        self.schedule(partial(self.acts.publish, published), time)
        return Event(self, published)

    def advertise(self, at: Hashable, where: str | Mapping[str, Any], *, time: float | None = None) -> Advertisement:
        """A client at broker `at` announces what it will publish, where `advertisements` are "simple" or "covering"."""
        if self.settings.routing.advertisements == "none":
            raise CoverlayError('advertisements are "none" in this network; they can be "simple" or "covering"')
        broker, filter = self.brokers.number(at), self.filter_of(where, None)
        self.schedule(partial(self.acts.advertise, self._advertisements, broker, filter), time)
        self._advertisements += 1
        return Advertisement(self, self._advertisements - 1)

    def cut(self, a: Hashable, b: Hashable, *, until: float | None = None, time: float | None = None) -> None:
        """Cut a link: what is in flight on it is lost. `until`: when it heals."""
        link = self._link(a, b)
        self._check_until(time, until)
        self._schedule_both(partial(self.acts.cut, *link), partial(self.acts.heal, *link), until, time)

    def heal(self, a: Hashable, b: Hashable, *, time: float | None = None) -> None:
        """A link that was cut works again."""
        self.schedule(partial(self.acts.heal, *self._link(a, b)), time, Kind.REPAIR)

    def crash(
        self, broker: Hashable, *, state: str = "lost", until: float | None = None, time: float | None = None
    ) -> None:
        """A broker goes down, and loses its tables unless `state` is "kept". `until`: when it restarts."""
        number = self.brokers.number(broker)
        if state not in ("lost", "kept"):
            raise CoverlayError(f'state is {quoted(state)}; it must be "lost" or "kept"')
        self._check_until(time, until)
        crash, restart = partial(self.acts.crash, number, state == "kept"), partial(self.acts.restart, number)
        self._schedule_both(crash, restart, until, time)

    def restart(self, broker: Hashable, *, time: float | None = None) -> None:
        """A broker that crashed is back."""
        self.schedule(partial(self.acts.restart, self.brokers.number(broker)), time, Kind.REPAIR)

    def _schedule_both(
        self,
        begin: Callable[[], object],
        end: Callable[[], object],
        until: float | None,
        time: float | None,
        kinds: tuple[Kind, Kind] = (Kind.FAILURE, Kind.REPAIR),
    ) -> None:
        """Act, and undo it at a time; at equal times both are in the order of the calls."""
        place = self._agenda.next_place()

        def act() -> None:
            if until is not None and until <= self.now:
                rested = f"the network was at rest only at {self.now:g} ms"
                raise CoverlayError(f"until is {until:g} ms, but {rested}, so nothing was done; give the call a time")
            begin()
            if until is not None:
                self._agenda.add(until, kinds[1], end, place)

        self.schedule(act, time, kinds[0])

    def schedule(self, act: Callable[[], object], time: float | None, kind: Kind = Kind.REQUEST) -> None:
        """Act at a time, when the network is at rest if there is none, at once while it runs."""
        self.schedule_check(time)
        if time is not None and not (self._running and time == self.now):
            self._agenda.add(float(time), kind, act)
        elif self._running:
            act()
        else:
            self._agenda.wait(kind, act)

    def schedule_check(self, time: float | None) -> None:
        """Refuse a time that cannot be."""
        if self._broken is not None:
            raise CoverlayError(f"this network was interrupted by {self._broken!r}: look at it, or replay it")
        if time is not None and _milliseconds("time", time) < self.now:
            raise CoverlayError(f"time is {time:g} ms, which is past: it is {self.now:g} ms now")

    def _check_until(self, time: float | None, until: float | None) -> None:
        self.schedule_check(time)
        begins = self.now if time is None else time
        if until is not None and _milliseconds("until", until) <= begins:
            raise CoverlayError(f"until is {until:g} ms, which is not after {begins:g} ms")

    def filter_of(self, where: Any, score: float | None, before: Filter | None = None) -> Filter:
        """A compiled subscription; what is not given is as `before`."""
        if before is not None and where is None:
            where = filter_in_words(self.schema, before)
        if before is not None and score is None and isinstance(where, Mapping):
            score = before.score
        return compile_subscription(self.schema, subscription_from(where, score))

    def _link(self, a: Hashable, b: Hashable) -> tuple[int, int]:
        ends = self.brokers.number(a), self.brokers.number(b)
        if not self.overlay.graph.has_edge(*ends):
            near = ", ".join(repr(self.brokers[other]) for other in sorted(self.overlay.graph[ends[0]]))
            raise CoverlayError(f"there is no link {a!r}–{b!r}; {a!r} has links to: {near}")
        return ends

    # ── running ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def env(self) -> simpy.Environment:
        """The SimPy environment, for processes: `net.env.process(client(net))`. Advance it with `net.run`."""
        return self.reference.env

    @property
    def now(self) -> float:
        """The simulated time, in ms."""
        return float(self.reference.env.now)

    @property
    def quiet(self) -> bool:
        """No message is under way."""
        env = self.reference.env
        return env.peek() > env.busy_until

    @property
    def waiting(self) -> int:
        """How many calls without a time wait for the network to be at rest."""
        return self._agenda.waiting

    def run(self, until: float | simpy.Event | None = None) -> None:
        """Run until nothing is left to happen, up to a time (without what happens then), or up to an event of SimPy."""
        if until is not None and not isinstance(until, simpy.Event) and _milliseconds("until", until) < self.now:
            raise CoverlayError(f"until is {until:g} ms, which is past: it is {self.now:g} ms now")
        if isinstance(until, simpy.Event):
            self._run(partial(self._agenda.run_until, until))
        elif until is not None:
            self._run(partial(self._agenda.run, float(until)))
        else:
            self._run(self._agenda.run_to_rest)

    def settle(self) -> None:
        """Run until no call waits and no message is under way, whatever processes would do later."""
        self._run(self._agenda.settle)

    def _run(self, run: Callable[[], None]) -> None:
        with explained() if self.settings.plugins else nullcontext():
            self._run_plain(run)

    def _run_plain(self, run: Callable[[], None]) -> None:
        self.schedule_check(None)
        if self._running:
            raise CoverlayError("the network is running already: in a process, yield an event instead")
        self._running = True
        try:
            run()
        except CoverlayError:
            raise
        except BaseException as error:
            self._broken = error
            raise
        finally:
            self._running = False

    def _deliver(
        self, served: tuple[Any, Any, Any], event: int, broker: int, time: float, hops: int, latency: float
    ) -> None:
        """Put an event into the inboxes when its service ends, unless the broker crashes meanwhile."""
        env, crashes = self.reference.env, self.acts.crashes[broker]
        ids, scores, ranks = (column.tolist() for column in served)

        def arrive(_: object = None) -> None:
            if self.acts.crashes[broker] == crashes:
                about = Event(self, self.requests.events[event])
                for subscription, score, rank in zip(ids, scores, ranks, strict=True):
                    self.handles[subscription].receive(Delivery(about, time, hops, latency, rank, score))

        if time > env.now:
            env.timeout(time - env.now).callbacks.append(arrive)
        else:
            arrive()

    def rng(self, name: str) -> np.random.Generator:
        """A random stream of this network, for your processes: the same for one name and seed."""
        if name not in self._streams:
            self._streams[name] = streams(self.seed)(f"client/{name}")
        return self._streams[name]

    # ── looking ────────────────────────────────────────────────────────────────────────────────────────

    def trace(self, table: str) -> pd.DataFrame:
        """A table of the trace so far (docs/design.md), with your nodes for brokers."""
        tables = self._trace()
        if table not in tables:
            raise CoverlayError(f"there is no table {quoted(table)} in the trace; there are: {', '.join(tables)}")
        return with_nodes(tables[table], self.brokers)

    def _trace(self) -> dict[str, pa.Table]:
        return self.reference.tables()

    @property
    def deliveries(self) -> pd.DataFrame:
        """Who got which event, when and how: a row per delivery so far."""
        frame = self.trace("deliveries")
        return frame[frame["time"] <= self.now]

    @property
    def decisions(self) -> pd.DataFrame:
        """Every decision whether to send a subscription over a link, and because of which other one."""
        return self.trace("decisions")

    @property
    def tables(self) -> pd.DataFrame:
        """The routing tables now: who holds which subscription, and what is kept from whom because of which others."""
        return frame_of(of_network(self.reference), self.brokers)

    @property
    def subscriptions(self) -> pd.DataFrame:
        """What was asked for: a row per subscription, and per version of one that changed."""
        columns = ["subscription", "id", "at", "where", "score", "came", "left"]
        rows = [
            (
                row.traced,
                row.id,
                self.brokers[row.broker],
                filter_in_words(self.schema, row.filter),
                row.filter.score,
                math.nan if row.came is None else row.came,
                row.left,
            )
            for row in self.requests.rows
        ]
        return pd.DataFrame(rows, columns=columns)

    @property
    def events(self) -> pd.DataFrame:
        """What was published, with a column per attribute."""
        rows = [
            {"event": e.number, "at": self.brokers[e.broker], "time": e.time, **self.schema.decode(e.values)}
            for e in self.requests.events
        ]
        return pd.DataFrame(rows, columns=["event", "at", "time", *self.schema.names])

    @property
    def graph(self) -> nx.Graph:
        """A copy of the graph: your nodes, `latency` in ms, and whether messages are `routed` over a link."""
        routed, copy = set(self.reference.links), nx.Graph()
        copy.add_nodes_from(self.brokers.nodes)
        for a, b, latency in self.overlay.graph.edges(data="latency"):
            ends = self.brokers[a], self.brokers[b]
            copy.add_edge(*ends, latency=latency, routed=(min(a, b), max(a, b)) in routed)
        return copy

    @property
    def trace_hash(self) -> str:
        """Networks with equal hashes have equal traces."""
        return trace.trace_hash(self._trace())

    def subscription(self, called: int | str) -> Subscription:
        """The subscription of a number in the trace, or of an id."""
        found = [s for number, s in self.handles.items() if called in (number, s.id)]
        if not found:
            raise CoverlayError(f"there is no subscription {quoted(called)}; there are {len(self.handles)}")
        return found[-1]

    def check(self) -> Verdict:
        """Let the oracle judge all that happened so far: what was due, what was delivered, and why the rest was not.

        Raises BrokenGuarantee if an event was missed without a cause, or delivered twice. Needs rest.
        """
        if not self.quiet:
            raise CoverlayError("messages are under way, so it is not known yet what arrives: run() or settle() first")
        verdict = oracle.judge(self.requests.workload(), self._trace(), rules_of(self.reference.settings))
        broken = {name: count for name in trace.MUST_BE_ZERO if (count := getattr(verdict, name, 0))}
        if broken:
            said = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in broken.items())
            raise BrokenGuarantee(f"the network broke a guarantee: {said}; net.explain(event) tells where")
        return verdict

    def explain(self, event: int | Event, subscription: int | str | Subscription | None = None) -> str:
        """Why an event did or did not reach a subscription, hop by hop; without one, where it went."""
        number = event.number if isinstance(event, Event) else event
        if number is None:
            raise CoverlayError("the event has not been published yet: run() first")
        called = subscription.number if isinstance(subscription, Subscription) else subscription
        workload, faults = self.requests.workload(), self.requests.faults
        live = LiveTrace(self.settings, self.seed, self._trace(), workload.ids, faults)
        return "\n".join(Explainer(live, workload).sentences(number, called))

    # ── again ──────────────────────────────────────────────────────────────────────────────────────────

    def replay(self, **keys: Unpack[Keys]) -> Network:
        """A new network in which all that was done so far is done again, at the same times, with other settings.

        Settings that are not given stay; a section that is given as a table replaces the whole section.
        """
        if "overlay" in keys or "latency" in keys:
            raise CoverlayError("a replay has the same overlay; make another Network for another one")
        chosen, sections = sections_from(keys, self.brokers), sections_of(self.settings)
        for name, section in chosen.items():
            sections[name] = section if name in keys else {**sections.get(name, {}), **section}
        plugins = import_plugins(self.settings.plugins, keys)
        with explained():
            experiment = settings_from(sections, self.settings.name, chosen=chosen, plugins=plugins)
        new = self._made(self.overlay, self.brokers, experiment, self.schema, self.seed, self.notes)
        rows: dict[int, Row] = {}
        for row in self.requests.rows:
            changes = None if row.changes is None else rows[row.changes.number]
            rows[row.number] = new.requests.new_row(row.broker, row.filter, row.id, changes)
        new.plan(replace(done, given=tuple(_again(rows, given) for given in done.given)) for done in self.requests.done)
        return new

    def plan(self, steps: Iterable[Done]) -> None:
        """Plan what is done when."""
        for row in self.requests.rows:
            if row.changes is None and row.number not in self.handles:
                self.handles[row.number] = Subscription(self, row)
        for step in steps:
            self._agenda.add(step.time, step.kind, partial(self.acts.do, step.act, *step.given))
            self._advertisements += step.act == "advertise"

    def plan_at_rest(self, steps: Iterable[Done]) -> None:
        """Plan what is done, one after the other, each when the network is at rest."""
        self.plan(())
        for step in steps:
            self._agenda.wait(step.kind, partial(self.acts.do, step.act, *step.given))

    def play(self, subscriptions: Any = None, events: Any = None, faults: Any = None) -> None:
        """Plan what tables say: frames, or files, with the columns of files (docs/own-data.md).

        Rows without a time follow one after the other, each when the network is at rest.
        """
        self.schedule_check(None)
        files.play(self, subscriptions, events, faults)

    def save(self, folder: str | Path) -> Path:
        """Write all that was done as an experiment, whose run has the same trace; returns the file.

        The run is made here once, to compare the traces: what a file cannot say is refused.
        """
        if not self.quiet or self.waiting or self._agenda.next < math.inf or self._broken is not None:
            raise CoverlayError("more is to happen in this network, so its trace is not complete: run() first")
        return files.save(self, Path(folder))

    @classmethod
    def load(cls, file: str | Path, settings: Mapping[str, Any] | None = None, seed: int | None = None) -> Network:
        """One run of an experiment, to step through and interfere with: `Network.load("demo", {...}, seed=2)`.

        The settings must leave one point of its sweep; without a seed, the first one is taken.
        """
        return files.load(cls._made, file, settings, seed)

    def __reduce__(self) -> str | tuple[Any, ...]:
        how = "net.save(folder) keeps it in files, net.replay() does the same again in another one"
        raise CoverlayError(f"a network cannot be copied or pickled: it is under way in SimPy; {how}")

    def _repr_html_(self) -> str:
        """For notebooks: the line, and the last subscriptions."""
        shown = self.subscriptions.tail(MOST_SHOWN)
        more = f"<p>the last {MOST_SHOWN} of {len(self.requests.rows)} subscriptions</p>"
        table = "" if shown.empty else shown.to_html(index=False)
        return f"<p>{escape(repr(self))}</p>{table}{more if len(self.requests.rows) > MOST_SHOWN else ''}"

    def __repr__(self) -> str:
        asked, published = self.reference.active_subscriptions, len(self.requests.events)
        waits = f"{self.waiting} calls wait" if self.waiting else "nothing waits"
        return (
            f"Network: {self.overlay.brokers} brokers, {self.settings.routing.strategy}, {self.now:.10g} ms; "
            f"{_count(asked, 'subscription')}, {_count(published, 'event')}, "
            f"{_count(len(self.deliveries), 'deliver', 'y', 'ies')}; {waits}"
        )


def _seed(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 0:
        raise CoverlayError(f"seed is {quoted(given)}; it must be a whole number of at least 0")
    return int(given)


def _milliseconds(what: str, given: object) -> float:
    try:
        return not_negative(given)
    except CoverlayError as error:
        raise CoverlayError(f"{what}: {error}; times are in ms") from None


def _again(rows: Mapping[int, Row], given: object) -> object:
    """What an act of another network was about, for this one."""
    if isinstance(given, list):
        return [_again(rows, one) for one in given]
    if isinstance(given, Row):
        return rows[given.number]
    return Published(given.broker, given.values, given.weights) if isinstance(given, Published) else given


def _count(number: int, noun: str, one: str = "", many: str = "s") -> str:
    return f"{number} {noun}{one if number == 1 else many}"
