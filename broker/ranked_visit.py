"""The k best in the whole network (`matching.scope = "network"`): how one broker looks for them, and serves them.

Brokers *ask* each other who matches an event best, *answers* come back, and *awards* are sent to the winners:

- A broker that is asked knows candidates: the best of its own clients and, with ranked tables, the best entries of each
  neighbour, which are subscriptions too. The best entry of a neighbour bounds what is hidden behind it: every
  subscription that was held back has an entry in the table that contains and outranks it (routing/rank.py).
- It asks the neighbours behind which a winner may be hidden, best bound first, all at once or some at a time. A
  neighbour whose bound does not beat the k-th best known, here or where the event came from, is skipped.
- When all neighbours that it asked have answered, it answers with the k best it knows.
- The publisher's broker awards a candidate once nothing hidden can outrank it. An award travels hop by hop to the
  winner's broker, which serves the winner. It carries the event to brokers that do not have it yet.

`routing.rank` says who is asked. `none`: every neighbour that plain routing sends the event to, because nothing is
known about scores. `cover`: as above. `skyband`: nobody, because all possible winners are in the tables.

A key is (−score, id): the smaller one is better, and no two are equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.around import BrokerAround
from broker.messages import Key, Message, Publication, Reply, Winner
from broker.settings import RankedRouting
from broker.tables import LocalTable, Looked, RankedTable
from broker.trace.schema import CLIENT
from broker.work import event_time, matching_time, ranked_tables_time, tables_time

ANYTHING: Key = (-math.inf, -1)  # the bound where nothing is known
NOTHING: Key = (math.inf, -1)  # worse than every key


@dataclass(slots=True)
class Work:
    """What looking for candidates cost, counted as in the trace."""

    done: bool = False
    entries: int = 0
    nodes: int = 0
    tables: Looked = (0, 0, 0)


@dataclass(slots=True)
class Visit:
    """What a broker knows about one event."""

    message: Publication  # the copy that came here
    row: int = -1  # its row in the trace
    candidates: list[Key] = field(default_factory=list)  # the best known here that are not awarded yet, best first
    awarded: set[Key] = field(default_factory=set)
    way: dict[int, int] = field(default_factory=dict)  # candidate → the neighbour it is behind, or CLIENT
    bounds: dict[int, Key] = field(default_factory=dict)  # neighbour → the best that can be behind it
    ahead: list[int] = field(default_factory=list)  # neighbours to ask, best bound first
    waiting: set[int] = field(default_factory=set)  # neighbours asked that have not answered
    told: set[int] = field(default_factory=set)  # neighbours that have the event
    answered: bool = False

    @property
    def at_publisher(self) -> bool:
        return self.message.source == CLIENT


class Visits:
    """The events that are under way at one broker."""

    def __init__(self, broker: BrokerAround, settings: RankedRouting) -> None:
        self.broker = broker
        self.settings = settings
        self.open: dict[int, Visit] = {}
        # Who is served when the service ends; for a reply also how many, and how many copies of the event leave.
        self._due: list[tuple[Visit, list[Winner], float, tuple[int, int]]] = []
        self._work = Work()  # of the current message

    # ── messages ───────────────────────────────────────────────────────────────────────────────────────

    def event(self, message: Publication) -> float:
        """Process a copy of an event, which asks, brings awards, or both; returns how long its service takes."""
        broker, now = self.broker, self.broker.network.env.now
        visit = self.open[message.event] = Visit(message)
        broker.network.opened(message.event, broker.number)
        self._work = Work()
        if message.asks:
            self._look(visit)
        visit.row = broker.network.recorder.next_publication
        served = self._proceed(visit, message.winners)
        times = self._took(message, len(served))
        counts = (self._work.entries, self._work.nodes, *self._work.tables)
        broker.record_publication(message, len(served), broker.outgoing_events, counts, times)
        broker.record_ranked(message, "query" if message.asks else "award", times[0])
        self._due = [(visit, served, now + times[0], (0, 0))]
        return times[0]

    def reply(self, message: Reply) -> float:
        """Process an answer or an award; one that comes after its event is over here is ignored."""
        broker, now, served = self.broker, self.broker.network.env.now, list[Winner]()
        visit, self._work = self.open.get(message.event), Work()
        if visit is not None and message.kind == "award":
            served = self._proceed(visit, message.found)
        elif visit is not None and message.source in visit.waiting:
            visit.waiting.remove(message.source)
            for _, key in message.found:
                visit.way[key[1]] = message.source
            self._learn(visit, (key for _, key in message.found))
            served = self._proceed(visit)
        took, *_ = self._took(message, len(served))
        broker.record_ranked(message, message.kind, took)
        if visit is not None:
            self._due = [(visit, served, now + took, (len(served), broker.outgoing_events))]
        return took

    def _took(self, message: Message, served: int) -> tuple[float, float, float]:
        """The service time of the current message, and its parts spent on tables and on matching."""
        broker, work, prices = self.broker, self._work, self.broker.network.settings.prices
        if prices is None:
            return broker.took(message), 0.0, 0.0
        plain = self.settings.rank == "none"
        on_tables = tables_time(prices, *work.tables[:2]) if plain else ranked_tables_time(prices, *work.tables)
        on_matching = matching_time(prices, work.entries, work.nodes) if work.done and len(broker.local) else 0.0
        return event_time(prices, on_tables, on_matching, served, broker.outgoing_bytes), on_tables, on_matching

    def end(self) -> None:
        """Serve at the end of a service. What a reply led to is added to the event message that came here before."""
        due, self._due = self._due, []
        for visit, winners, when, later in due:
            self.broker.network.recorder.follow_up(visit.row, *later)
            self._serve(visit, winners, when)

    def crash(self) -> None:
        """Forget all events, and whoever was about to be served."""
        self.open.clear()
        self._due.clear()

    def link_down(self, neighbour: int) -> list[int]:
        """Go on without a neighbour that can no longer answer; returns the events that may be over now."""
        for visit in self.open.values():
            if neighbour in visit.waiting:
                visit.waiting.remove(neighbour)
                told = len(visit.told)
                served = self._proceed(visit)
                self.broker.network.recorder.follow_up(visit.row, len(served), len(visit.told) - told)
                self._serve(visit, served, self.broker.network.env.now)
        return list(self.open)

    def refuse(self, message: Publication) -> None:
        """An event found no room: answer with nothing, so that the sender does not wait."""
        if message.asks and message.source != CLIENT:
            self._answer(message, ())

    def worth(self, message: Publication) -> float:
        """The best score that an event can still win here or behind: of an award, or of a bound above the limit."""
        limit, best = message.limit or NOTHING, [-key[0] for _, key in message.winners]
        if message.asks:
            part = self.broker.parts[message.tree]
            others = [part.tables[n] for n in part.neighbours if n != message.source and len(part.tables[n])]
            for table in (self.broker.local, *others):
                assert isinstance(table, LocalTable | RankedTable)
                ids, scores, *_ = table.top(message.values, 1, message.weights)
                if len(ids) and (-float(scores[0]), int(ids[0])) < limit:
                    best.append(float(scores[0]))
        return max(best, default=-math.inf)

    # ── candidates ─────────────────────────────────────────────────────────────────────────────────────

    def _look(self, visit: Visit) -> None:
        """Find the candidates that are known here, and the neighbours that may hide more."""
        message, k, broker = visit.message, self.settings.k, self.broker
        part, work = broker.parts[message.tree], self._work
        work.done = True
        ids, scores, work.entries, work.nodes = broker.local.top(message.values, k, message.weights)
        found = [(CLIENT, ids, scores)]
        if self.settings.rank == "none":
            interested, work.tables = part.wants(message.source, message.values)
            visit.bounds = dict.fromkeys(interested, ANYTHING)
        else:
            for neighbour in part.neighbours:
                table = part.tables[neighbour]
                if neighbour != message.source and len(table):
                    assert isinstance(table, RankedTable)
                    ids, scores, entries, nodes = table.top(message.values, k, message.weights)
                    asked, compared, looked = work.tables
                    work.tables = asked + 1, compared + entries, looked + nodes
                    if len(ids):
                        found.append((neighbour, ids, scores))
                        visit.bounds[neighbour] = (-float(scores[0]), int(ids[0]))
        for where, ids, scores in found:
            keys = [(-score, id) for id, score in zip(ids.tolist(), scores.tolist(), strict=True)]
            visit.way.update((id, where) for _, id in keys)
            self._learn(visit, keys)
        if self.settings.rank != "skyband":
            visit.ahead = sorted(visit.bounds, key=lambda n: (visit.bounds[n], n))

    def _learn(self, visit: Visit, keys: Iterable[Key]) -> None:
        """Add candidates. If a score has just changed, the later of the two counts: it comes from nearer by."""
        taken = {subscription for _, subscription in visit.awarded}
        known = {key[1]: key for key in (*visit.candidates, *keys) if key[1] not in taken}
        visit.candidates = sorted(known.values())[: self.settings.k - len(visit.awarded)]

    def _limit(self, visit: Visit) -> Key:
        """The k-th best known, here or to the sender when it sent the event."""
        known = visit.awarded.union(visit.candidates)
        here = max(known) if len(known) == self.settings.k else NOTHING
        return min(here, visit.message.limit or NOTHING)

    # ── what follows ───────────────────────────────────────────────────────────────────────────────────

    def _proceed(self, visit: Visit, winners: Iterable[Winner] = ()) -> list[Winner]:
        """Ask, award and answer whatever is due now; returns the winners to serve here."""
        asking = self._ask(visit)
        awards = [*winners, *(self._sure(visit) if visit.at_publisher else ())]
        served = self._send(visit, asking, awards)
        over = not visit.waiting and not visit.ahead
        if over and visit.message.asks and not visit.at_publisher and not visit.answered:
            visit.answered = True
            limit = visit.message.limit or NOTHING
            self._answer(visit.message, tuple((0, key) for key in visit.candidates if key < limit))
        return served

    def _ask(self, visit: Visit) -> list[int]:
        """The neighbours to ask now: the next wave, once the last one has answered."""
        asking: list[int] = []
        while visit.ahead and not visit.waiting:
            limit = self._limit(visit) if self.settings.threshold else NOTHING
            visit.ahead = [n for n in visit.ahead if visit.bounds[n] < limit]
            wave = visit.ahead[: self.settings.at_a_time]
            visit.ahead = visit.ahead[len(wave) :]
            asking += wave
            self._wait_for(visit, wave)
        return asking

    def _wait_for(self, visit: Visit, asked: Iterable[int]) -> None:
        """Wait for neighbours whose links are up; the others will not answer."""
        visit.waiting.update(n for n in asked if self.broker.links[n].up)

    def _sure(self, visit: Visit) -> list[Winner]:
        """Candidates that nothing hidden can outrank: what is hidden never beats the bound of its neighbour."""
        bound = min((visit.bounds[n] for n in (*visit.waiting, *visit.ahead)), default=NOTHING)
        sure = [key for key in visit.candidates if key <= bound]
        visit.candidates = visit.candidates[len(sure) :]
        winners = [(len(visit.awarded) + place, key) for place, key in enumerate(sure, 1)]
        visit.awarded.update(sure)
        return winners

    def _send(self, visit: Visit, asking: list[int], winners: list[Winner]) -> list[Winner]:
        """Send the event and awards on, one message per neighbour; returns the winners to serve here."""
        served: list[Winner] = []
        onward: dict[int, list[Winner]] = {n: [] for n in asking}
        for winner in winners:
            if winner[1][1] in self.broker.local:
                served.append(winner)
                continue
            for neighbour in self._ways(visit, winner[1]):
                onward.setdefault(neighbour, []).append(winner)
        for neighbour, awards in onward.items():
            if neighbour in visit.ahead:  # an award takes the event there before its turn: ask it now
                visit.ahead.remove(neighbour)
                self._wait_for(visit, [neighbour])
                asking = [*asking, neighbour]
            self._pass_on(visit, neighbour, neighbour in asking, tuple(awards))
        return served

    def _pass_on(self, visit: Visit, neighbour: int, asks: bool, winners: tuple[Winner, ...]) -> None:
        message, broker = visit.message, self.broker
        now = broker.network.env.now
        if neighbour in visit.told:
            assert not asks, "a neighbour is asked once"
            broker.send(neighbour, Reply("award", message.event, winners, broker.number, now, message.tree))
            return
        visit.told.add(neighbour)
        limit = self._limit(visit) if asks and self.settings.threshold and self.settings.rank != "none" else NOTHING
        event = message.event, message.values, message.published
        way = broker.number, now, message.hop + 1, visit.row, message.tree
        best = limit if limit < NOTHING else None
        broker.send(neighbour, Publication(*event, *way, message.weights, asks, best, winners))

    def _ways(self, visit: Visit, key: Key) -> list[int]:
        """The neighbours to send an award to: the one that named the winner, or whose table has it.

        A table may have lost it while the award was under way, because a wider one represents it now. Then it is behind
        one of the neighbours with an entry that outranks it.
        """
        subscription, part = key[1], self.broker.parts[visit.message.tree]
        others = [n for n in part.neighbours if n != visit.message.source]
        if visit.way.get(subscription, CLIENT) != CLIENT:
            return [visit.way[subscription]]
        for neighbour in others:
            if subscription in part.tables[neighbour]:
                return [neighbour]
        if not visit.message.asks and not visit.bounds:
            self._look(visit)
            visit.ahead, visit.candidates = [], []
        return [n for n in others if visit.bounds.get(n, NOTHING) < key]

    def _answer(self, message: Publication, found: tuple[Winner, ...]) -> None:
        now = self.broker.network.env.now
        self.broker.send(message.source, Reply("answer", message.event, found, self.broker.number, now, message.tree))

    def _serve(self, visit: Visit, winners: list[Winner], when: float) -> None:
        if winners:
            message, broker = visit.message, self.broker
            about = (message.event, broker.number, when, message.hop, when - message.published)
            broker.network.recorder.awarded(about, winners)
