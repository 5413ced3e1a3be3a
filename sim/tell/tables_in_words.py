"""Routing tables for people: by the names of brokers, as counts, as rows, and as the way of one subscription."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd

from broker.trace.disk import writing
from broker.trace.schema import CLIENT, NOBODY
from coverlay import CoverlayError, quoted
from routing.overlay.trees import SHARED
from sim.tell.tables import DORMANT, HELD, LEAVING, PRUNED, STATES, SUPPRESSED, UNDER_WAY, Found

COLUMNS = ("broker", "from", "tree", "subscription", "id", "state", "because of")
SPARE = ("tree", "id", "because of")  # columns that are empty in many runs
CLIENTS = "its clients"
NOT_TOLD = "not told"  # the neighbour does not know it either
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how cells begin that spreadsheets compute


def _no_formula(cell: Any) -> Any:
    """A name from the user's files as spreadsheets show it, not as a formula that they would compute."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


WRITERS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    ".csv": lambda frame, path: frame.map(_no_formula).to_csv(path, index=False),
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False),
}


def shown(found: Found) -> Iterator[str]:
    """Which run and time the tables are of, and where they come from."""
    end = ", its end" if found.at == found.trace.record["finished"] else ""
    yield f"{found.trace.which}, at {found.at:.3f} ms{end}, {found.said}"
    if found.down:
        names = ", ".join(found.trace.names[broker] for broker in found.down)
        yield f"down at that time: {names}; their tables are those from before"


def frame_of(found: Found, broker: int | None = None, subscription: int | None = None) -> pd.DataFrame:
    """A row for each subscription that a broker holds, or that a neighbour knows and keeps from it."""
    names = {**found.trace.names, CLIENT: CLIENTS}
    trees = {**found.trace.names, SHARED: ""}
    ids = found.trace.ids
    told = [row for row in found.tables.rows() if broker in (None, row[0]) and subscription in (None, row[3])]
    if broker is None and subscription is not None:
        told += _behind(found, subscription, {row[0] for row in told})
    rows = []
    for here, source, tree, number, state, because in told:
        called = ids[number] if 0 <= number < len(ids) else ""
        rows.append((names[here], names[source], trees[tree], number, called, state, "+".join(map(str, because))))
    return pd.DataFrame(rows, columns=list(COLUMNS))


Row = tuple[int, int, int, int, str, tuple[int, ...]]


def _behind(found: Found, subscription: int, told: set[int]) -> list[Row]:
    """A row for each broker whose neighbours do not know a subscription either; `told`: brokers that have a row."""
    mine = _made(found, subscription)
    gone = mine.empty or mine.iloc[-1].kind == "unsubscribe"
    if gone or found.trace.per_source:
        return []
    home = int(mine.iloc[0].broker)
    ways = nx.bfs_edges(found.trace.newest(home, found.at).tree.graph, home, sort_neighbors=sorted)
    standing: dict[int, tuple[int, ...]] = {home: (subscription,)}
    rows: list[Row] = []
    for here, there in ways:
        standing[there] = tuple(dict.fromkeys(s for one in standing[here] for s in _passed_on(found, here, there, one)))
        if there not in told:
            rows.append((there, here, SHARED, subscription, NOT_TOLD, standing[there]))
    return rows


def _passed_on(found: Found, here: int, there: int, standing: int) -> tuple[int, ...]:
    """What represents a subscription behind a link."""
    state, because = _state(found, here, there, standing)
    if state == SUPPRESSED:
        return because
    return (standing,) if state in (HELD, PRUNED, LEAVING) else ()


def _state(found: Found, here: int, there: int, subscription: int) -> tuple[str, tuple[int, ...]]:
    """What became of a subscription on the link here → there, and because of whom."""
    side = found.tables.sides.get((there, here, SHARED))
    return next(((state, by) for s, state, by in (side.states() if side else ()) if s == subscription), ("", ()))


def refuse_unwritable(path: Path) -> None:
    """Called before anything takes long."""
    if path.suffix not in WRITERS:
        raise CoverlayError(f"--out {quoted(str(path))} ends in none of: {', '.join(WRITERS)}")


def write(frame: pd.DataFrame, path: Path) -> None:
    with writing(path, "nothing was written"):
        WRITERS[path.suffix](frame, path)


def counts(frame: pd.DataFrame) -> pd.DataFrame:
    """How many of each state, per broker and neighbour; states that nobody is in are left out."""
    present = [state for state in STATES if (frame["state"] == state).any()]
    where = [frame["broker"], frame["from"]]
    counted = {state: (frame["state"] == state).groupby(where, sort=False).sum() for state in present}
    return pd.DataFrame(counted).reset_index()


def at_broker(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns in which rows differ or say something."""
    return frame[[name for name in COLUMNS if name not in SPARE or frame[name].any()]]


def of_subscription(found: Found, subscription: int, broker: int | None) -> Iterator[str]:
    """Where a subscription lives, how many brokers hold it, and what keeps it from one of them."""
    trace, mine = found.trace, _made(found, subscription)
    if mine.empty:
        raise CoverlayError(f"subscription {subscription} had not been made in run {trace.run_id} by {found.at:g} ms")
    home, left = int(mine.iloc[0].broker), mine.iloc[-1].kind == "unsubscribe"
    rows = (row for row in found.tables.rows() if row[3] == subscription)
    there = {broker for broker, _, _, _, state, _ in rows if state in (HELD, PRUNED, LEAVING)}
    gone = f" until {mine.iloc[-1].time:.3f} ms" if left else ""
    yield (
        f"subscription {trace.subscription(subscription)} of a client of {trace.names[home]}{gone}: "
        f"held by {len(there)} of {len(trace.names)} brokers"
    )
    if broker is not None and not left:
        yield from _way(found, subscription, home, broker)


def _made(found: Found, subscription: int) -> pd.DataFrame:
    """The requests about a subscription up to the time shown."""
    operations = found.trace.read("operations")
    mine = operations[(operations["subscription"] == subscription) & (operations["time"] <= found.at)]
    return mine[mine["kind"].isin(["preload", "subscribe", "resubscribe", "unsubscribe"])]


def _way(found: Found, subscription: int, home: int, to: int) -> Iterator[str]:
    """From its home to a broker: what represents it on each link."""
    routing = found.trace.parameters["routing"]
    if found.trace.per_source:
        return  # each tree has its own way: the rows say it
    names, standing, called, part = found.trace.names, subscription, partial(_called, found), ""
    for here, there in pairwise(found.trace.newest(home, found.at).path(home, to)):
        state, because = _state(found, here, there, standing)
        link = f"  {names[here]} → {names[there]}:"
        if state == SUPPRESSED:
            was, covers = ("were", "cover") if len(because) > 1 else ("was", "covers")
            by = " and ".join(map(called, because))
            yield f"{link} {called(standing)} is not sent, because {by}, which {was} sent, {covers} it"
            standing = because[0]
            if routing["cover"] == "union" and len(because) > 1:
                part = "part of "
        elif state not in (HELD, PRUNED, LEAVING):
            untold = f"routing.strategy = {routing['strategy']!r} sends nothing over this link"
            yield f"{link} {called(standing)} is not there: {NOT_THERE.get(state, untold)}"
            return
    itself = standing == subscription
    yield f"  {names[to]} has {'it itself' if itself else f'{called(standing)}, which covers {part}it'}"


NOT_THERE = {
    UNDER_WAY: "it was sent and has not arrived, or was lost with a link or broker that was down",
    DORMANT: "nothing that is advertised behind that link overlaps it",
}


def _called(found: Found, subscription: int) -> str:
    return f"merger {NOBODY - subscription}" if subscription < NOBODY else found.trace.subscription(subscription)
