"""The obvious, slow twin of the oracle's judgement of deliveries: sets and loops, subscription by subscription.

Only when subscriptions came, settled and left is taken from the oracle itself.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from broker.trace.schema import (
    CLIENT,
    CRASHED,
    FAILURES,
    LINK_DOWN,
    PUBLISHER_DOWN,
    QUEUE_FULL,
    REPAIRS,
)
from sim.experiment import oracle
from sim.experiment.oracle_lives import Requests, lives_of
from sim.experiment.oracle_paths import with_mergers
from sim.experiment.oracle_versions import Versions
from tests.topk.oracles import great_circle

# Of boxes and plain covering; tests replace what they are about.
USUAL = oracle.Rules("exact", None, "boxes", 1.0, "degrees", False, "all", None, instant=False)


def score(workload: Any, row: int, values: Any, weights: Any, rules: oracle.Rules) -> float | None:
    """The score of a subscription for an event, None if it is not reached."""
    names = np.flatnonzero(workload.mentioned[row]).tolist()
    residue = workload.residue(row)
    excluded, allowed = dict(residue.excluded), dict(residue.allowed)

    def holds(name: int) -> bool:
        value = values[name]
        inside = workload.lo[row, name] <= value <= workload.hi[row, name]
        return bool(inside) and value not in excluded.get(name, ()) and value in allowed.get(name, (value,))

    held = [name for name in names if holds(name)]
    if not (held if rules.semantics == "relaxed" else held == names):
        return None
    weight = {name: float(workload.weights[row, name]) for name in names}
    if rules.kind == "predicates":
        return sum((weight[name] * (1.0 if weights is None else weights[name]) for name in held), 0.0)
    if rules.kind == "places":
        whole = sum(weight.values(), 0.0) or 1.0
        text = sum((weight[name] / whole for name in held), 0.0)
        place = workload.nearest(row)
        if place is None:
            return text
        north, east = workload.schema.place
        spot, there = (place[0], place[1]), (float(values[north]), float(values[east]))
        distance = great_circle(spot, there) if rules.metric == "great-circle" else math.dist(spot, there)
        close = 0.0 if math.isnan(distance) else max(0.0, 1.0 - distance / rules.max_distance)
        return (1.0 - place[2]) * text + place[2] * close
    return sum((weight[name] for name in held), 0.0) if rules.semantics == "relaxed" else float(workload.scores[row])


def down(faults: Any, fails: str, repaired: str, *target: int) -> list[tuple[float, float]]:
    """From when until when something was down."""
    its = faults[(faults["broker"] == target[0]) & (faults["neighbour"] == target[1])]
    begins, ends = (its["time"][its["kind"] == kind].tolist() for kind in (fails, repaired))
    return list(zip(begins, [*ends, math.inf], strict=False))


def flood(tables: Any, publisher: int, since: float) -> dict[int, float]:
    """When an event arrives where, sent on at once over links that stay up: link by link, until nothing changes."""
    faults, links = tables["faults"].to_pandas(), tables["links"].to_pandas()
    dead = {broker: down(faults, "crash", "restart", broker, -1) for broker in range(tables["brokers"].num_rows)}
    if any(begin <= since < end for begin, end in dead[publisher]):
        return {}
    found, before = {publisher: since}, None
    while found != before:
        before = dict(found)
        for one, other, latency in zip(links["broker"], links["neighbour"], links["latency"], strict=True):
            broken = [*dead[one], *dead[other], *down(faults, "cut", "heal", one, other)]
            for here, there in ((one, other), (other, one)):
                leaves, arrives = found.get(here, math.inf), found.get(here, math.inf) + latency
                if all(arrives < begin or end <= leaves for begin, end in broken) and arrives < found.get(
                    there, math.inf
                ):
                    found[there] = arrives
    return found


def judge(workload: Any, tables: Any, rules: oracle.Rules) -> Counter[str]:
    """What was due, delivered, lost for each cause or unavoidably, delivered though not due; duplicates, spurious."""
    brokers, events = tables["brokers"].num_rows, len(workload.events)
    total = len(with_mergers(workload, tables["decisions"]).lo)
    requests = Requests.of(tables, Versions.of(workload, tables["operations"]))
    lives, _ = lives_of(tables, requests, workload.scores, total, by_rank=False)
    faults = tables["faults"].to_pandas()
    hops, served, tried = (tables[name].to_pandas() for name in ("publications", "deliveries", "published"))
    broken = oracle._broken_times(faults)
    counts: Counter[str] = Counter()
    for event in range(events):
        told, way = tried[tried["event"] == event], hops[hops["event"] == event]
        if not len(told):
            continue
        (step,), (published,) = told["step"], told["time"]
        ended, last = max([published, *way["time"]]), max([step - 1, *way["step"]])
        its = faults[faults["event"] == event]
        kinds, refused = set(its["kind"]), QUEUE_FULL in set(its["kind"][its["neighbour"] == CLIENT])
        lost = its["time"][its["kind"].isin([LINK_DOWN, CRASHED])]
        faulty = any((a <= ended and published <= b) or lost.between(a, b).any() for a, b in broken)
        flooded = flood(tables, int(told["broker"].iloc[0]), published)
        failed, back = (faults["kind"].isin(kinds) & (faults["time"] <= published) for kinds in (FAILURES, REPAIRS))
        when = "during" if failed.sum() > back.sum() else "after" if failed.any() else "before"
        step_at = dict(zip(way["target"], way["step"], strict=True))
        counts["duplicates"] += len(way) - len(step_at)
        mine = served[served["event"] == event].sort_values(["broker", "rank"], kind="stable")
        weights = None if workload.event_weights is None else workload.event_weights[event]
        for broker in range(brokers):
            found, arrived = [], step_at.get(broker, step)
            # No way led there in time, or only thanks to what was repaired meanwhile.
            no_way = broker not in flooded or any(a <= flooded[broker] and published <= b for a, b in broken)
            for at in np.flatnonzero(lives.home == broker):
                value = score(workload, int(lives.number[at]), workload.events[event], weights, rules)
                if value is not None and lives.came[at] < arrived <= lives.left[at]:
                    found.append((-value, int(lives.number[at]), at))
            due = sorted(found)[: rules.k]
            best, here = [number for _, number, _ in due], mine[mine["broker"] == broker]
            got = here["subscription"].tolist()
            alike = got == best and here["rank"].tolist() == list(range(1, len(got) + 1))
            alike = alike and np.allclose(here["score"], [-key for key, *_ in due])
            for name in ("due", f"due_{when}"):
                counts[name] += len(best)
            for name in ("due_delivered", f"due_delivered_{when}"):
                counts[name] += len(set(best) & set(got))
            counts["undue"] += len(set(got) - set(best))
            counts["duplicates"] += len(got) - len(set(got))
            counts["spurious"] += 0 if faulty else len(set(got) - set(best))
            counts["spurious"] += sorted(got) == sorted(best) and not alike
            for _, number, at in due:
                if number in got:
                    continue
                firm = lives.settled[at] < step and lives.left[at] > last
                if not len(way) and PUBLISHER_DOWN in kinds:
                    cause = "missed_unpublished"
                elif not len(way) and refused:
                    cause = "missed_refused"
                elif broker not in step_at and not firm:
                    cause = "missed_transient"
                elif faulty or (no_way and QUEUE_FULL not in kinds):
                    cause = "missed_fault"
                else:
                    cause = "missed_dropped" if QUEUE_FULL in kinds and broker not in step_at else "missed"
                counts[cause] += 1
                for name in ("unavoidable", f"unavoidable_{when}"):
                    counts[name] += broker not in flooded
    return counts
