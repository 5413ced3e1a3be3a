"""Why a setting has no effect: what `sim/experiment/config*.py` declare with its keys.

A reason is a function of the whole experiment. It returns a clause, or None where the setting has an effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import covering
from routing.strategies import STRATEGIES
from sim.workloads import WORKLOADS, workload_options
from sim.workloads.arrivals import INTEREST
from sim.workloads.begen import Begen
from sim.workloads.publishing import BURSTY, SCALED
from sim.workloads.tables import gives


class Experiment(Protocol):
    """What a reason looks at: the sections of an experiment, which declare reasons with their keys."""

    overlay: Any
    workload: Any
    arrivals: Any
    links: Any
    broker: Any
    routing: Any
    covering: Any
    matching: Any
    faults: Any

    @property
    def network_wide(self) -> bool: ...


Reason = Callable[[Experiment], str | None]


def _if(holds: Callable[[Experiment], Any], clause: str) -> Reason:
    """The reason that gives this clause, with the experiment as {e}, where `holds` is true."""
    return lambda e: clause.format(e=e) if holds(e) else None


def _first(*reasons: Reason) -> Reason:
    """The first of these reasons that applies."""
    return lambda e: next(filter(None, (reason(e) for reason in reasons)), None)


def _in_file(file: str, column: str) -> Reason:
    """A file of the user has this column."""
    return lambda e: gives(getattr(e.workload, file), column)


overlay_from_file = _if(lambda e: e.overlay.file is not None, "overlay.file gives the overlay")
overlay_generated = _if(lambda e: e.overlay.file is None, "it is for overlay.file")
workload_from_files = _if(lambda e: e.workload.from_files, "the workload comes from files")
own_attributes = _first(
    workload_from_files,
    _if(
        lambda e: e.workload.kind in WORKLOADS.written, "workload.kind = {e.workload.kind!r} has attributes of its own"
    ),
)
no_events_file = _if(lambda e: e.workload.events_file is None, "there is no workload.events_file to repeat")
workload_generated = _if(
    lambda e: not e.workload.from_files, "workload.kind = {e.workload.kind!r} brings its own schema"
)
nothing_lost = _if(lambda e: e.links.loss == 0, "links.loss is 0")
no_service_time = _if(lambda e: e.broker.immediate, "without a broker.service that takes time nothing ever queues")
no_limited_queue = _first(no_service_time, _if(lambda e: e.broker.queue is None, "broker.queue has no limit"))

_STRATEGY = "routing.strategy = {e.routing.strategy!r}"
_SKYBAND = "routing.rank = 'skyband'"
_skyband_scans = f"{_SKYBAND} counts who holds a subscription back by an exact scan"
no_search = _if(lambda e: not STRATEGIES[e.routing.strategy].searches, f"{_STRATEGY} looks for no covers")
no_method = _first(no_search, _if(lambda e: e.network_wide and e.routing.rank == "skyband", _skyband_scans))
no_merging = _if(lambda e: not STRATEGIES[e.routing.strategy].merges, f"{_STRATEGY} merges nothing")


def exact_search(e: Experiment) -> str | None:
    if no_method(e) or covering.METHODS[e.covering.method].takes_epsilon:
        return no_method(e)
    approximate = ", ".join(name for name, method in covering.METHODS.items() if method.takes_epsilon)
    return f"covering.method = {e.covering.method!r} takes no ε; these do: {approximate}"


node_budget_ends = _first(no_method, _if(lambda e: "node_budget" in e.covering.options, "covering.node_budget is set"))
attributes_alike = _if(
    lambda e: (
        "distribution" in workload_options(e.workload.kind)
        and e.workload.options.get("distribution", Begen.distribution) == "uniform"
    ),
    'workload.distribution is "uniform"',
)


_by_level = _if(lambda e: e.covering.epsilon_per_level, "covering.epsilon_per_level sets all links")
epsilon_by_level = _first(exact_search, _by_level)
nothing_missed = _first(no_method, _if(lambda e: not e.covering.approximate, "the search is exact"))


def nothing_to_finish(e: Experiment) -> str | None:
    given = (*(e.covering.epsilon_per_level or [e.covering.epsilon]), *e.covering.epsilon_per_link.values())
    return no_method(e) or ("ε is above 0: what the cap leaves open may be missed" if min(given) > 0 else None)


def no_root(e: Experiment) -> str | None:
    if e.routing.trees == "per-source":
        return 'routing.trees = "per-source" has one root per source'
    if STRATEGIES[e.routing.strategy].sends_to == "root" or (e.covering.epsilon_per_level and not exact_search(e)):
        return None
    rooted = " or ".join(repr(name) for name, strategy in STRATEGIES.items() if strategy.sends_to == "root")
    return f"only routing.strategy = {rooted} and covering.epsilon_per_level use the root"


no_k = _if(lambda e: e.matching.k is None, "without matching.k all matches are served")
_alone = _if(lambda e: not e.network_wide, "matching.scope = 'broker' ranks at each broker alone")
ranked_by_broker = _first(no_k, _alone)
nothing_asked = _first(
    ranked_by_broker,
    _if(lambda e: e.routing.rank == "skyband", f"{_SKYBAND} knows all winners without asking"),
    _if(lambda e: e.routing.rank == "none", "routing.rank = 'none' knows no bounds"),
)
no_waves = _first(nothing_asked, _if(lambda e: e.routing.visit != "waves", "routing.visit = {e.routing.visit!r}"))
no_places = _if(lambda e: e.matching.kind != "places", "matching.kind = {e.matching.kind!r} knows no distances")

faults_from_file = _if(lambda e: e.faults.file is not None, "faults.file gives the faults")
no_drawn_crashes = _first(faults_from_file, _if(lambda e: not e.faults.crash_fraction, "faults.crash_fraction is 0"))
_nothing_drawn = "faults.crash_fraction and faults.cut_fraction are 0"
no_drawn_faults = _first(
    faults_from_file, _if(lambda e: not (e.faults.crash_fraction or e.faults.cut_fraction), _nothing_drawn)
)

no_faults = _if(
    lambda e: e.faults.file is None and not (e.faults.crash_fraction or e.faults.cut_fraction),
    "nothing fails: see [faults]",
)
no_failover = _first(_if(lambda e: e.routing.failover == "none", 'routing.failover is "none"'), no_faults)
no_hold_down = _first(no_failover, _if(lambda e: e.routing.rejoin == "never", 'routing.rejoin is "never"'))

_homes_in_file, _publishers_in_file = _in_file("subscriptions_file", "broker"), _in_file("events_file", "broker")
_everywhere = f'arrivals.attach = "{INTEREST}" says where every client is'
_by_interest = _if(lambda e: e.arrivals.options.get("attach") == INTEREST, _everywhere)
homes_not_drawn = _first(_homes_in_file, _by_interest)
publishers_not_drawn = _first(_publishers_in_file, _by_interest)
subscriptions_timed = _in_file("subscriptions_file", "time")
no_recorded_times = _if(
    lambda e: not subscriptions_timed(e) and not gives(e.workload.events_file, "time"),
    "no file of yours has a column 'time'",
)
no_bursts = _if(lambda e: e.arrivals.publishing != BURSTY, f'it is for arrivals.publishing = "{BURSTY}"')


def clients_in_files(e: Experiment) -> str | None:
    return (_publishers_in_file(e) if e.workload.events_file else "nothing is published") and _homes_in_file(e)


def times_in_file(e: Experiment) -> str | None:
    """Recorded times are kept, unless something else is asked for."""
    return gives(e.workload.events_file, "time") if e.arrivals.publishing is None else None


def all_timed(e: Experiment) -> str | None:
    """Nothing has to settle where subscriptions and events come at recorded times, or at these times scaled."""
    kept = e.arrivals.publishing in (None, SCALED)
    return subscriptions_timed(e) and (gives(e.workload.events_file, "time") if kept else None)
