"""Why a setting has no effect: what `sim/experiment/config*.py` declare with its keys.

Each function looks at a whole experiment and answers with a clause, or None where the setting counts there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import covering
from routing.strategies import STRATEGIES
from sim.workloads.arrivals import INTEREST
from sim.workloads.publishing import BURSTY, SCALED
from sim.workloads.tables import gives

if TYPE_CHECKING:
    from sim.experiment.config import Experiment


def overlay_from_file(e: Experiment) -> str | None:
    return "overlay.file gives the overlay" if e.overlay.file is not None else None


def overlay_generated(e: Experiment) -> str | None:
    return "it is for overlay.file" if e.overlay.file is None else None


def workload_from_files(e: Experiment) -> str | None:
    return "the workload comes from files" if e.workload.from_files else None


def workload_generated(e: Experiment) -> str | None:
    return None if e.workload.from_files else f"workload.kind = {e.workload.kind!r} brings its own schema"


def nothing_lost(e: Experiment) -> str | None:
    return None if e.links.loss > 0 else "links.loss is 0"


def no_service_time(e: Experiment) -> str | None:
    return "without a broker.service that takes time nothing ever queues" if e.broker.immediate else None


def no_limited_queue(e: Experiment) -> str | None:
    return no_service_time(e) or ("broker.queue has no limit" if e.broker.queue is None else None)


def no_search(e: Experiment) -> str | None:
    if STRATEGIES[e.routing.strategy].searches:
        return None
    return f"routing.strategy = {e.routing.strategy!r} looks for no covers"


def no_method(e: Experiment) -> str | None:
    if e.network_wide and e.routing.rank == "skyband":
        return no_search(e) or "routing.rank = 'skyband' counts who holds a subscription back by an exact scan"
    return no_search(e)


def no_k(e: Experiment) -> str | None:
    return "without matching.k all matches are served" if e.matching.k is None else None


def ranked_by_broker(e: Experiment) -> str | None:
    return None if e.network_wide else (no_k(e) or "matching.scope = 'broker' ranks at each broker alone")


def nothing_asked(e: Experiment) -> str | None:
    if e.routing.rank == "skyband":
        return ranked_by_broker(e) or "routing.rank = 'skyband' knows all winners without asking"
    return ranked_by_broker(e) or (None if e.routing.rank == "cover" else "routing.rank = 'none' knows no bounds")


def no_waves(e: Experiment) -> str | None:
    return nothing_asked(e) or (None if e.routing.visit == "waves" else f"routing.visit = {e.routing.visit!r}")


def exact_search(e: Experiment) -> str | None:
    if no_method(e) or covering.METHODS[e.covering.method].takes_epsilon:
        return no_method(e)
    approximate = ", ".join(name for name, method in covering.METHODS.items() if method.takes_epsilon)
    return f"covering.method = {e.covering.method!r} is exact; ε is for: {approximate}"


def epsilon_by_level(e: Experiment) -> str | None:
    return exact_search(e) or ("covering.epsilon_per_level sets all links" if e.covering.epsilon_per_level else None)


def nothing_to_finish(e: Experiment) -> str | None:
    given = (*(e.covering.epsilon_per_level or [e.covering.epsilon]), *e.covering.epsilon_per_link.values())
    return no_method(e) or ("ε is above 0: what the cap leaves open may be missed" if min(given) > 0 else None)


def nothing_missed(e: Experiment) -> str | None:
    return no_method(e) or (None if e.covering.approximate else "the search is exact")


def no_merging(e: Experiment) -> str | None:
    return None if e.routing.strategy == "merging" else f"routing.strategy = {e.routing.strategy!r} merges nothing"


def no_root(e: Experiment) -> str | None:
    if e.routing.trees == "per-source":
        return 'routing.trees = "per-source" has one root per source'
    if e.routing.strategy == "hierarchical" or (e.covering.epsilon_per_level and not exact_search(e)):
        return None
    return "only routing.strategy = 'hierarchical' and covering.epsilon_per_level ask for the root"


def no_places(e: Experiment) -> str | None:
    return None if e.matching.kind == "places" else f"matching.kind = {e.matching.kind!r} knows no distances"


def faults_from_file(e: Experiment) -> str | None:
    return "faults.file gives the faults" if e.faults.file is not None else None


def no_drawn_faults(e: Experiment) -> str | None:
    drawn = e.faults.crash_fraction or e.faults.cut_fraction
    return faults_from_file(e) or (None if drawn else "faults.crash_fraction and faults.cut_fraction are 0")


def no_drawn_crashes(e: Experiment) -> str | None:
    return faults_from_file(e) or (None if e.faults.crash_fraction else "faults.crash_fraction is 0")


def homes_in_file(e: Experiment) -> str | None:
    return gives(e.workload.subscriptions_file, "broker")


def publishers_in_file(e: Experiment) -> str | None:
    return gives(e.workload.events_file, "broker")


def clients_in_files(e: Experiment) -> str | None:
    return (publishers_in_file(e) if e.workload.events_file else "nothing is published") and homes_in_file(e)


def homes_not_drawn(e: Experiment) -> str | None:
    return homes_in_file(e) or _by_interest(e)


def publishers_not_drawn(e: Experiment) -> str | None:
    return publishers_in_file(e) or _by_interest(e)


def _by_interest(e: Experiment) -> str | None:
    by_interest = e.arrivals.options.get("attach") == INTEREST
    return f'arrivals.attach = "{INTEREST}" says where every client is' if by_interest else None


def times_in_file(e: Experiment) -> str | None:
    """Recorded times are kept, unless something else is asked for."""
    return gives(e.workload.events_file, "time") if e.arrivals.publishing is None else None


def no_bursts(e: Experiment) -> str | None:
    return None if e.arrivals.publishing == BURSTY else f'it is for arrivals.publishing = "{BURSTY}"'


def subscriptions_timed(e: Experiment) -> str | None:
    return gives(e.workload.subscriptions_file, "time")


def all_timed(e: Experiment) -> str | None:
    """Nothing is waited for where subscriptions and events come at recorded times, or at these in proportion."""
    kept = e.arrivals.publishing in (None, SCALED)
    return subscriptions_timed(e) and (gives(e.workload.events_file, "time") if kept else None)
