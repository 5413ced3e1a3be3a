"""A few events and subscriptions of one run, hop by hop: what the page's replay steps through.

They are chosen from the first rows of the trace, because a large run has hundreds of millions: first an event that was
lost on its way, then those with the most steps, a median number, fewer, and the fewest. A subscription's steps include
the links on which it was held back, and by whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.spark.traces import Run
from broker.trace.schema import CLIENT, LOST, NOBODY

MOST = 4  # events, and MOST subscriptions
MOST_STEPS = 400  # of one replay
_LOST_WORDS = {
    "queue-full": "lost, the queue was full",
    "link-down": "lost, the link was down",
    "crashed": "lost in a broker that crashed",
    "publisher-down": "never published, its broker was down",
}
_HELD = {"suppressed": "held back", "retracted": "taken back", "merged": "merged", "dormant": "dormant"}


def replays(run: Run, names: Sequence[str]) -> list[dict[str, Any]]:
    """title, and steps: time, from, to (brokers; from is None at a client's own broker), words, kind."""
    return [*_events(run, names), *_subscriptions(run, names)]


def _events(run: Run, names: Sequence[str]) -> list[dict[str, Any]]:
    hops, faults = (run.read_first(table).to_pandas() for table in ("publications", "faults"))
    lost = faults[faults["kind"].isin(LOST)]
    chosen = _choose(hops.groupby("event").size(), [int(event) for event in lost["event"].unique()])
    found = []
    for event in chosen:
        steps = [_hop(row, names) for row in hops[hops["event"] == event].itertuples()]
        steps += [_loss(row, names) for row in lost[lost["event"] == event].itertuples()]
        reached = len({step["to"] for step in steps if step["kind"] != "lost"})
        title = f"Event {event}{_where('published', steps, names)}: {reached} of {len(names)} brokers"
        found.append(_replay(title, steps))
    return found


def _hop(row: Any, names: Sequence[str]) -> dict[str, Any]:
    served = f"delivered to {row.served}" if row.served else "nobody to deliver to"
    kind = "sent" if row.useful else "needless"
    return _step(row.time, row.source, row.target, f"{names[row.target]}: {served}", kind)


def _loss(row: Any, names: Sequence[str]) -> dict[str, Any]:
    end = row.neighbour if row.neighbour != CLIENT else row.broker
    return _step(row.time, row.broker, end, f"{names[row.broker]}: {_LOST_WORDS[str(row.kind)]}", "lost")


def _subscriptions(run: Run, names: Sequence[str]) -> list[dict[str, Any]]:
    control, decisions = (run.read_first(table).to_pandas() for table in ("control", "decisions"))
    control = control[control["kind"].isin(["subscribe", "unsubscribe"]) & (control["subscription"] > NOBODY)]
    held = decisions[decisions["outcome"].isin(list(_HELD))]
    found = []
    for subscription in _choose(control.groupby("subscription").size(), []):
        mine = control[control["subscription"] == subscription].itertuples()
        steps = [_step(row.time, row.source, row.target, f"{names[row.target]}: {row.kind}", "sent") for row in mine]
        for row in held[held["subscription"] == subscription].itertuples():
            by = f", {row.witness} covers it" if row.witness > NOBODY else ""
            words = f"{names[row.broker]}: {_HELD[str(row.outcome)]} towards {names[row.neighbour]}{by}"
            steps.append(_step(row.time, row.broker, row.neighbour, words, "held"))
        sent = sum(step["kind"] == "sent" and step["from"] is not None for step in steps)
        title = f"Subscription {subscription}{_where('made', steps, names)}: {sent} message{'s' * (sent != 1)}"
        found.append(_replay(title, steps))
    return found


def _where(done: str, steps: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """At which broker it began, if the step from the client is among these."""
    start = next((step["to"] for step in steps if step["from"] is None), None)
    return "" if start is None else f", {done} at {names[start]}"


def _step(time: float, source: int, target: int, words: str, kind: str) -> dict[str, Any]:
    begin = None if source == CLIENT else int(source)
    return {"time": float(time), "from": begin, "to": int(target), "words": words, "kind": kind}


def _replay(title: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    steps.sort(key=lambda step: step["time"])
    cut = f" (its first {MOST_STEPS:,} of {len(steps):,} steps)" if len(steps) > MOST_STEPS else ""
    return {"title": title + cut, "steps": steps[:MOST_STEPS]}


def _choose(sizes: pd.Series[int], first: list[int]) -> list[int]:
    """One of `first`, then by size the largest, the median, the lower quartile, the smallest above 1; at most MOST."""
    known = [event for event in first if event in sizes.index][:1]
    ordered = sizes[sizes > 1].sort_values(kind="stable").index.tolist()
    spread = [ordered[i] for i in (-1, len(ordered) // 2, len(ordered) // 4, 0)] if ordered else []
    return [int(number) for number in dict.fromkeys([*known, *spread])][:MOST]
