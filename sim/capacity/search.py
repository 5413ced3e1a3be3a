"""Which rates to try: a bracket first, then sections of it, until it is narrow.

It begins with a rate at which nothing waits. What a message costs does not depend on the rate (nearly: a queue that
sheds, or a recording with subscriptions in it, may differ), so the load of that run says at which rate a queue would
have as much work as time. Quarters of that rate are tried next, the last a little above it; then, again and again,
three rates between the highest that holds and the lowest that does not. The rates depend on results only, not on how
many runs are made at a time, and so does the answer.

A rate holds if it holds with every seed. The answer is the highest rate that holds below the lowest that does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sim.capacity.load import Load

LOWEST = 1.0  # events per second: vanishing load
MOST = 1e9  # events per second: the highest rate that is tried
SECTIONS = 4  # of a bracket: the rates between them can be simulated at the same time
WIDE = 4.0  # the ratio of its ends up to which a bracket is cut into equal parts; beyond, into equal ratios
NARROW = 0.02  # of the rate: the answer is this precise
DIGITS = 3  # of a rate, for people to read


@dataclass
class Search:
    """The search for one network: `ask` for rates, `tell` what runs at them said, until nothing is asked for."""

    limit: float  # ms, of the 99th percentile
    found: dict[float, tuple[Load, ...]] = field(default_factory=dict)  # by rate, one per seed

    def tell(self, rate: float, loads: Sequence[Load]) -> None:
        self.found[rate] = tuple(loads)

    def holds(self, rate: float) -> bool:
        return all(load.holds(self.limit) for load in self.found[rate])

    @property
    def rates(self) -> list[float]:
        return sorted(self.found)

    @property
    def too_high(self) -> float | None:
        """The lowest rate that does not hold."""
        return next((rate for rate in self.rates if not self.holds(rate)), None)

    @property
    def rate(self) -> float | None:
        """The highest rate that holds below one that does not; None where there is none."""
        end = self.too_high
        return max((rate for rate in self.rates if end is None or rate < end), default=None)

    def ask(self) -> list[float]:
        """The next rates in events per second; none when the search is over."""
        if not self.found:
            return [LOWEST]
        low, high = self.rate, self.too_high
        if low is None:
            return []
        if high is not None:
            return self._between(low, high)
        least = self.found[LOWEST]
        full = (1 + NARROW) * LOWEST / max((load.load for load in least if load.load > 0), default=1 / MOST)
        steps = [full * part / SECTIONS for part in range(1, SECTIONS + 1)] if low == LOWEST else [2 * low, 4 * low]
        return self._new(step for step in steps if low < step <= MOST)

    def _between(self, low: float, high: float) -> list[float]:
        if high - low <= NARROW * low:
            return []
        parts = [part / SECTIONS for part in range(1, SECTIONS)]
        if high > WIDE * low:
            return self._new(low * (high / low) ** part for part in parts)
        return self._new(low + (high - low) * part for part in parts)

    def _new(self, rates: Iterable[float]) -> list[float]:
        rounded = {float(f"{rate:.{DIGITS}g}") for rate in rates}
        return sorted(rounded - set(self.found))
