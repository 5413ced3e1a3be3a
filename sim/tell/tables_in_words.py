"""Routing tables for people: by the names of brokers, as counts, as rows, and as the way of one subscription."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pandas as pd

from broker.trace.disk import writing
from broker.trace.schema import CLIENT, NOBODY
from coverlay import CoverlayError, quoted
from routing.overlay.trees import SHARED
from sim.tell.tables import DORMANT, HELD, LEAVING, PRUNED, STATES, SUPPRESSED, UNDER_WAY, Found

COLUMNS = ("broker", "from", "tree", "subscription", "state", "because of")
CLIENTS = "its clients"
WRITERS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False),
}


def shown(found: Found) -> Iterator[str]:
    """Whose tables these are, and how they are known."""
    end = ", its end" if found.at == found.trace.record["finished"] else ""
    yield f"{found.trace.which}, at {found.at:.3f} ms{end}, {found.said}"
    if found.down:
        names = ", ".join(found.trace.names[broker] for broker in sorted(found.down))
        yield f"down then: {names}; shown is what they had before"


def frame_of(found: Found, broker: int | None = None, subscription: int | None = None) -> pd.DataFrame:
    """A row for each subscription that a broker holds, or that a neighbour knows and keeps from it."""
    names = {**found.trace.names, CLIENT: CLIENTS}
    trees = {**found.trace.names, SHARED: ""}
    rows = [
        (names[here], names[source], trees[tree], number, state, "+".join(map(str, because)))
        for here, source, tree, number, state, because in found.tables.rows()
        if broker in (None, here) and subscription in (None, number)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def refuse_unwritable(path: Path) -> None:
    """Before anything takes long."""
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
    return frame[[name for name in COLUMNS if name not in ("tree", "because of") or frame[name].any()]]


def of_subscription(found: Found, subscription: int, broker: int | None) -> Iterator[str]:
    """Where a subscription lives, how many brokers hold it, and what keeps it from one of them."""
    trace, operations = found.trace, found.trace.read("operations")
    mine = operations[(operations["subscription"] == subscription) & (operations["time"] <= found.at)]
    mine = mine[mine["kind"].isin(["preload", "subscribe", "resubscribe", "unsubscribe"])]
    if mine.empty:
        raise CoverlayError(f"subscription {subscription} had not been made in run {trace.run_id} by {found.at:g} ms")
    home, left = int(mine.iloc[0].broker), mine.iloc[-1].kind == "unsubscribe"
    rows = (row for row in found.tables.rows() if row[3] == subscription)
    there = {broker for broker, _, _, _, state, _ in rows if state in (HELD, PRUNED, LEAVING)}
    gone = f" until {mine.iloc[-1].time:.3f} ms" if left else ""
    yield (
        f"subscription {subscription} of a client of {trace.names[home]}{gone}: held by {len(there)} of "
        f"{len(trace.names)} brokers"
    )
    if broker is not None and not left:
        yield from _way(found, subscription, home, broker)


def _way(found: Found, subscription: int, home: int, to: int) -> Iterator[str]:
    """From its home to a broker: who stands for it on each link."""
    routing = found.trace.parameters["routing"]
    if routing["trees"] == "per-source":
        return  # a way for each tree: the rows say it
    names, standing = found.trace.names, subscription
    way = found.trace.path(home, to)
    for here, there in pairwise(way):
        side = found.tables.sides.get((there, here, SHARED))
        _, state, because = next((s for s in (side.states() if side else ()) if s[0] == standing), (0, "", ()))
        link = f"  {names[here]} → {names[there]}:"
        if state == SUPPRESSED:
            by = " and ".join(map(_called, because))
            why = f"{by}, which {'were' if len(because) > 1 else 'was'} sent, cover{'' if len(because) > 1 else 's'} it"
            yield f"{link} {_called(standing)} is not sent, because {why}"
            standing = because[0]
        elif state not in (HELD, PRUNED, LEAVING):
            untold = f"routing.strategy = {routing['strategy']!r} tells nothing over this link"
            yield f"{link} {_called(standing)} is not there: {NOT_THERE.get(state, untold)}"
            return
    itself = standing == subscription
    yield f"  {names[to]} has {'it itself' if itself else f'{_called(standing)}, which stands for it'}"


NOT_THERE = {
    UNDER_WAY: "it was sent and has not arrived, or was lost with a link or broker that was down",
    DORMANT: "nothing that is advertised behind that link overlaps it",
}


def _called(subscription: int) -> str:
    return f"merger {NOBODY - subscription}" if subscription < NOBODY else str(subscription)
