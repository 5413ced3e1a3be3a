"""When a search may stop so that it misses at most a share ε of the covers: learned from audits (split conformal).

A search visits ranges in some order, which at its end is exact. Some checks, drawn by lot, are *audits*: they go on to
the end, so it is known what any stop would have missed. Of an audit that found a cover two scores are kept: the fewest
points that were still expected before the range of the cover was looked up (`left`), and the number of lookups then
(`lookups`). From m such audits either rule follows, with j = ⌊ε (m + 1)⌋:

- *threshold*: stop as soon as fewer points are expected than the j-th smallest `left`;
- *number*: stop after as many lookups as the j-th largest `lookups`.

Both would have missed at most j − 1 of the m covers: (misses + 1) / (m + 1) ≤ ε. If the next check with a cover is
exchangeable with them, its score is among the j on the wrong side with probability at most j / (m + 1) ≤ ε. That is the
guarantee; docs/covering-guarantee.md derives it and says what it does not promise.

The cheaper rule is chosen on audits of its own, because a rule chosen on the audits that calibrate it would be the one
that they happen to flatter. Until m covers were audited, searches are exact, and so are audits too.

Audits are forgotten: the newest m calibrate, and none made when the index had less than half or more than twice as many
entries as now. Which checks are audited is a fixed pseudo-random sequence: same checks, same audits.

Cost: an audit sorts m numbers.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import Any, NamedTuple

AUDITS = 100  # covers that calibrate, and more where ε is small: with m of them a single calibration is √(ε/m) off
PER_EPSILON = 2.0  # as many as would miss two on average
TRIAL = 20  # audits after which a choice between the two rules means something
DRIFT = 2  # an audit counts while the index has at most so many times as many entries as then, or as few
NEVER = 1 << 62  # lookups that no search makes

_MASK, _GOLDEN = (1 << 64) - 1, 0x9E3779B97F4A7C15


class Stop(NamedTuple):
    """Stop when fewer points are expected than `left`, or after so many lookups."""

    left: float = -math.inf
    lookups: int = NEVER


EXACT = Stop()


class Audit(NamedTuple):
    """What an audited check tells."""

    entries: int  # in the index then
    found: bool
    left: float  # the two scores; of no meaning if nothing was found
    lookups: int
    by_threshold: int  # lookups it would have made by the rules on trial
    by_number: int


def threshold(audits: Iterable[Audit], missed: int) -> Stop:
    """The rule that would have missed at most this many of the audited covers."""
    return Stop(left=sorted(audit.left for audit in audits)[missed])


def number(audits: Iterable[Audit], missed: int) -> Stop:
    return Stop(lookups=sorted((audit.lookups for audit in audits), reverse=True)[missed])


def may_miss(epsilon: float, audited: int) -> int:
    """The most misses with (misses + 1) / (audited + 1) ≤ ε; −1 if there are too few audits for any stop."""
    return math.floor(epsilon * (audited + 1)) - 1


def drawn(check: int, share: float) -> bool:
    """Is this check, counted from 0, an audit? A fixed sequence of fair lots (splitmix64)."""
    z = (check + 1) * _GOLDEN & _MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return (z ^ z >> 31) < share * 2.0**64


class Audits:
    """The audits of one index, and the stop that follows from them."""

    def __init__(self, epsilon: float, share: float) -> None:
        self.epsilon, self.share = epsilon, share
        self.needed = max(AUDITS, math.ceil(PER_EPSILON / epsilon))
        self._calibrating: deque[Audit] = deque(maxlen=self.needed)  # those that found a cover
        self._choosing: deque[Audit] = deque(maxlen=self.needed)  # the same, of the other half
        self._tried: deque[Audit] = deque(maxlen=self.needed)  # of that half all, with the rules on trial
        self._stop, self._trial = EXACT, EXACT
        self._fewest = self._most = 0  # entries that any of these audits was made with
        self._checks = self._counted = 0
        self._lock = Lock()

    def next(self, entries: int) -> tuple[Stop, Stop, bool]:
        """For the next check: the stop, the rules on trial in one, and whether the check is an audit."""
        with self._lock:
            self._forget(entries)
            self._checks += 1
            return self._stop, self._trial, self._stop == EXACT or drawn(self._checks, self.share)

    def add(self, audit: Audit) -> None:
        with self._lock:
            chooses = len(self._calibrating) == self.needed and self._counted % 2 == 1
            self._counted += 1
            if chooses:
                self._tried.append(audit)
            if audit.found:
                (self._choosing if chooses else self._calibrating).append(audit)
            self._renew()

    def _renew(self) -> None:
        entries = [audit.entries for audits in self._kept() for audit in audits]
        self._fewest, self._most = min(entries, default=0), max(entries, default=0)
        missed, trial = may_miss(self.epsilon, len(self._choosing)), len(self._choosing) >= TRIAL
        self._trial = EXACT
        if trial:
            missed = max(0, missed)
            self._trial = Stop(threshold(self._choosing, missed).left, number(self._choosing, missed).lookups)
        rule = threshold
        if len(self._tried) >= TRIAL and self._cost("by_number") < self._cost("by_threshold"):
            rule = number
        enough = len(self._calibrating) == self.needed
        self._stop = rule(self._calibrating, may_miss(self.epsilon, self.needed)) if enough else EXACT

    def _cost(self, rule: str) -> int:
        return sum(getattr(audit, rule) for audit in self._tried)

    def _forget(self, entries: int) -> None:
        """Drop audits of an index that was much smaller or larger."""
        if not self._most or (_is_alike(self._fewest, entries) and _is_alike(self._most, entries)):
            return
        for audits in self._kept():
            kept = [audit for audit in audits if _is_alike(audit.entries, entries)]
            audits.clear()
            audits.extend(kept)
        self._renew()

    def _kept(self) -> tuple[deque[Audit], ...]:
        return self._calibrating, self._choosing, self._tried

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())


def _is_alike(then: int, now: int) -> bool:
    return now <= DRIFT * then and then <= DRIFT * now
