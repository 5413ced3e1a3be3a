"""A few events and subscriptions of one run, hop by hop: what the page's replay steps through.

They are chosen from the first rows of the trace, because a large run has hundreds of millions: first an event that was
lost on its way, then those with the most steps, a median number, fewer, and the fewest. A subscription's steps include
the links on which it was held back, and by whom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.spark.traces import Run
from broker.trace.schema import CLIENT, LOST, NOBODY

Words = Callable[[str, int], str]  # "event" or "subscription", its number → what it says
GIVEN = ("overlay", "links", "workload", "arrivals")  # sections of parameters; alike, if these are
MOST_BESIDE = 12  # other settings
MOST = 4  # events, and MOST subscriptions
MOST_STEPS = 400  # of one replay
_LOST_WORDS = {
    "queue-full": "lost, the queue was full",
    "link-down": "lost, the link was down",
    "crashed": "lost in a broker that crashed",
    "publisher-down": "never published, its broker was down",
}
_HELD = {"suppressed": "held back", "retracted": "taken back", "merged": "merged", "dormant": "dormant"}


def replays(run: Run, names: Sequence[str], others: Mapping[str, Run], words: Words | None) -> list[dict[str, Any]]:
    """title, content, and steps: time, from, to (brokers; from is None at a client's own broker), words, kind.

    `beside` has the same event or subscription under other settings, `others` by their titles.
    """
    told = _Told(run, names)
    compared = {title: _Told(other, names) for title, other in others.items()}
    found = []
    for kind, number in told.chosen():
        beside = [{"setting": title, **other.replay(kind, number)} for title, other in compared.items()]
        content = words(kind, number) if words else ""
        same = [replay for replay in beside if replay["steps"]]
        found.append({**told.replay(kind, number), "content": content, "beside": same})
    return found


def alike(run: Run, other: Run) -> bool:
    """Whether an event, a subscription and a broker of one run are the same in the other."""
    same = all(run.parameters.get(section) == other.parameters.get(section) for section in GIVEN)
    return same and run.record["seed"] == other.record["seed"] and run.record["brokers"] == other.record["brokers"]


class _Told:
    """The first rows of a run's trace."""

    def __init__(self, run: Run, names: Sequence[str]) -> None:
        tables = ("publications", "faults", "control", "decisions")
        self.names = names
        self.hops, faults, control, decisions = (run.read_first(table).to_pandas() for table in tables)
        self.lost = faults[faults["kind"].isin(LOST)]
        is_request = control["kind"].isin(["subscribe", "unsubscribe"]) & (control["subscription"] > NOBODY)
        self.control, self.held = control[is_request], decisions[decisions["outcome"].isin(list(_HELD))]

    def chosen(self) -> list[tuple[str, int]]:
        events = _choose(self.hops.groupby("event").size(), [int(event) for event in self.lost["event"].unique()])
        subscriptions = _choose(self.control.groupby("subscription").size(), [])
        return [*(("event", number) for number in events), *(("subscription", number) for number in subscriptions)]

    def replay(self, kind: str, number: int) -> dict[str, Any]:
        return self._event(number) if kind == "event" else self._subscription(number)

    def _event(self, event: int) -> dict[str, Any]:
        names = self.names
        steps = [_hop(row, names) for row in self.hops[self.hops["event"] == event].itertuples()]
        steps += [_loss(row, names) for row in self.lost[self.lost["event"] == event].itertuples()]
        reached = len({step["to"] for step in steps if step["kind"] != "lost"})
        return _replay(f"Event {event}{_where('published', steps, names)}: {reached} of {len(names)} brokers", steps)

    def _subscription(self, number: int) -> dict[str, Any]:
        names = self.names
        mine = self.control[self.control["subscription"] == number].itertuples()
        steps = [_step(row.time, row.source, row.target, f"{names[row.target]}: {row.kind}", "sent") for row in mine]
        for row in self.held[self.held["subscription"] == number].itertuples():
            by = f", {row.witness} covers it" if row.witness > NOBODY else ""
            words = f"{names[row.broker]}: {_HELD[str(row.outcome)]} towards {names[row.neighbour]}{by}"
            steps.append(_step(row.time, row.broker, row.neighbour, words, "held"))
        sent = sum(step["kind"] == "sent" and step["from"] is not None for step in steps)
        return _replay(f"Subscription {number}{_where('made', steps, names)}: {sent} message{'s' * (sent != 1)}", steps)


def _hop(row: Any, names: Sequence[str]) -> dict[str, Any]:
    served = f"delivered to {row.served}" if row.served else "nobody to deliver to"
    kind = "sent" if row.useful else "needless"
    return _step(row.time, row.source, row.target, f"{names[row.target]}: {served}", kind)


def _loss(row: Any, names: Sequence[str]) -> dict[str, Any]:
    end = row.neighbour if row.neighbour != CLIENT else row.broker
    return _step(row.time, row.broker, end, f"{names[row.broker]}: {_LOST_WORDS[str(row.kind)]}", "lost")


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
