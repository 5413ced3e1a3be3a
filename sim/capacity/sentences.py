"""What a search for the highest rate found in a setting, in words and as a row.

How settings compare is said in analysis/report/rates.py, where they have titles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from analysis.report.numbers import number_text, per_second
from analysis.report.told import Rates
from coverlay import CoverlayError
from sim.capacity.load import SHARES, Load
from sim.capacity.search import LOWEST, Search

HEADERS = ["setting", "holds events/s", "not", "p50 ms", "p99 ms", "busiest", "its load", *SHARES, "serving"]
LEAST_SHARE = 0.001  # that is worth naming
MANY = 1000  # deliveries, ten of which are beyond the 99th percentile
LONG_ENOUGH = 10  # times the limit is how long events should come, for waits of that length to build up


def row(search: Search) -> tuple[str, ...]:
    """As HEADERS without the setting: the rate that holds, the lowest that does not, the busiest queue at the first."""
    rate = search.rate
    if rate is None:
        return ("–",) * (len(HEADERS) - 1)
    here = worst(search.found[rate])
    slowest = max(search.found[rate], key=lambda load: load.p99)
    times = [number_text(slowest.p50, "ms"), number_text(slowest.p99, "ms")]
    shares = [number_text(here.shares.get(name), "share") for name in (*SHARES, "serving")]
    fails = "–" if search.too_high is None else per_second(_fails(search).rate)
    return (per_second(_held(search)), fails, *times, here.where, f"{here.load:.2f}", *shares)


def worst(loads: Iterable[Load]) -> Load:
    """Of several seeds the one with most to do."""
    return max(loads, key=lambda load: (load.load, load.p99))


def rates(searches: Mapping[str, Search]) -> list[Rates]:
    """One per setting, or a refusal where none has an answer."""
    if not any(search.too_high is not None and search.rate is not None for search in searches.values()):
        raise CoverlayError(sentence(next(iter(searches.values()))))
    return [
        Rates(
            sentence(search),
            point,
            search.rate,
            search.too_high,
            None if search.rate is None else _held(search),
            row(search),
        )
        for point, search in searches.items()
    ]


def sentence(search: Search) -> str:
    """The answer for one setting."""
    if search.rate is None:
        return _none(search)
    here = max(search.found[search.rate], key=lambda load: load.p99)
    p50, p99 = number_text(here.p50, "ms"), number_text(here.p99, "ms")
    if search.too_high is None:
        return f"no limit was found up to {per_second(search.rate)} events/s, where p99 is {p99} ms and no queue grows"
    fails = _fails(search)
    return (
        f"{per_second(_held(search))} events/s are held: half of the deliveries take at most {p50} ms, 99 % at most "
        f"{p99} ms. {per_second(fails.rate)} events/s are not: {fails.why_not(search.limit)}. {saturates(search)} "
        f"This rests on {here.events:,} events within {duration(here.period)}{asked_for(search)}."
    )


def _held(search: Search) -> float:
    """The highest rate that holds: with several seeds, the lowest that any of them drew."""
    assert search.rate is not None
    return min(load.rate for load in search.found[search.rate])


def _fails(search: Search) -> Load:
    """A run at the lowest rate that does not hold."""
    assert search.too_high is not None
    return next(load for load in search.found[search.too_high] if not load.holds(search.limit))


def asked_for(search: Search) -> str:
    """The rates that were asked for, where those that were drawn differ from them."""
    assert search.rate is not None
    assert search.too_high is not None
    named = {search.rate: _held(search), search.too_high: _fails(search).rate}
    if all(per_second(rate) == per_second(drawn) for rate, drawn in named.items()):
        return ""
    return f", drawn where {per_second(search.rate)} and {per_second(search.too_high)} events/s were asked for"


def _none(search: Search) -> str:
    here = search.found[LOWEST]
    stuck = next((load for load in here if load.grows or load.dropped), None)
    if stuck is not None:
        return f"no rate is held: even at {LOWEST:g} event/s {stuck.why_not(search.limit)}"
    least = number_text(max(load.p99 for load in here), "ms")
    return (
        f"--p99 {search.limit:g} is not above the latency of this network when it has nothing to do: at "
        f"{LOWEST:g} event/s the 99th percentile is {least} ms already"
    )


def saturates(search: Search) -> str:
    """Whose queue is full first, and what its time goes into; by a run without losses, which hide work."""
    loads = [*search.found[search.too_high or LOWEST], *search.found[search.rate or LOWEST]]
    load = worst([load for load in loads if not load.dropped])
    if not load.load:
        return "No queue is ever full: nothing takes time."
    full = float(f"{load.rate / load.load:.3g}")  # what a message costs does not depend on the rate
    return f"{load.where} saturates first, at {per_second(full)} events/s: {goes_into(load)}."


def goes_into(load: Load) -> str:
    served = f"{load.messages:.3g}"
    what = f"it serves {served} message{'s' * (served != '1')} for each event, in {duration(load.took)} each"
    if not load.shares:
        return what
    parts = sorted(((share, name) for name, share in load.shares.items() if share >= LEAST_SHARE), reverse=True)
    words = [f"{number_text(share, 'share')} {'goes ' * (not i)}into {name}" for i, (share, name) in enumerate(parts)]
    return f"{what}; of that time {', '.join(words)}"


def duration(milliseconds: float) -> str:
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.3g} s"
    return f"{milliseconds:.3g} ms" if milliseconds >= 1 else f"{1000 * milliseconds:.3g} µs"


def few(searches: Mapping[str, Search]) -> list[str]:
    """A note where too little was delivered for a 99th percentile to mean much."""
    counts = [load.deliveries for search in searches.values() for load in search.found.get(search.rate or LOWEST, ())]
    least = min(counts, default=MANY)
    note = f"a run has only {least:,} deliveries: a 99th percentile needs {MANY:,} or more to mean much"
    return [note] if least < MANY else []


def hasty(searches: Mapping[str, Search], recorded: bool) -> list[str]:
    """A note where the events of a run are over before a queue could grow to the limit; `recorded`: from a file."""
    found = []
    for search in searches.values():
        if search.rate is None:
            continue
        period = min(load.period for load in search.found[search.rate])
        if period < LONG_ENOUGH * search.limit:
            times = LONG_ENOUGH * search.limit / period
            events = min(load.events for load in search.found[search.rate])
            longer = f"use {float(f'{times * events:.2g}'):,.0f} events (workload.events)"
            again = f"repeat the recording: --set workload.repeat={math.ceil(times)}"
            found.append(
                f"at {per_second(_held(search))} events/s all events of a run are published within {period:.3g} ms: "
                f"too short for queues to cause latencies of {search.limit:g} ms; {again if recorded else longer}"
            )
    return found[:1]
