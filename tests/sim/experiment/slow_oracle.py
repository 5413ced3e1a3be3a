"""The obvious, slow twin of the oracle's judgement of deliveries: sets and loops, subscription by subscription.

Only when subscriptions came, settled and left is taken from the oracle itself.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from broker.trace.schema import CRASHED, LINK_DOWN, QUEUE_FULL
from sim.experiment import oracle
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


def judge(workload: Any, tables: Any, rules: oracle.Rules) -> Counter[str]:
    """missed, duplicates, spurious, missed_transient, missed_dropped, missed_fault."""
    brokers, events = tables["brokers"].num_rows, len(workload.events)
    total = len(with_mergers(workload, tables["decisions"]).lo)
    versions = Versions.of(workload, tables["operations"])
    lives, _ = oracle._lives(tables, brokers, workload.scores, total, ranked=False, versions=versions)
    home = np.searchsorted(lives.first, np.arange(len(lives.number)), side="right") - 1
    faults = tables["faults"].to_pandas()
    hops, served = (tables[name].to_pandas() for name in ("publications", "deliveries"))
    broken = oracle._broken_times(faults)
    counts: Counter[str] = Counter()
    for event in range(events):
        way = hops[hops["event"] == event]
        if not len(way):
            continue
        published, ended = way["published"].iloc[0], way["time"].max()
        kinds = set(faults["kind"][faults["event"] == event])
        faulty = bool(kinds & {LINK_DOWN, CRASHED}) or any(a <= ended and published <= b for a, b in broken)
        cause = "missed_fault" if faulty else "missed_dropped" if QUEUE_FULL in kinds else "missed"
        step_at = dict(zip(way["target"], way["step"], strict=True))
        counts["duplicates"] += len(way) - len(step_at)
        mine = served[served["event"] == event].sort_values(["broker", "rank"], kind="stable")
        weights = None if workload.event_weights is None else workload.event_weights[event]
        for broker in range(brokers):
            found = []
            for at in np.flatnonzero(home == broker):
                row, values = int(lives.number[at]), workload.events[event]
                value = score(workload, row, values, weights, rules)
                if value is not None:
                    found.append((-value, int(lives.number[at]), at))
            if broker in step_at:
                force = [row for row in found if lives.came[row[2]] < step_at[broker] < lives.left[row[2]]]
                best = [number for _, number, _ in sorted(force)][: rules.k]
                here = mine[mine["broker"] == broker]
                got = here["subscription"].tolist()
                alike = got == best and here["rank"].tolist() == list(range(1, len(got) + 1))
                alike = alike and np.allclose(here["score"], [-key for key, *_ in sorted(force)][: rules.k])
                counts["duplicates"] += len(got) - len(set(got))
                counts["missed_fault" if faulty else "missed"] += len(set(best) - set(got))
                counts["spurious"] += 0 if faulty else len(set(got) - set(best))
                counts["spurious"] += sorted(got) == sorted(best) and not alike
                continue
            rows = np.array([at for *_, at in found], dtype=np.int64)
            required = (lives.settled[rows] <= published) & (lives.asked_to_leave[rows] > ended)
            doubt = ~required & (lives.asked[rows] <= published) & (lives.asked_to_leave[rows] > published)
            counts[cause] += min(int(required.sum()), len(rows) if rules.k is None else rules.k)
            counts["missed_transient"] += int(doubt.sum())
    return counts
