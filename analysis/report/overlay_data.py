"""The data of the overlay's picture: one run per point, with its brokers, links and tables over time.

Positions and links come from the run's own small tables, entries and traffic from the results. The amount is bounded,
because all of it is written into the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.report.effects import Effects
from analysis.report.summary import family, is_covering
from analysis.spark.traces import Run, canonical
from broker.trace.schema import CLIENT

MOST_TIMES = 24  # stops of the slider
MOST_SWITCHES = 12  # further stops, where events began to follow other trees
# What brokers can be coloured by: columns of the results per broker.
MEASURES: dict[str, dict[str, str]] = {
    "entries": {"title": "table entries", "unit": "entries"},
    "processed": {"title": "messages processed", "unit": "messages"},
    "utilisation": {"title": "busy, share of the time", "unit": "share"},
    "waiting": {"title": "mean wait, ms", "unit": "ms"},
}
CLOSE = 0.015  # of the picture's width: brokers in one cell of this size are drawn side by side
GOLDEN = 2.399963  # radians between two neighbours of a spiral that fills a disc evenly
MOST_NUMBERS = 150_000  # brokers × (stops + columns) over all pictures: about 1 MB of page


def overlays(effects: Effects, runs: list[Run]) -> list[dict[str, Any]]:
    """One picture per run, as many as fit."""
    room = MOST_NUMBERS
    found: list[dict[str, Any]] = []
    for run in runs:
        room -= int(run.record["brokers"]) * (MOST_TIMES + MOST_SWITCHES + 12)
        if found and room < 0:
            break
        found.append(_overlay(effects, run))
    return found


def _overlay(effects: Effects, run: Run) -> dict[str, Any]:
    summary = effects.summary
    brokers = run.read("brokers").to_pandas().merge(_of(summary.brokers, run), "left", "broker")
    if len(summary.times):
        brokers = brokers.merge(_busy(_of(summary.times, run), float(run.record["finished"])), "left", "broker")
    brokers = brokers.fillna(0)
    links = _links(run).merge(_of(summary.links, run), "left", ["broker", "neighbour"])
    changes = tree_changes(run.read("versions").to_pandas())
    switches = switched(changes)
    times, samples = over_time(run.read("tables").to_pandas(), brokers["broker"].tolist(), switches)
    brokers["x"], brokers["y"], moved = spread(brokers["x"].to_numpy(), brokers["y"].to_numpy())
    point = canonical(run.point)
    return {
        "title": effects.title(point),
        "covering": is_covering(summary.labels(point)),
        "family": family(run.point),
        "brokers": brokers.to_dict("records"),
        "links": links.fillna(0).to_dict("records"),
        "geographic": bool(run.record.get("geographic")),
        "moved": moved,
        "times": times,
        "samples": samples,
        "switches": switches,
        "changed": changed_links(changes, links, times),
    }


Floats = np.ndarray[Any, np.dtype[np.float64]]


def spread(x: Floats, y: Floats) -> tuple[Floats, Floats, int]:
    """Positions with brokers at the same place moved apart along a spiral, and how many were moved."""
    step = CLOSE * max(float(np.ptp(x)), float(np.ptp(y)), 1e-9) if len(x) else 1.0
    cells: dict[tuple[int, int], int] = {}
    moved, at = 0, np.stack([x, y], axis=1).astype(np.float64)
    for row, (here_x, here_y) in enumerate(at.copy()):
        cell = round(here_x / step), round(here_y / step)
        before = cells.get(cell, 0)
        cells[cell] = before + 1
        if before:
            moved += 1
            reach, angle = step * np.sqrt(before), GOLDEN * before
            at[row] = here_x + reach * np.cos(angle), here_y + reach * np.sin(angle)
    return at[:, 0], at[:, 1], moved


def _busy(times: pd.DataFrame, finished: float) -> pd.DataFrame:
    """Per broker over the whole run: the share of the time it was busy, and the mean wait of its messages."""
    sums = times.groupby("broker")[["messages", "waited", "busy"]].sum().reset_index()
    sums["utilisation"] = (sums["busy"] / finished).clip(upper=1.0) if finished else 0.0
    sums["waiting"] = sums["waited"] / sums["messages"]
    return sums[["broker", "utilisation", "waiting"]]


def _links(run: Run) -> pd.DataFrame:
    """Each link once, as the traffic has it: the smaller broker first."""
    frame = run.read("links").to_pandas()
    ends = frame[["broker", "neighbour"]]
    frame["broker"], frame["neighbour"] = ends.min(axis=1), ends.max(axis=1)
    return frame.drop_duplicates(["broker", "neighbour"])


def _of(frame: pd.DataFrame, run: Run) -> pd.DataFrame:
    return frame[frame["run"] == run.name].drop(columns="run")


def over_time(
    tables: pd.DataFrame, brokers: list[int], switches: Sequence[float]
) -> tuple[list[float], list[list[int]]]:
    """Remote entries per broker at up to MOST_TIMES sample times, the last one included, and at each switch-over.

    The first stop is before the first switch-over.
    """
    remote = tables[tables["neighbour"] != CLIENT]
    wide = remote.pivot_table(index="time", columns="broker", values="entries", aggfunc="sum")
    last = len(wide) - 1
    stops = {float(wide.index[round(i * last / (MOST_TIMES - 1))]) for i in range(MOST_TIMES)} if len(wide) else set()
    stops |= {*switches}
    if switches and min(stops) == switches[0]:
        stops.add(0.0)
    # A broker missing from a sample has what it had before, and nothing before its first sample.
    wide = wide.reindex(index=sorted({*wide.index, *stops}), columns=brokers).ffill().fillna(0).astype(int)
    return sorted(stops), wide.loc[sorted(stops)].to_numpy().tolist()


# ── which trees events follow, where fail-over changes them ────────────────────────────────────────────────


def tree_changes(versions: pd.DataFrame) -> pd.DataFrame:
    """Links that joined or left a tree, `by` 1 or −1, and the `time` from which events that are published felt it.

    Each version says how it differs from the one before it, which may never have been followed.
    """
    time = versions.groupby("source")["serves"].bfill()
    by = versions["joins"].map({True: 1, False: -1})
    return versions[["broker", "neighbour"]].assign(time=time, by=by).dropna(subset="time")


def switched(changes: pd.DataFrame) -> list[float]:
    """When events began to follow other trees; where that is often, some of the moments, first and last included."""
    moments = sorted(changes["time"].unique().tolist())
    last = len(moments) - 1
    return sorted({moments[round(i * last / (MOST_SWITCHES - 1))] for i in range(MOST_SWITCHES)}) if moments else []


def changed_links(changes: pd.DataFrame, links: pd.DataFrame, times: Sequence[float]) -> list[list[list[int]]]:
    """For every stop of the slider the links that more or fewer trees have than at first: row of the link, how many."""
    rows = {link: row for row, link in enumerate(zip(links["broker"], links["neighbour"], strict=True))}
    found = []
    for stop in times:
        by = changes[changes["time"] <= stop].groupby(["broker", "neighbour"])["by"].sum().reset_index()
        found.append([[rows[one, other], more] for one, other, more in by.to_numpy().tolist() if more])
    return found
