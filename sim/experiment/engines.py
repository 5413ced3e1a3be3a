"""Two engines, one meaning: which one runs an experiment, and the run itself, up to the tables of the trace.

`simpy` is broker.network, the reference, which people extend. `compiled` is sim.compiled: the same runs in numba, with
the same trace to the last bit, for the settings it supports. `auto` chooses by predicted counts, never by the clock or
by what is already compiled: SimPy where it is done in the time that compiling would take, and where the compiled engine
lacks support. `prefer-compiled` takes SimPy only in the latter case, which suits sweeps of thousands of small runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from broker.network import Network
from broker.settings import Settings
from coverlay import CoverlayError
from routing.advertisements import advertisement_for
from routing.filter import Filter
from routing.overlay.graph import Overlay
from routing.overlay.trees import Tree, told
from sim.experiment.agenda import Agenda, repairs_and_failures, requests, samples
from sim.experiment.config import Experiment
from sim.experiment.detection import detections
from sim.experiment.faults import Fault, check_faults, draw_faults, read_faults
from sim.experiment.oracle import judged_share
from sim.random_streams import Stream
from sim.workloads import Workload
from sim.workloads.arrivals import PUBLISH, Timeline
from sim.workloads.contract import filter_of

if TYPE_CHECKING:
    from sim.compiled.engine import Engine


Tell = Callable[[float], None]


def nobody(*_: object) -> None:
    """A progress listener that does nothing."""


@dataclass(frozen=True)
class Look:
    """Stop a network after all that happens at time `at`, and call `see`; None: when nothing is under way any more."""

    at: float | None
    see: Callable[[Network], None]


@dataclass(frozen=True)
class RunInputs:
    """Everything an engine needs for a run."""

    experiment: Experiment
    overlay: Overlay
    workload: Workload
    timeline: Timeline
    settings: Settings
    stream: Stream
    tell: Tell = nobody  # called with the share of the simulated time that has passed
    look: Look | None = None  # only for the reference engine

    def tell_time(self, now: float) -> None:
        """Tell the share of the time in which clients act."""
        last = float(self.timeline.time[-1]) if len(self.timeline) else 0.0
        self.tell(now / last if now < last else 1.0)


@dataclass(frozen=True)
class Ran:
    """A finished run: its trace without the run record, and what only the engine knows."""

    tables: dict[str, pa.Table]
    links: int  # that messages were routed on
    simple_entries: int  # that simple routing would keep for its neighbours at the end
    active: int  # subscriptions in force at the end
    finished: float  # simulated time when nothing was under way any more


# Messages that SimPy handles while the other engine would be compiled: about 45 s, at 22,000 a second.
FEW_MESSAGES = 1_000_000


def engine_for(
    experiment: Experiment, workload: Workload, at_most: float, predicted: Callable[[], float]
) -> tuple[str, str]:
    """The engine for this experiment, and why; raises if `compiled` is asked for what it does not support.

    `at_most`: an upper bound of the messages; `predicted` estimates them, only where this bound is above FEW_MESSAGES.
    """
    asked = experiment.run.engine
    if asked == "simpy":
        return asked, f'run.engine = "{asked}"'
    if asked == "auto" and (at_most <= FEW_MESSAGES or predicted() <= FEW_MESSAGES):
        return "simpy", f"at most {FEW_MESSAGES:,} messages are predicted, which take seconds"
    from sim.experiment.compiled_support import (  # imports numba kernels: only when asked for
        unsupported,
        unsupported_workload,
    )

    what = unsupported(experiment) or unsupported_workload(experiment, workload)
    if what is None:
        many = f"more than {FEW_MESSAGES:,} messages are predicted"
        return "compiled", many if asked == "auto" else f'run.engine = "{asked}"'
    if asked == "compiled":
        raise CoverlayError(f'run.engine = "compiled" does not support {what}; use "simpy", or "auto" to let it choose')
    return "simpy", f"the compiled engine does not support {what}"


def run_compiled(inputs: RunInputs) -> Ran:
    from sim.compiled.trace import tables_of

    engine = compiled_engine(inputs)
    engine.run(inputs.tell_time)
    topology, local = engine.topology, engine.arrays.brokers["local"]
    simple = _simple_entries(topology.trees, local.tolist())
    return Ran(tables_of(engine), len(topology.links), simple, int(local.sum()), engine.now)


def compiled_engine(inputs: RunInputs) -> Engine:
    from sim.compiled.engine import Engine

    samples = inputs.experiment.run.samples
    held = held_share(inputs.experiment, len(inputs.workload.lo), len(inputs.workload.events))
    return Engine(inputs.overlay, inputs.settings, inputs.workload, inputs.timeline, samples, inputs.stream, held)


def held_share(experiment: Experiment, subscriptions: int, events: int) -> float:
    """The share of the events whose deliveries are held until the end of a run, to be kept or judged."""
    section = experiment.run
    return max(section.sample_deliveries, judged_share(section.sample_oracle, subscriptions, events))


def run_simpy(inputs: RunInputs) -> Ran:
    experiment, workload, timeline = inputs.experiment, inputs.workload, inputs.timeline
    network = Network(inputs.overlay, inputs.settings, inputs.stream)
    faults = faults_of(experiment, inputs.stream, network, timeline)
    check_faults(inputs.overlay, faults)
    agenda = Agenda(network.env)
    agenda.add_all(repairs_and_failures(network, faults))
    agenda.add_all(detections(network, faults))
    agenda.add_all(requests(network, workload, timeline))
    agenda.add_all(samples(network, timeline, experiment.run.samples))
    if experiment.routing.advertisements != "none":
        for broker, filter in advertisements_of(workload, timeline):
            network.advertise(broker, broker, filter)
    homes = timeline.preloaded.tolist()
    network.preload(homes, [filter_of(workload, row) for row in range(len(homes))])
    look = inputs.look
    if look is not None and look.at is not None:
        agenda.run(
            float(np.nextafter(look.at, np.inf)), inputs.tell_time
        )  # it stops before what happens at the given time
        look.see(network)
    agenda.run(tell=inputs.tell_time)
    if look is not None and look.at is None:
        look.see(network)
    simple = _simple_entries(network.trees.values(), [len(broker.local) for broker in network.brokers])
    return Ran(network.tables(), len(network.links), simple, network.active_subscriptions, network.env.finished)


ENGINES = {"simpy": run_simpy, "compiled": run_compiled}


def _simple_entries(trees: Collection[Tree], local: Sequence[int]) -> int:
    return sum(count * told(trees, broker) for broker, count in enumerate(local))


def faults_of(experiment: Experiment, stream: Stream, network: Network, timeline: Timeline) -> list[Fault]:
    section = experiment.faults
    if section.file is not None:
        return read_faults(section.file, network.overlay.called)
    published = timeline.time[timeline.kind == PUBLISH]
    overlay = network.overlay
    links = sorted((min(link), max(link)) for link in overlay.graph.edges)
    return draw_faults(stream, overlay.brokers, links, published, section)


def advertisements_of(workload: Workload, timeline: Timeline) -> Iterator[tuple[int, Filter]]:
    """What the publishers at each broker announce, before anything else happens."""
    publishing = timeline.kind == PUBLISH
    for broker in np.unique(timeline.broker[publishing]).tolist():
        events = timeline.index[publishing & (timeline.broker == broker)]
        yield broker, advertisement_for(workload.events[events])
