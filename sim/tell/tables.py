"""Routing tables: which subscription is held where, from which neighbour, and why, at any simulated time.

One `Side` per direction of a link and tree: what a neighbour decided about the subscriptions it knows, and what the
broker at the other end holds because of it. The trace has every control message that a broker processed, in order, and
every decision of a ledger (routing/ledger.py). Three things are not in it but follow from these:

- when a subscription leaves, no decision about it is recorded: its unsubscription is among the messages;
- when a sent one is retracted, what it suppressed is handed to the wider one without a decision;
- no decision is recorded about a merger: it is sent as long as it suppresses something.

Where the trace lacks more than that (`missing`), the run is simulated again and its brokers are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from broker.network import Network
from broker.trace import trace_hash
from broker.trace.sampling import thin
from broker.trace.schema import CLIENT, CRASH, RESTART
from coverlay import CoverlayError
from routing.overlay.trees import SHARED
from sim.experiment.build import inputs_of, overlay_of, workload_of
from sim.experiment.engines import Look, Tell, nobody, run_simpy
from sim.random_streams import streams
from sim.tell.run_trace import RunTrace

HELD, PRUNED, LEAVING, UNDER_WAY, SUPPRESSED, DORMANT = STATES = (
    "held",  # events are matched against it
    "pruned",  # known, but events are not matched: another one of the same neighbour covers it
    "leaving",  # still held; the neighbour has taken it back, and the message is under way
    "under way",  # sent by the neighbour and not there yet, or lost with a link or broker that is down
    "suppressed",  # the neighbour did not send it: what it did send covers it
    "dormant",  # the neighbour did not send it: nothing advertised on this side overlaps it
)


PATIENCE = 5  # seconds that need no announcement
A_SECOND = 20_000  # messages that the reference engine handles in one, roughly
Place = tuple[int, int, int]  # broker, neighbour, tree


@dataclass
class Side:
    """One direction of a link in one tree: what the neighbour decided, and what the broker holds."""

    held: set[int] = field(default_factory=set)
    sent: set[int] = field(default_factory=set)
    suppressed: dict[int, tuple[int, ...]] = field(default_factory=dict)  # → coverers
    dormant: set[int] = field(default_factory=set)
    pruned: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # among the held → coverers

    def states(self) -> Iterator[tuple[int, str, tuple[int, ...]]]:
        """(subscription, state, because of whom), in order."""
        for subscription in sorted(self.held | self.sent | self.suppressed.keys() | self.dormant):
            if subscription in self.pruned:
                yield subscription, PRUNED, self.pruned[subscription]
            elif subscription in self.held:
                yield subscription, HELD if subscription in self.sent else LEAVING, ()
            elif subscription in self.sent:
                yield subscription, UNDER_WAY, ()
            elif subscription in self.suppressed:
                yield subscription, SUPPRESSED, self.suppressed[subscription]
            else:
                yield subscription, DORMANT, ()


@dataclass
class Tables:
    """The tables of all brokers at one time."""

    local: dict[int, set[int]] = field(default_factory=dict)  # broker → subscriptions of its own clients
    sides: dict[Place, Side] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[int, int, int, int, str, tuple[int, ...]]]:
        """(broker, neighbour or CLIENT, tree, subscription, state, because of whom), in order."""
        own = [((broker, CLIENT, SHARED), Side(held, held)) for broker, held in self.local.items()]
        for place, side in sorted([*own, *self.sides.items()], key=itemgetter(0)):
            yield from ((*place, *state) for state in side.states())


# ── from a network ─────────────────────────────────────────────────────────────────────────────────────────


def of_network(network: Network) -> Tables:
    """The tables that the brokers have now."""
    found = Tables({broker.number: set(broker.local.filters) for broker in network.brokers})
    for broker in network.brokers:
        for tree, part in network.newest_parts(broker.number).items():
            for neighbour, table in part.tables.items():
                side = Side(set(table.filters), pruned=table.pruned_by())
                ledger = part.at(neighbour).ledgers.get(broker.number)
                if ledger is not None:
                    side.sent, side.dormant = set(ledger.sent), set(ledger.dormant)
                    side.suppressed = {s: coverers for s, (_, coverers) in ledger.suppressed.items()}
                found.sides[broker.number, neighbour, tree] = side
    return found


# ── from a trace ───────────────────────────────────────────────────────────────────────────────────────────


def missing(parameters: Mapping[str, Any], crashed: bool) -> str | None:
    """Why the tables of a run do not follow from its trace; None if they do."""
    faults, run = parameters.get("faults", {}), parameters.get("run", {})
    if parameters.get("arrivals", {}).get("kind") == "preloaded":
        return "what was preloaded spread before time 0, and its hops are not in the trace"
    if parameters.get("routing", {}).get("failover", "none") != "none":
        return "trees may be switched over, and the trace does not say what brokers forget with an old one"
    if parameters.get("routing", {}).get("mode") == "prune":
        return "what receivers prune is not in the trace"
    if run.get("sample_decisions", 1.0) < 1.0:
        return f"the trace keeps {100 * run['sample_decisions']:g} % of the subscriptions' decisions"
    if crashed and ("file" in faults or faults.get("state") != "kept"):
        return "brokers crashed, and the trace does not say what they remembered"
    return None


def of_trace(control: pa.Table, decisions: pa.Table, at: float) -> Tables:
    """Replay what brokers processed and decided up to a time, that time included."""
    replay = _Replay()
    steps = [
        *_until(at, decisions, 0, "broker", "neighbour", "tree", "subscription", "outcome", "witness"),
        *_until(at, control, 1, "target", "source", "tree", "subscription", "kind"),
    ]
    # All that happens at one moment is taken together: the trace does not say which decision belongs to which message.
    steps.sort(key=itemgetter(0, 1))  # stable
    for _, moment in groupby(steps, key=itemgetter(0)):
        for _, is_message, *step in moment:
            (replay.message if is_message else replay.decision)(*step)
        replay.end_of_moment()
    return replay.tables()


def _until(at: float, table: pa.Table, order: int, *names: str) -> Iterator[tuple[Any, ...]]:
    chosen = table.select(["time", *names]).filter(pc.less_equal(table.column("time"), at))
    columns = [column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column for column in chosen.columns]
    time, *others = (column.to_pylist() for column in columns)
    return ((when, order, *rest) for when, *rest in zip(time, *others, strict=True))


class _Replay:
    """Tables and ledgers, moment by moment."""

    def __init__(self) -> None:
        self._found = Tables()
        self._dependants: dict[Place, dict[int, set[int]]] = {}  # side → coverer → suppressed
        self._from: dict[int, list[Place]] = {}  # sender → its sides
        self._left: dict[tuple[int, int, int, int], bool] = {}  # at this moment: did it leave last, or come?

    def _side(self, place: Place) -> Side:
        if place not in self._found.sides:
            self._found.sides[place] = Side()
            self._from.setdefault(place[1], []).append(place)
        return self._found.sides[place]

    def message(self, broker: int, source: int, tree: int, subscription: int, kind: str) -> None:
        if kind not in ("subscribe", "unsubscribe"):
            return
        own = self._found.local.setdefault(broker, set())
        table = own if source == CLIENT else self._side((broker, source, tree)).held
        leaves = kind == "unsubscribe"
        self._left[broker, source, tree, subscription] = leaves
        (table.discard if leaves else table.add)(subscription)

    def decision(self, broker: int, neighbour: int, tree: int, subscription: int, outcome: str, witness: int) -> None:
        place = (neighbour, broker, tree)
        side = self._side(place)
        if outcome == "retracted":
            for dependant in sorted(self._dependants.get(place, {}).get(subscription, ())):
                coverers = side.suppressed[dependant]
                handed_over = dict.fromkeys(witness if c == subscription else c for c in coverers)
                self._put(place, dependant, tuple(handed_over))
        before, was_sent = side.suppressed.get(subscription, ()), subscription in side.sent
        self._drop(place, subscription)
        if outcome in ("forwarded", "exposed"):
            side.sent.add(subscription)
        elif outcome == "dormant":
            side.dormant.add(subscription)
        elif outcome == "united":
            self._put(place, subscription, (*before, witness))
        elif outcome != "retracted" or was_sent:  # else a merger of this ledger was merged into another, and is gone
            self._put(place, subscription, (witness,))

    def end_of_moment(self) -> None:
        """Drop what brokers had decided about subscriptions that they no longer know."""
        for (broker, source, tree, subscription), gone in self._left.items():
            for place in self._from.get(broker, ()) if gone else ():
                if place[0] != source and (source == CLIENT or place[2] == tree):
                    self._drop(place, subscription)
        self._left.clear()

    def _put(self, place: Place, subscription: int, coverers: tuple[int, ...]) -> None:
        self._drop(place, subscription)
        self._found.sides[place].suppressed[subscription] = coverers
        for coverer in coverers:
            self._dependants.setdefault(place, {}).setdefault(coverer, set()).add(subscription)

    def _drop(self, place: Place, subscription: int) -> None:
        side = self._found.sides[place]
        side.sent.discard(subscription)
        side.dormant.discard(subscription)
        for coverer in side.suppressed.pop(subscription, ()):
            self._dependants[place][coverer].discard(subscription)

    def tables(self) -> Tables:
        for side in self._found.sides.values():
            side.sent |= {coverer for coverers in side.suppressed.values() for coverer in coverers}
        return self._found


# ── of a run on disk ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Found:
    """The tables of a run at a time, and where they come from."""

    trace: RunTrace
    at: float
    tables: Tables
    said: str  # the source, in words
    down: tuple[int, ...]  # brokers that are down at that time; their tables are what they had


def find(trace: RunTrace, at: float | None, note: Callable[[str], None] = nobody, tell: Tell = nobody) -> Found:
    """The tables of a run at a time (None: at the end), from its trace or, if that lacks some, simulated again."""
    finished = float(trace.record["finished"])
    if at is not None and not 0 <= at <= finished:
        raise CoverlayError(f"--at {at:g} is outside of run {trace.run_id}, which lasted from 0 to {finished:.10g} ms")
    when = finished if at is None else at
    faults = trace.read("faults")
    reason = missing(trace.parameters, bool((faults["kind"] == CRASH).any()))
    if reason is None:
        told = of_trace(trace.arrow("control"), trace.arrow("decisions"), when)
        return Found(trace, when, told, "from its trace", _down(faults, when))
    seconds = (int(trace.record["control_messages"]) + int(trace.record["event_messages"])) / A_SECOND
    if seconds > PATIENCE:
        note(f"{reason}; simulating the run again takes about {seconds:.0f} s")
    tables = _simulated(trace, None if when == finished else when, tell)
    said = f"simulated again, with the recorded trace hash {trace.record['trace_hash']}: {reason}"
    return Found(trace, when, tables, said, _down(faults, when))


def _down(faults: pd.DataFrame, at: float) -> tuple[int, ...]:
    """The brokers that have crashed and not restarted."""
    faults = faults[(faults["time"] <= at) & faults["kind"].isin([CRASH, RESTART])]
    last = faults.drop_duplicates("broker", keep="last")
    return tuple(sorted(last.loc[last["kind"] == CRASH, "broker"].tolist()))


def _simulated(trace: RunTrace, at: float | None, tell: Tell) -> Tables:
    """Run it again with the reference engine, ask its brokers, and compare the trace hash with the record."""
    run, record = trace.planned(), trace.record
    experiment, stream = run.experiment, streams(run.seed)
    overlay, workload = overlay_of(experiment, stream), workload_of(experiment, stream)
    seen: list[Tables] = []
    look = Look(at, lambda network: seen.append(of_network(network)))
    ran = run_simpy(replace(inputs_of(experiment, overlay, workload, stream), tell=tell, look=look))
    found = trace_hash(thin(ran.tables, experiment.run.sample_decisions, experiment.run.sample_deliveries))
    if found != record["trace_hash"]:
        raise CoverlayError(
            f"simulated again, run {trace.run_id} has the trace hash {found} instead of {record['trace_hash']}: other "
            f"versions made it ({record['versions']}), and its tables cannot be shown"
        )
    return seen[0]
