"""How large a run will be, before it starts: messages, rows of the trace, bytes on disk and in memory.

Everything follows from one curve, f(s): how many of s subscriptions a link passes on. In a tree, a directed link
with b of n brokers behind it sees the subscriptions of those brokers, S·b/n of S, whatever was suppressed before
it: a suppressed subscription leaves its cover behind, which arrives here or is covered here itself. So

    subscriptions sent   Σ over directed links of f(S·b/n)            simple routing: f(s) = s, in all S·(n − 1)
    decisions            Σ over directed links u→v of S/n + Σ over w ≠ v of what w→u passes on
    event messages       Σ over links of the chance that a match lives on the other side: 1 − (1 − p)^(S·b/n)

f is counted on SAMPLE generated subscriptions by the routing strategy itself, and continued as the power law of its
last factor of 8. The curve is exact for simple routing and flooding. For covering it is an estimate: the power law is
an extrapolation, and homes are assumed to be spread evenly. Faults, recovery and advertisements held back are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from broker.trace.schema import ALL
from routing.overlay.graph import Overlay
from routing.overlay.trees import Tree, shortest_paths, spanning
from routing.strategies import make_ledger, strategy
from sim.experiment.build import overlay_of, settings_of, timeline_of, workload_of
from sim.experiment.config import Experiment
from sim.experiment.engines import engine_for, held_share
from sim.experiment.oracle import judged_share
from sim.experiment.oracle_truth import all_reached, chunks_of, terms_of
from sim.experiment.plan import Plan
from sim.random_streams import Stream, streams
from sim.workloads import Workload
from sim.workloads.arrivals import SUBSCRIBE, UNSUBSCRIBE, Timeline
from sim.workloads.contract import filter_of

Floats = NDArray[np.float64]
Curve = Callable[[Floats], Floats]

SAMPLE = 4096  # subscriptions that the curve is counted on: half a second for covering
STEP = 8  # between the points of the curve; the smaller ones are means over many parts of the sample
EVENTS = 128  # events that the share of matching subscriptions is counted on
# Per entry of a table, with two attributes: its row, and its place in an index; per decision: its node.
ENTRY_BYTES, DECIDED_BYTES = 100.0, 48.0
SOURCES = 16  # trees looked at where there is one per source
# Bytes per row on disk, measured on the strategies experiment with covering (50 brokers, 6,000 subscriptions, 1,000
# events); times are most of it. tests/sim/experiment/test_predict.py compares them with real traces.
DISK = {
    "ranked": 17.5,
    "control": 23.0,
    "decisions": 11.5,
    "publications": 25.0,
    "deliveries": 10.0,
    "tables": 2.0,
    "operations": 18.0,
}
# Microseconds of one core, measured on the strategies experiment (Xeon, 2026-11), up to the hash of the trace: per
# control message, per decision that searches for a cover, per event message with what it serves; and for the oracle
# per pair of a judged event and a subscription. Only shown to the user: no engine is chosen by them.
MICROSECONDS = {"simpy": (30.0, 50.0, 40.0), "compiled": (1.0, 3.0, 3.5)}
ORACLE_MICROSECONDS = 0.013


@dataclass(frozen=True)
class Prediction:
    """The expected size of a run."""

    control_messages: float
    event_messages: float
    rows: dict[str, float]  # per table, after sampling
    nbytes: float  # of the trace on disk
    memory: float  # bytes of the trace as columns in memory: all rows but deliveries that are only counted
    state: float  # bytes of the routing tables and ledgers, in the compiled engine
    searches: float = 0.0  # decisions that look for a cover
    pairs: float = 0.0  # of an event and a subscription that the oracle compares
    answers_and_awards: float = 0.0  # without the event; only where the k best of the whole network are served

    @property
    def messages(self) -> float:
        return self.control_messages + self.event_messages + self.answers_and_awards

    def seconds(self, engine: str) -> float:
        """How long simulating and judging take, without compiling."""
        control, search, event = MICROSECONDS[engine]
        work = control * self.control_messages + search * self.searches
        work += event * (self.event_messages + self.answers_and_awards)
        return (work + ORACLE_MICROSECONDS * self.pairs) / 1e6

    def __str__(self) -> str:
        return (
            f"about {_round(self.messages)} messages, {_round(sum(self.rows.values()))} rows of trace, "
            f"{_bytes(self.nbytes)} on disk and {_bytes(self.memory + self.state)} in memory"
        )


def predict(experiment: Experiment, seed: int = 1) -> Prediction:
    """The size of one run, from its overlay and a small part of its workload."""
    stream = streams(seed)
    overlay = overlay_of(experiment, stream)
    workload, subscriptions, events = sample(experiment, stream)
    timeline = timeline_of(experiment, stream, workload, overlay)
    leaving, live, loaded = _lives(timeline, len(workload.lo), subscriptions)
    stay = live * (1 - leaving) if live == subscriptions else live  # while events are published
    curve = forwarding_curve(experiment, workload)

    def sent(behind: Floats) -> Floats:
        """Subscribe messages over a link, for the share of all brokers behind it."""
        if not live:
            return np.zeros_like(behind)
        population = live * behind
        exposed = np.maximum(0.0, curve(population * (1 - leaving)) - (1 - leaving) * curve(population))
        return curve(population) * (subscriptions / live) + exposed * (leaving > 0)

    control = decisions = crossed = answers = 0.0
    match = _match_shares(workload, experiment.matching.semantics)
    trees, scale = _trees(experiment, overlay)
    for tree in trees:
        flow = _Flow(experiment, tree, overlay.brokers)
        up, down = sent(flow.behind_up), sent(flow.behind_down)
        told = float((up * flow.learns_up).sum() + (down * flow.learns_down).sum())
        control += scale * told * (1 + leaving)  # a leaving subscription is taken back wherever it was sent
        decisions += scale * flow.decisions(up, down, subscriptions / overlay.brokers)
        carried, answered = _spoken(experiment, flow, match, stay)
        crossed += events * carried / len(trees)
        answers += events * answered / len(trees)
    if experiment.routing.advertisements != "none":
        control += overlay.brokers * (overlay.brokers - 1)  # at most: every broker publishes
    ranking = 1 if experiment.network_wide else overlay.brokers  # each broker has its own k best
    matching, k = stay / ranking * match, experiment.matching.k
    served = matching if k is None else np.minimum(matching, k)
    delivered = events * ranking * float(served.mean()) if len(match) else 0.0
    requests = subscriptions * (1 + leaving)
    links = overlay.graph.number_of_edges()
    rows = {
        "control": control * (1 - loaded) + requests,  # the messages before time 0 are not traced
        "decisions": decisions * (1 - loaded),
        "publications": events + crossed,
        "deliveries": delivered,
        "operations": requests,
        "tables": (experiment.run.samples + 1) * (overlay.brokers + 2.0 * links),
    }
    if experiment.network_wide:
        rows["ranked"] = rows["publications"] + answers
    # Deliveries that are only counted are never in memory.
    held = {"deliveries": held_share(experiment, subscriptions, events)}
    memory = sum(count * _width(name) * held.get(name, 1.0) for name, count in rows.items())
    rows["decisions"] *= experiment.run.sample_decisions
    rows["deliveries"] *= experiment.run.sample_deliveries
    nbytes = sum(DISK[name] * count for name, count in rows.items())
    state = control * ENTRY_BYTES + decisions * DECIDED_BYTES
    searches = decisions if strategy(experiment.routing.strategy).searches else 0.0
    pairs = float(subscriptions) * events * judged_share(experiment.run.sample_oracle, subscriptions, events)
    return Prediction(control, crossed, rows, nbytes, memory, state, searches, pairs, answers)


def _spoken(experiment: Experiment, flow: _Flow, match: Floats, live: float) -> tuple[float, float]:
    """Messages for an average event: those that carry it, and answers and awards that do not (docs/ranked.md)."""
    asked = flow.crossings(match, live)
    k, rank = experiment.matching.k, experiment.routing.rank
    if not experiment.network_wide or k is None:
        return asked, 0.0
    won = flow.crossings(np.minimum(match, k / max(live, 1.0)), live)  # towards winners alone
    if rank == "none":
        return asked, asked + won
    # The bounds of `cover` give the best at once; for k > 1, those that may have one are asked, answer, and are told.
    return won, 2 * won if rank == "cover" and k > 1 else 0.0


def forwarding_curve(experiment: Experiment, workload: Workload) -> Curve:
    """f(s): the messages over one link for s subscriptions, by the strategy and method of the experiment."""
    chosen = strategy(experiment.routing.strategy)
    if chosen.sends_to == "nobody":
        return lambda s: np.zeros_like(s)
    if not chosen.holds_back() or not len(workload.lo):
        return lambda s: s
    sizes, counts = _count_forwarded(experiment, workload)
    slope = np.log(counts[-1] / counts[-2]) / np.log(sizes[-1] / sizes[-2]) if len(sizes) > 1 else 1.0
    slope = float(np.clip(slope, 0.0, 1.0))

    def curve(s: Floats) -> Floats:
        inside = np.exp(np.interp(np.log(np.maximum(s, 1.0)), np.log(sizes), np.log(counts)))
        beyond = counts[-1] * np.maximum(s / sizes[-1], 1.0) ** slope
        return np.where(s < 1.0, s, np.where(s > sizes[-1], beyond, inside))

    return curve


def _count_forwarded(experiment: Experiment, workload: Workload) -> tuple[Floats, Floats]:
    """Points of the curve: the sample cut into equal parts, the mean number of messages per part."""
    options = settings_of(experiment, workload).routing
    active = experiment.routing.mode == "active"  # what is covered later is taken back: one more message
    filters = [filter_of(workload, row) for row in range(len(workload.lo))]
    size, sizes, counts = len(filters), [], []
    while size >= 1:
        passed = 0
        parts = range(0, len(filters) - size + 1, size)
        for start in parts:
            fresh = iter(range(-2, -2 - 2 * size, -1))
            ledger = make_ledger(experiment.routing.strategy, options, None, fresh.__next__, active=active)
            passed += sum(len(ledger.subscribe(row, filters[row])) for row in range(start, start + size))
        sizes.append(float(size))
        counts.append(passed / len(parts))
        size //= STEP
    return np.array(sizes[::-1]), np.maximum(np.array(counts[::-1]), 1e-9)


class _Flow:
    """The directed links of one rooted tree: from every broker but the root up to its parent, and down."""

    def __init__(self, experiment: Experiment, tree: Tree, brokers: int) -> None:
        self.tree = tree
        self.below = [b for b in range(brokers) if b in tree.parent]  # one link each
        size = np.ones(brokers)
        for broker in sorted(self.below, key=lambda b: -tree.level[b]):
            size[tree.parent[broker]] += size[broker]
        self.behind_up = size[self.below] / brokers  # share of the brokers whose subscriptions may go up here
        self.behind_down = 1.0 - self.behind_up
        sends_to = strategy(experiment.routing.strategy).sends_to
        self.floods, self.always_up = sends_to == "nobody", sends_to == "root"
        self.from_root = experiment.routing.trees == "per-source"
        self.learns_up = float(not self.floods)
        self.learns_down = float(sends_to == "all" and not self.from_root)

    def decisions(self, up: Floats, down: Floats, own: float) -> float:
        """For each neighbour, a broker decides about its own subscriptions and those that its other neighbours sent."""
        arrives = np.zeros(len(self.tree.level))
        parents = [self.tree.parent[b] for b in self.below]
        np.add.at(arrives, parents, up * self.learns_up)
        arrives[self.below] += down * self.learns_down
        to_parent = own + arrives[self.below] - down * self.learns_down
        to_child = own + arrives[parents] - up * self.learns_up
        return float(to_parent.sum() * self.learns_up + to_child.sum() * self.learns_down)

    def crossings(self, match: Floats, live: float) -> float:
        """Links that an average event crosses, for the shares of subscriptions that events match."""
        if self.floods:
            return float(len(self.below))
        misses = np.log1p(-np.minimum(match, 1 - 1e-12))[:, None] * live
        wanted_above = 1.0 - np.exp(misses * self.behind_down)
        wanted_below = 1.0 - np.exp(misses * self.behind_up)
        published_below = 0.0 if self.from_root else self.behind_up  # the publisher is below with this chance
        goes_up = published_below * (1.0 if self.always_up else wanted_above)
        goes_down = (1.0 - published_below) * wanted_below
        return float((goes_up + goes_down).sum(axis=1).mean()) if len(match) else 0.0


def _trees(experiment: Experiment, overlay: Overlay) -> tuple[list[Tree], float]:
    """The trees to look at, and how many each represents."""
    if experiment.routing.trees == "spanning":
        return [spanning(overlay, experiment.routing.root)], 1.0
    few = np.unique(np.linspace(0, overlay.brokers - 1, SOURCES).astype(int)).tolist()
    return [shortest_paths(overlay, source) for source in few], overlay.brokers / len(few)


def sample(experiment: Experiment, stream: Stream) -> tuple[Workload, int, int]:
    """The first rows of the workload, and how many subscriptions and events there are in all."""
    section = experiment.workload
    if section.from_files:
        whole = workload_of(experiment, stream)
        return _first(whole), len(whole.lo), len(whole.events)
    few = {"subscriptions": min(section.subscriptions, SAMPLE), "events": min(section.events, EVENTS)}
    small = experiment.model_copy(update={"workload": section.model_copy(update=few)})
    return workload_of(small, stream), section.subscriptions, section.events


def _first(whole: Workload) -> Workload:
    columns: Any = {name: getattr(whole, name)[:SAMPLE] for name in ("lo", "hi", "mentioned", "scores", "weights")}
    residues = {row: residue for row, residue in whole.residues.items() if row < SAMPLE}
    came, left = (None if times is None else times[:SAMPLE] for times in (whole.came, whole.left))
    timed: Any = {"came": came, "left": left, "times": None if whole.times is None else whole.times[:EVENTS]}
    return Workload(whole.schema, **columns, events=whole.events[:EVENTS], residues=residues, **timed)


def _lives(timeline: Timeline, count: int, subscriptions: int) -> tuple[float, float, float]:
    """The share of the subscriptions that leave again, the number in force at the busiest moment, and the share in
    force before time 0; `timeline`: of the first `count` of them."""
    if not count:
        return 0.0, 0.0, 0.0
    change = (timeline.kind == SUBSCRIBE).astype(int) - (timeline.kind == UNSUBSCRIBE).astype(int)
    loaded = len(timeline.preloaded)
    most = loaded + int(np.cumsum(change).max(initial=0))
    # If the whole sample is in force at once, the whole workload will be; else clients come and go at a steady level.
    live = subscriptions if most == count else most
    return float((timeline.kind == UNSUBSCRIBE).sum()) / count, float(live), loaded / count


def _match_shares(workload: Workload, semantics: str) -> Floats:
    """For each event of the sample, the share of the subscriptions that it matches."""
    if not len(workload.lo):
        return np.zeros(len(workload.events))
    terms, events = terms_of(workload, semantics), np.array(workload.events, dtype=np.float64)
    counts = np.zeros(len(events))
    for chunk in chunks_of(terms, len(workload.lo)):
        counts += np.bincount(all_reached(terms, chunk, events)[0], minlength=len(events))
    return counts / len(workload.lo)


def _width(table: str) -> float:
    """Bytes of a row in memory."""
    kinds = [field.type for field in ALL[table]]
    return sum(kind.index_type.bit_width if pa.types.is_dictionary(kind) else kind.bit_width for kind in kinds) / 8


# ── in words ───────────────────────────────────────────────────────────────────────────────────────────────


def coming(plan: Plan, jobs: int) -> Iterator[str]:
    """Sentences about a plan. Sizes are those of its first run: most sweeps change how, not how much."""
    first, count = plan.runs[0], len(plan.runs)
    many = f"{count} runs, {min(jobs, count)} at a time" if count > 1 else "one run"
    asked = sorted({run.experiment.run.engine for run in plan.runs})
    size = predict(first.experiment, first.seed)
    if len(asked) > 1:
        yield f"{many}, with the engines {', '.join(asked)}"
    else:
        small, _, _ = sample(first.experiment, streams(first.seed))
        chosen, why = engine_for(first.experiment, small, np.inf, lambda: size.messages)
        yield f"{many}, {'the first ' if count > 1 else ''}with the {chosen} engine ({why})"
    yield f"{'the first' if count > 1 else 'it'} is predicted to take {size}"
    if len(asked) == 1:
        swept = any(run.point != first.point for run in plan.runs)
        whose = " of the first, others may take longer" if swept else " of each" if count > 1 else ""
        each = about(size.seconds(chosen))
        yield f"predicted time{whose}: {each} to simulate and judge, without compiling and Spark"


def _round(count: float) -> str:
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:,.0f}"


def about(seconds: float) -> str:
    """A time in everyday words."""
    if seconds < 1:
        return "less than a second"
    for unit, name in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"about {seconds / unit:.0f} {name}"
    return f"about {seconds:.0f} s"


def _bytes(count: float) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"
