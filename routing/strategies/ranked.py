"""Rank-covering (`routing.rank = "cover"`; Zhang et al., ICDCS 2017), see routing/rank.py and docs/ranked.md.

A subscription is held back by a sent one that contains and outranks it. The ledger gives the search filters with extra
rows for the rank. Where scores are equal, an index may find one with a larger id, which does not outrank. Then it is
asked once more, for higher scores alone. What that misses is sent, like anything that an approximate search misses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from routing.contract import LinkStrategy, RoutingOptions, Search
from routing.filter import Filter
from routing.ledger import Kind, LedgerMessage, LinkLedger
from routing.rank import Rank


def with_rows(options: RoutingOptions) -> RoutingOptions:
    """The options of a search among filters with rows for the rank, if there is one."""
    if options.rank is None:
        return options
    rows = len(options.rank.lowest)
    integral = None if options.integral is None else (*options.integral, *[False] * rows)
    return replace(options, domain=options.rank.domain(options.domain), integral=integral)


class OutrankingLedger(LinkLedger):
    """Whoever holds a subscription back contains and outranks it."""

    def __init__(self, strategy: LinkStrategy, rank: Rank, **options: Any) -> None:
        super().__init__(strategy, **options)
        self.rank = rank

    def rerank(self, subscription: int, filter: Filter) -> list[LedgerMessage]:
        """If its score falls, what it no longer holds back is sent before the new score (make before break).

        If its score rises, nothing is retracted: entries that it makes needless stay, as in lazy mode.
        """
        if subscription in self.suppressed:
            self._release(subscription)
            return self._decide(subscription, filter, "exposed")
        self._structures_remove(subscription, self.sent[subscription])
        self.sent[subscription] = filter
        self._structures_add(subscription, filter)
        held = [(s, *self.suppressed[s]) for s in self._dependants.get(subscription, ())]
        exposed = {s: f for s, f, coverers in held if not self._stand_for(coverers, s, f)}
        for dependant in exposed:  # all, before deciding on one changes what holds the others back
            self._release(dependant)
        messages = self._decide_all(exposed, "exposed")
        # In active mode one of them may cover it now: it is retracted after all of them are sent, not before.
        first = [message for message in messages if message[:2] != (Kind.UNSUBSCRIBE, subscription)]
        return [*first, (Kind.RERANK if subscription in self.sent else Kind.UNSUBSCRIBE, subscription, filter)]

    def _outranks(self, coverer: int, subscription: int, filter: Filter) -> bool:
        return self.rank.outranks(coverer, self.sent[coverer], subscription, filter)

    def _finer(self, subscription: int, filter: Filter) -> tuple[float, ...]:
        return (*super()._finer(subscription, filter), *self.rank.standing(subscription, filter))

    def _stand_for(self, coverers: tuple[int, ...], subscription: int, filter: Filter) -> bool:
        integral = None if (whole := self.strategy.options.integral) is None else whole[: len(filter.box)]
        return all(
            self.sent[c].contains(filter, integral) and self._outranks(c, subscription, filter) for c in coverers
        )


class RankedLedger(OutrankingLedger):
    """A subscription is held back by one that contains and outranks it."""

    def _shown(self, subscription: int, filter: Filter) -> Filter:
        return self.rank.ranked(subscription, filter)

    def _find_cover(self, strategy: LinkStrategy, subscription: int, filter: Filter) -> Search:
        found = strategy.find_cover(subscription, self._shown(subscription, filter))
        if found.witness is None or self._outranks(found.witness, subscription, filter):
            return found
        again = strategy.find_cover(subscription, self.rank.ranked(subscription, filter, above=True))
        return replace(
            again,
            probes=found.probes + again.probes,
            cubes=found.cubes + again.cubes,
            runs=found.runs + again.runs,
            capped=found.capped or again.capped,
            asked=(*found.asked, *again.asked),
        )

    def _find_covered(self, subscription: int, filter: Filter) -> list[int]:
        inside = self.strategy.find_covered(self._shown(subscription, filter))
        return [s for s in inside if self.rank.outranks(subscription, filter, s, self.sent[s])]
