"""What a broker knew at a step: the table that it had of a neighbour, and what its ledger had decided for another.

Rebuilt from the trace. A table changes with the messages that its broker processes, and is empty after a crash that
took the memory. The last decision about a subscription holds as long as the broker knows the subscription; if a coverer
is retracted later, what it held back passes to the wider one without a decision. A decision has the step of the first
message of its request that its broker processed at its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

from broker.trace.schema import CLIENT, NOBODY
from sim.tell.run_trace import Trace
from sim.tell.versions import Version

Link = tuple[int, int]  # sender, receiver
Matches = Callable[[int], bool]  # does an event match this subscription or merger?


class Gap(NamedTuple):
    """Where the way of a subscription from its broker ended."""

    asleep: bool  # nothing advertised behind the link overlapped it; else it had not come over the link
    here: int
    there: int
    standing: int  # itself, or who is sent in its place


class Knowledge:
    """The tables and ledgers of a run at any step. What was preloaded spread before the trace begins."""

    def __init__(self, control: pd.DataFrame, decisions: pd.DataFrame, forgot: Mapping[int, list[int]]) -> None:
        self._forgot = forgot
        self._changes = control[control["kind"].isin(["subscribe", "unsubscribe"])]
        causes = control[["target", "time", "operation", "step"]].drop_duplicates(["target", "time", "operation"])
        causes = causes.rename(columns={"target": "broker"})
        self._decisions = decisions.merge(causes, how="left", on=["broker", "time", "operation"])

    @staticmethod
    def of(trace: Trace) -> Knowledge:
        return Knowledge(trace.read("control"), trace.read("decisions"), trace.forgot)

    def _since(self, broker: int, step: int) -> int:
        return max((begun for begun in self._forgot.get(broker, ()) if begun <= step), default=0)

    def table(self, broker: int, source: int, tree: int, step: int) -> set[int]:
        """What a broker had heard from a neighbour, or from its own clients, before a step, and still had.

        `tree`: the version of the tree in which the tables of the link began.
        """
        rows = self._changes
        rows = rows[(rows["target"] == broker) & (rows["source"] == source)]
        rows = rows[(rows["step"] < step) & (rows["step"] >= self._since(broker, step))]
        if source != CLIENT:
            rows = rows[rows["tree"] == tree]
        last = rows.drop_duplicates("subscription", keep="last")
        return set(last.loc[last["kind"] == "subscribe", "subscription"].tolist())

    def knows(self, link: Link, version: Version, subscription: int, step: int) -> bool:
        """Had the sender of a link heard of a subscription, from anyone but the receiver?"""
        broker, neighbour = link
        rows = self._changes[(self._changes["target"] == broker) & (self._changes["subscription"] == subscription)]
        sources = set(rows["source"].tolist()) & {CLIENT, *version.tree.graph[broker]} - {neighbour}
        tables = (self.table(broker, source, version.begun(broker, source), step) for source in sources)
        return any(subscription in table for table in tables)

    def decided(self, link: Link, tree: int, subscription: int, step: int) -> tuple[str, tuple[int, ...]]:
        """The outcome that held for a subscription on a link at a step, and who covered it; "" if there was none."""
        broker, neighbour = link
        rows = self._decisions
        rows = rows[(rows["broker"] == broker) & (rows["neighbour"] == neighbour) & (rows["tree"] == tree)]
        rows = rows[(rows["step"] < step) & (rows["step"] >= self._since(broker, step))]
        mine = rows[rows["subscription"] == subscription]
        first = mine[mine["outcome"] != "united"].tail(1)  # united ones follow it
        if first.empty:
            return "", ()
        coverers = [c for c in mine.loc[first.index[0] :, "witness"].tolist() if c != NOBODY]
        later = rows[(rows.index > first.index[0]) & (rows["outcome"] == "retracted")]
        for gone, wider in zip(later["subscription"].tolist(), later["witness"].tolist(), strict=True):
            coverers = [wider if c == gone else c for c in coverers]
        return str(first["outcome"].iloc[0]), tuple(dict.fromkeys(coverers))

    def links(self, version: Version, subscription: int, step: int) -> Iterator[tuple[Link, str, tuple[int, ...]]]:
        """Every link of a tree whose sender knew a subscription at a step, the outcome there and who covered it."""
        mine = self._decisions[self._decisions["subscription"] == subscription]
        rows: list[Any] = list(mine.drop_duplicates(["broker", "neighbour", "tree"]).itertuples())
        for row in rows:
            link = row.broker, row.neighbour
            there = version.tree.graph.has_edge(*link) and row.tree == version.begun(*link)
            if there and self.knows(link, version, subscription, step):
                outcome, coverers = self.decided(link, row.tree, subscription, step)
                if outcome:
                    yield link, outcome, coverers

    def gap(self, path: list[int], version: Version, subscription: int, step: int, matches: Matches) -> Gap | None:
        """Where a subscription, or who `matches` in its place, ended on a path from its broker; None if it did not."""
        standing = subscription
        for here, there in pairwise(path):
            tree = version.begun(here, there)
            outcome, coverers = self.decided((here, there), tree, standing, step)
            standing = next((coverer for coverer in coverers if matches(coverer)), standing)
            if standing not in self.table(there, here, tree, step):
                return Gap(outcome == "dormant", here, there, standing)
        return None
