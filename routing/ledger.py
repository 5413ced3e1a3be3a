"""The ledger of one directed link: what was sent to the neighbour, and what was held back, by whom.

Rules (docs/design.md), each enforced here and verified by check():

1. A subscription that the broker knows from anywhere but the neighbour is in exactly one state:
   *sent*, or *suppressed* with a stored coverer that is itself sent and truly contains it, or several that do so
   together. With advertisements there is a third: *dormant*, while nothing advertised behind the link overlaps it.
2. When a sent subscription leaves, everything that it suppressed, alone or with others, is looked at again, widest
   first (covering/widest_first.py): nothing is sent just before what contains it. What is exposed is sent before the
   unsubscription (make before break): at no time does an interest lack a representative.
3. The coverer is stored, never derived again: an approximate search may miss today what it found yesterday.
4. Lazy mode leaves entries upstream that a later, wider subscription covers; active mode retracts them, and
   what they suppressed is handed to the wider one (containment is transitive; hits are always verified). An entry
   that holds something back together with others stays unless it can be shown that the wider one does so too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from covering.stats import Asked, footprint, pages_and_trips
from routing.contract import LinkStrategy, Search
from routing.filter import Filter, contain_together, widest_first


class Kind(IntEnum):
    """What a control message asks of the broker that receives it."""

    SUBSCRIBE = 0
    UNSUBSCRIBE = 1
    ADVERTISE = 2
    UNADVERTISE = 3
    RERANK = 4  # the same subscription, with another score, other weights or another place


@dataclass(frozen=True, slots=True)
class Decision:
    """One row of the trace: why a subscription was or was not sent over this link."""

    subscription: int
    outcome: str  # forwarded | suppressed | exposed | retracted | united | merged | dormant
    search: Search
    exact: bool | None  # would an exact search have found a cover? None if not asked


LedgerMessage = tuple[Kind, int, Filter]


class LinkLedger:
    """Decides what is sent over one link, and remembers why."""

    def __init__(
        self,
        strategy: LinkStrategy,
        *,
        active: bool = False,
        exact_twin: LinkStrategy | None = None,
        on_decision: Callable[[Decision], None] | None = None,
        wanted: Callable[[Filter], bool] | None = None,
    ) -> None:
        self.strategy = strategy
        self.active = active
        self.exact_twin = exact_twin  # asked beside an approximate strategy, to measure its recall
        self._structures = [strategy] if exact_twin is None else [strategy, exact_twin]
        self.on_decision = on_decision
        self.wanted = wanted  # could anything advertised behind the link match? None: no advertisements
        self.sent: dict[int, Filter] = {}
        self.suppressed: dict[int, tuple[Filter, tuple[int, ...]]] = {}  # → (filter, coverers)
        self.dormant: dict[int, Filter] = {}
        self._dependants: dict[int, dict[int, None]] = {}  # coverer → suppressed, in order of arrival

    def subscribe(self, subscription: int, filter: Filter) -> list[LedgerMessage]:
        """The messages to send, in order, now that the broker knows `subscription`."""
        assert subscription not in self.sent
        assert subscription not in self.suppressed
        return self._decide(subscription, filter, "forwarded")

    def unsubscribe(self, subscription: int) -> list[LedgerMessage]:
        """The messages to send, in order, now that `subscription` has left the broker."""
        if self.dormant.pop(subscription, None) is not None:
            return []
        if subscription in self.suppressed:
            self._release(subscription)
            return []
        return self._take_back([subscription])

    def tell(self, kind: Kind, subscription: int, filter: Filter) -> list[LedgerMessage]:
        """The messages to send, in order, now that the broker heard this."""
        if kind is Kind.SUBSCRIBE:
            return self.subscribe(subscription, filter)
        return self.rerank(subscription, filter) if kind is Kind.RERANK else self.unsubscribe(subscription)

    def load(self, heard: Sequence[tuple[int, LedgerMessage]], at_once: bool) -> list[tuple[int, LedgerMessage]]:
        """The messages to send after all that a broker hears before time 0, each with its operation.

        `at_once`: decide about all subscriptions together, where that sends the same ones; their numbers ascend. Who
        holds a subscription back may then differ from deciding one by one.
        """
        covers = None
        if at_once and not self.active and self.wanted is None:
            ids = [subscription for _, (_, subscription, _) in heard]
            covers = self.strategy.add_uncovered(ids, [self._shown(*message[1:]) for _, message in heard])
        if covers is None:
            return [(operation, answer) for operation, message in heard for answer in self.tell(*message)]
        sent = []
        for said, cover in zip(heard, covers, strict=True):
            _, (_, subscription, filter) = said
            if cover is None:
                self.sent[subscription] = filter
                sent.append(said)
            else:
                self._suppress(subscription, filter, (cover,))
        return sent

    def rerank(self, subscription: int, filter: Filter) -> list[LedgerMessage]:
        """The messages to send, in order, now that `subscription` asks for the same and ranks differently.

        Here, who covers whom does not depend on rank.
        """
        if subscription in self.sent:
            self.sent[subscription] = filter
            return [(Kind.RERANK, subscription, filter)]
        if subscription in self.suppressed:
            self.suppressed[subscription] = (filter, self.suppressed[subscription][1])
        else:
            self.dormant[subscription] = filter
        return []

    def reconsider(self) -> list[LedgerMessage]:
        """What to send after the advertisements behind the link changed: first what wakes, then what falls asleep."""
        assert self.wanted is not None
        woken = {subscription: filter for subscription, filter in self.dormant.items() if self.wanted(filter)}
        for subscription in woken:
            del self.dormant[subscription]
        messages = self._decide_all(woken, "forwarded")
        asleep = [sent for sent, filter in self.sent.items() if not self.wanted(filter)]
        for subscription in asleep:
            if subscription not in self.invented():
                self.dormant[subscription] = self.sent[subscription]
                self._record(subscription, "dormant", Search(None, volume=0.0), None)
        return [*messages, *self._take_back(asleep)]

    def invented(self) -> set[int]:
        """Sent entries that no client asked for (mergers)."""
        return set()

    def _take_back(self, subscriptions: Sequence[int]) -> list[LedgerMessage]:
        """Take sent entries back: first send what they expose, then the unsubscriptions."""
        leaving = {subscription: self.sent.pop(subscription) for subscription in subscriptions}
        for subscription, filter in leaving.items():
            self._structures_remove(subscription, filter)
        # Release all before deciding on the first, which may retract what holds others back together with a leaver.
        held_back = dict.fromkeys(d for subscription in leaving for d in self._dependants.get(subscription, ()))
        exposed = {dependant: self._release(dependant) for dependant in held_back}
        messages = self._decide_all(exposed, "exposed")
        return [*messages, *((Kind.UNSUBSCRIBE, subscription, filter) for subscription, filter in leaving.items())]

    def _decide_all(self, filters: Mapping[int, Filter], outcome_if_sent: str) -> list[LedgerMessage]:
        """Decide about several, widest first: what is sent holds back what it contains."""
        order = widest_first(filters, self.strategy.options.domain, self._finer)
        return [message for s in order for message in self._decide(s, filters[s], outcome_if_sent)]

    def _finer(self, subscription: int, filter: Filter) -> tuple[float, ...]:
        """What decides between filters of the same box: smaller for what contains more."""
        return filter.residue.strictness(filter.box, self.strategy.options.integral)

    def _decide(self, subscription: int, filter: Filter, outcome_if_sent: str) -> list[LedgerMessage]:
        if self.wanted is not None and not self.wanted(filter):
            self.dormant[subscription] = filter
            self._record(subscription, "dormant", Search(None, volume=0.0), None)
            return []
        search = self._find_cover(self.strategy, subscription, filter)
        exact = self._exact_answer(subscription, filter, search)
        if search.witness is not None:
            self._suppress(subscription, filter, (search.witness, *search.others))
            self._record(subscription, "suppressed", search, exact)
            for other in search.others:
                self._record(subscription, "united", Search(other, volume=0.0), None)
            return []
        return self._send(subscription, filter, outcome_if_sent, search, exact)

    def _send(
        self, subscription: int, filter: Filter, outcome: str, search: Search, exact: bool | None
    ) -> list[LedgerMessage]:
        covered: list[int] = []
        if self.active:
            covered = self._find_covered(subscription, filter)
            search = replace(search, held=(*search.held, *self.strategy.held()))
        self.sent[subscription] = filter
        self._structures_add(subscription, filter)
        self._record(subscription, outcome, search, exact)
        wider_first: LedgerMessage = (Kind.SUBSCRIBE, subscription, filter)
        needless = [other for other in covered if self._can_replace(other, subscription)]
        return [wider_first, *(self._retract(other, subscription) for other in needless)]

    def _can_replace(self, entry: int, coverer: int) -> bool:
        """Can `coverer` provably take the place of `entry` in everything that `entry` holds back with others?"""
        held = ((s, *self.suppressed[s]) for s in self._dependants.get(entry, ()))
        return all(
            len(coverers) == 1 or self._stand_for(_handed_over(coverers, entry, coverer), dependant, filter)
            for dependant, filter, coverers in held
        )

    def _retract(self, subscription: int, coverer: int) -> LedgerMessage:
        filter = self.sent.pop(subscription)
        self._structures_remove(subscription, filter)
        self._suppress(subscription, filter, (coverer,))
        for dependant in list(self._dependants.get(subscription, ())):
            coverers = _handed_over(self.suppressed[dependant][1], subscription, coverer)
            self._suppress(dependant, self._release(dependant), coverers)
        self._record(subscription, "retracted", Search(coverer, volume=0.0), None)
        return Kind.UNSUBSCRIBE, subscription, filter

    def _suppress(self, subscription: int, filter: Filter, coverers: tuple[int, ...]) -> None:
        self.suppressed[subscription] = (filter, coverers)
        for coverer in coverers:
            self._dependants.setdefault(coverer, {})[subscription] = None

    def _release(self, subscription: int) -> Filter:
        """It is no longer suppressed; its filter."""
        filter, coverers = self.suppressed.pop(subscription)
        for coverer in coverers:
            dependants = self._dependants[coverer]
            del dependants[subscription]
            if not dependants:
                del self._dependants[coverer]
        return filter

    def _find_cover(self, strategy: LinkStrategy, subscription: int, filter: Filter) -> Search:
        found = strategy.find_cover(subscription, filter)
        return found if found.asked or not found.probes else _charged(strategy, found, len(filter.box))

    def _find_covered(self, subscription: int, filter: Filter) -> list[int]:
        return self.strategy.find_covered(filter)

    def _stand_for(self, coverers: tuple[int, ...], subscription: int, filter: Filter) -> bool:
        """May these sent entries hold a subscription back?"""
        return contain_together([self.sent[c] for c in coverers], filter, self.strategy.options.integral)

    def _exact_answer(self, subscription: int, filter: Filter, search: Search) -> bool | None:
        if search.witness is not None or not self.strategy.approximate:
            return search.witness is not None  # hits are verified, and an exact strategy misses nothing
        if self.exact_twin is None:
            return None
        return self._find_cover(self.exact_twin, subscription, filter).witness is not None

    def _shown(self, subscription: int, filter: Filter) -> Filter:
        """A filter in the form that the search works on."""
        return filter

    def _structures_add(self, subscription: int, filter: Filter) -> None:
        for structure in self._structures:
            structure.add(subscription, self._shown(subscription, filter))

    def _structures_remove(self, subscription: int, filter: Filter) -> None:
        for structure in self._structures:
            structure.remove(subscription, self._shown(subscription, filter))

    def _record(self, subscription: int, outcome: str, search: Search, exact: bool | None) -> None:
        if self.on_decision is not None:
            self.on_decision(Decision(subscription, outcome, search, exact))

    def introduce(self, filters: Mapping[int, Filter]) -> list[LedgerMessage]:
        """The messages to send, in order, now that the broker knows all these at once."""
        return self._decide_all(filters, "forwarded")

    def known_as(self, subscription: int) -> Filter | None:
        """The filter of a subscription that a decision was made about."""
        if subscription in self.suppressed:
            return self.suppressed[subscription][0]
        return self.sent.get(subscription, self.dormant.get(subscription))

    @property
    def known(self) -> dict[int, Filter]:
        """The subscriptions that a decision was made about."""
        held_back = {subscription: filter for subscription, (filter, _) in self.suppressed.items()}
        invented = self.invented()
        return {**{s: f for s, f in self.sent.items() if s not in invented}, **held_back, **self.dormant}

    def check(self) -> None:
        """Raise AssertionError when a rule above is broken."""
        assert not self.sent.keys() & self.suppressed.keys(), "sent and suppressed at once"
        assert not self.dormant.keys() & (self.sent.keys() | self.suppressed.keys()), "dormant and awake at once"
        if self.wanted is not None:
            assert all(map(self.wanted, self.sent.values())), "sent where nothing advertised overlaps it"
            assert not any(map(self.wanted, self.dormant.values())), "dormant although something overlaps it"
        for subscription, (filter, coverers) in self.suppressed.items():
            for coverer in coverers:
                assert coverer in self.sent, f"{subscription} is suppressed by {coverer}, which was not sent"
                assert subscription in self._dependants[coverer]
            assert self._stand_for(coverers, subscription, filter), f"{coverers} do not contain {subscription}"
        listed = sum(len(dependants) for dependants in self._dependants.values())
        stored = sum(len(coverers) for _, coverers in self.suppressed.values())
        assert listed == stored, "a dependant is listed that is not suppressed"
        self.strategy.check()


def _handed_over(coverers: tuple[int, ...], entry: int, coverer: int) -> tuple[int, ...]:
    """Who holds a subscription back once `coverer` has taken the place of `entry`."""
    return tuple(dict.fromkeys(coverer if c == entry else c for c in coverers))


def _charged(strategy: LinkStrategy, found: Search, attributes: int) -> Search:
    """The answer of a strategy that does not say what its probes are charged as: they are boxes that it compared."""
    pages = pages_and_trips(found.probes, 0, *footprint("boxes", attributes))
    return replace(found, asked=(Asked(strategy.name, found.probes, *pages),))
