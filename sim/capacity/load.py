"""What one run says about its rate: latency, and the queue that has most to do.

The search has to know this before it chooses the next rates, so it is read from the trace of the run and not from the
aggregation of all. p50 and p99 are those of analysis/spark/metrics/durations.py to the last digit, and the load of the
busiest broker is `event_load` of analysis/spark/metrics/service.py:

    load = time that its messages take ÷ time from the first publication to the last

where the messages are all that are about events (answers and awards too, where the k best of the whole network are
served), and the control messages sent while events were published. All follow from simulated counts. A queue that gets
more work than there is time keeps growing; one that gets less empties again and again. So a queue is said to grow
for as long as events come if its load is 1 or more. Links with a bandwidth have queues too: there messages take as long
as their bytes.

The rate of a run is that of the events that were drawn, which come a little faster or slower than asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.spark.traces import Run, open_run
from broker.messages import HEADER_BYTES
from broker.trace.buckets import WORK_UNIT, in_units, middle_of
from broker.trace.schema import CLIENT, QUEUE_FULL
from coverlay import CoverlayError

FULL = 1.0  # the load from which on a queue grows without bound
# Bytes of a control message for each attribute, beside its header; what recovery exchanges is counted as headers.
_BYTES_PER_ATTRIBUTE = {"subscribe": 16, "advertise": 16, "rerank": 8}
SHARES = ("covering", "tables", "matching")  # what a broker's time goes into, where it is counted; the rest is serving


@dataclass(frozen=True)
class Load:
    """One run at one rate."""

    p50: float
    p99: float  # ms
    load: float  # of the busiest queue
    where: str  # whose queue that is
    shares: dict[str, float]  # of its time: covering, tables, matching, serving; empty where that is not counted
    messages: float  # that it serves for each event, on average
    took: float  # ms per message, on average
    dropped: int  # copies of events that found a queue full
    period: float  # ms from the first publication to the last
    events: int  # published meanwhile
    rate: float  # of these, per second: as drawn, not as asked for
    deliveries: int  # that the percentiles are of

    @property
    def grows(self) -> bool:
        """A queue grows without bound."""
        return self.load >= FULL

    def holds(self, limit: float) -> bool:
        return self.p99 < limit and not self.grows and not self.dropped

    def why_not(self, limit: float) -> str:
        if self.grows:
            busy = f"{100 * self.load:.4g} %" if self.load < 10 else f"{100 * self.load:,.0f} %"
            return f"{self.where} then has work for {busy} of the time, so that its queue grows as long as events come"
        if self.dropped:
            return f"{self.dropped:,} copies of events then find a queue full"
        return f"the 99th percentile is then {self.p99:.3g} ms, not below {limit:g} ms"


def load_of(folder: Path, attributes: int) -> Load:
    """What the run in this folder says; `attributes`: of an event, which decide its size on a link."""
    run = open_run(folder)
    events = _columns(run, "publications")
    published, tried = events["published"], run.read("published").num_rows or len(np.unique(events["event"]))
    period = float(published.max() - published.min()) if len(published) else 0.0
    if not period > 0:
        raise CoverlayError("a rate needs at least two events, published at different times")
    rows, rest = run.read("deliveries"), run.read("deliveries_rest")
    counts = np.concatenate([np.ones(rows.num_rows, np.int64), rest.column("count").to_numpy()])
    if not len(counts):
        raise CoverlayError("no event was delivered to anybody, so there is no latency to keep below a limit")
    latencies = rows.column("latency").to_numpy()
    if rest.num_rows:  # of what sampling left out only the bucket is known
        latencies = middle_of(np.concatenate([part.column("latency_bucket").to_numpy() for part in (rows, rest)]))
    p50, p99 = (_nearest_rank(latencies, counts, percent) for percent in (50, 99))
    control = _columns(run, "control")
    meanwhile = (control["sent"] >= published.min()) & (control["sent"] <= published.max())
    control = {name: values[meanwhile] for name, values in control.items()}
    ranked = _columns(run, "ranked")
    replies = {name: values[~ranked["carries"]] for name, values in ranked.items()}  # the others are in `events`
    brokers = int(run.record["brokers"])

    def total(rows: dict[str, NDArray[Any]], name: str) -> NDArray[Any]:
        """Per broker, in ms; whole units add up to the same in any order."""
        units = in_units(np.nan_to_num(rows[name]), WORK_UNIT)
        return np.bincount(rows["target"], units, brokers) * WORK_UNIT

    busy = total(events, "service") + total(replies, "service") + total(control, "service")
    worst = int(busy.argmax())
    served = sum(int((rows["target"] == worst).sum()) for rows in (events, replies, control))
    spent = {"covering": total(control, "on_covering")[worst]}
    spent |= {name: total(events, f"on_{name}")[worst] for name in SHARES[1:]}
    names = run.read("brokers").column("name").to_pylist()
    shares = {}
    if run.parameters["broker"]["service"]["kind"] == "work" and busy[worst]:
        shares = {name: float(spent[name] / busy[worst]) for name in SHARES}
        shares["serving"] = 1.0 - sum(shares.values())
    dropped = run.read("faults").column("kind").to_pylist().count(QUEUE_FULL)
    work, where = float(busy[worst]), str(names[worst])
    about_events = (
        ranked if len(ranked["event"]) else {**events, "bytes": np.full(len(published), HEADER_BYTES + 8 * attributes)}
    )
    kinds = run.read("control").column("kind").to_pylist()
    each = np.array([HEADER_BYTES + attributes * _BYTES_PER_ATTRIBUTE.get(kind, 0) for kind in kinds], np.int64)
    on_link = _busiest_link(run, [about_events, {**control, "bytes": each[meanwhile]}], names)
    if on_link is not None and on_link[0] > work:
        (work, where, served), shares = on_link, {}
    per_event, took = served / len(np.unique(events["event"])), work / max(served, 1)
    drawn, made = 1000 * tried / period, int(counts.sum())
    return Load(p50, p99, work / period, where, shares, per_event, took, dropped, period, tried, drawn, made)


def _nearest_rank(values: NDArray[np.float64], counts: NDArray[np.int64], percent: int) -> float:
    order = np.argsort(values)
    reached = np.cumsum(counts[order])
    return float(values[order[np.searchsorted(100 * reached, percent * reached[-1])]])


def _columns(run: Run, table: str) -> dict[str, NDArray[Any]]:
    found = run.read(table)
    about = ("event", "source", "target", "sent", "published", "carries", "bytes")
    wanted = (*about, "service", "on_covering", "on_tables", "on_matching")
    return {name: found.column(name).to_numpy(zero_copy_only=False) for name in wanted if name in found.column_names}


def _busiest_link(run: Run, tables: list[dict[str, NDArray[Any]]], names: list[str]) -> tuple[float, str, int] | None:
    """How long messages occupy the busiest link, its name and their number; None without a bandwidth or messages."""
    bandwidth = run.parameters["links"].get("bandwidth")
    source, target, size = (np.concatenate([rows[name] for rows in tables]) for name in ("source", "target", "bytes"))
    sent = source != CLIENT
    if bandwidth is None or not sent.any():
        return None
    links, link, counts = np.unique(
        np.stack([source[sent], target[sent]]), axis=1, return_inverse=True, return_counts=True
    )
    sizes = np.bincount(link.ravel(), size[sent])
    most = int(sizes.argmax())
    begin, end = (names[broker] for broker in links[:, most])
    return float(sizes[most] / bandwidth), f"the link from {begin} to {end}", int(counts[most])
