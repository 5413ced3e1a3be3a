"""Ranked matching of Boolean expressions and of places: ours against a full numba scan and what others would use.

All methods of a line get the same events in turns and must give the same answer; times are per single call, top-5.
Every set is measured with events that match .1 % of it (author- and title-like events: one of the expressions) and
with events that match nothing. Peers take milliseconds to seconds per event, so they get fewer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sim.bench import Progress, Row, places
from sim.bench.sparse_peers import PEERS
from sim.bench.timing import mean_least
from sim.workloads.begen import Begen, Expressions, begen, dblp_like, unmatched
from topk import sparse

K = 5
SCAN, OURS, STAR = places.SCAN, "pivot", "be-star"
EVEN, DENSE = ("uniform", "zipf"), ("author", "title")
MATCHING, NOTHING = places.MATCHING, "nothing matches"
FULL, FULL_PLACES = 1_000_000, 2_000_000
_DENSE_SIZE = {"author": 0.76, "title": 0.25}  # of a million: the published sizes (Table III)
_EVENTS = 50
_WARM_UP = 10  # of them, before each turn: the scan leaves nothing of a method in the caches
_PEER_EVENTS = 3
_ROUNDS, _PEER_ROUNDS = 5, 2
_BATCH = 25  # times the events: long enough to keep all cores busy
_ALL_TREES = 100_000  # expressions up to which all the papers' structures are built; above, BE*-Tree's two


class Built(NamedTuple):
    index: Any
    seconds: float
    size: float | None = None  # bytes per subscription beyond the catalogue


def run(quick: bool, progress: Progress) -> list[Row]:
    tiny = begen(Begen(subscriptions=500, events=1))
    for name in sparse.METHODS:
        progress(f"compiling {name}")
        sparse.build(name, tiny.catalogue).top(tiny.events[0], K)
    rows: list[Row] = []
    for count in (20_000, 100_000) if quick else (100_000, FULL):
        rows += expressions(count, progress)
    return rows + places.run(100_000 if quick else FULL_PLACES, progress)


def expressions(count: int, progress: Progress) -> list[Row]:
    """All sets of about `count` expressions."""
    rows: list[Row] = []
    trees = (STAR, "be-star-batch") if count > _ALL_TREES else (STAR, "be-star-batch", "be-tree", "k-index")
    for data in EVEN:
        progress(f"{data}, {count} expressions: generating")
        workload = begen(Begen(subscriptions=count, events=_EVENTS, distribution=data))
        rows += _measured(data, workload, (OURS, *trees), PEERS, progress)
    for data in DENSE:
        size = int(count * _DENSE_SIZE[data])
        progress(f"{data}, {size} expressions: generating")
        rows += _measured(data, dblp_like(data, size, _EVENTS), (OURS, STAR), {}, progress)
    return rows


def _measured(
    data: str, workload: Expressions, names: tuple[str, ...], peers: dict[str, Any], progress: Progress
) -> list[Row]:
    catalogue, events = workload.catalogue, list(workload.events)
    said = f"{data}, {len(catalogue)} expressions"
    built = {SCAN: _built("scan", workload)}
    for name in names:
        progress(f"{said}: building {name}")
        built[name] = _built(name, workload)
    rows: list[Row] = []
    for case, asked in ((MATCHING, events), (NOTHING, list(unmatched(workload)))):
        progress(f"{said}: {case}")
        expected = [built[SCAN].index.top(event, K) for event in asked]
        for name, made in built.items():
            assert [made.index.top(event, K) for event in asked] == expected, f"{name} disagrees with the scan"
        tasks = {name: _asker(made.index) for name, made in built.items()}
        times = mean_least(tasks, asked[_WARM_UP:], _ROUNDS, warm_up=asked[:_WARM_UP])
        scan = times[SCAN]
        rows += [_row(workload, data, case, name, times[name], scan, made) for name, made in built.items()]
        if case == MATCHING:
            seconds = _in_batch(built[OURS], workload)
            rows.append(_row(workload, data, case, f"{OURS}, batch", seconds, scan, built[OURS]))
            for name, seconds, made in _peers(workload, peers, expected, said, progress):
                rows.append(_row(workload, data, case, name, seconds, scan, made))
    return rows


def _built(name: str, workload: Expressions) -> Built:
    started = time.perf_counter()
    index = sparse.build(name, workload.catalogue)
    seconds = time.perf_counter() - started
    return Built(index, seconds, index.overhead / len(workload.catalogue))


def _asker(index: Any) -> Callable[[Any], Any]:
    return lambda event: index.top(event, K)


def _in_batch(made: Built, workload: Expressions) -> float:
    """Seconds per event of many at once, on all cores."""
    many = sparse.Events.of(list(workload.events) * _BATCH, workload.catalogue.dimensions)
    return mean_least({OURS: lambda events: made.index.top_many(events, K)}, [many], _ROUNDS)[OURS] / len(many)


def _peers(
    workload: Expressions, peers: dict[str, Any], expected: list[Any], said: str, progress: Progress
) -> Iterator[tuple[str, float, Built]]:
    """Name, seconds per event and what was built, of the peers that are installed."""
    events = list(workload.events)[:_PEER_EVENTS]
    for name, make in peers.items():
        progress(f"{said}: {name}")
        started = time.perf_counter()
        answer = make(workload.catalogue, K)
        if answer is None:
            continue
        made = Built(answer, time.perf_counter() - started)
        for event, known in zip(events, expected, strict=False):
            assert [id for id, _ in answer(event)] == [id for id, _ in known], f"{name} disagrees with the scan"
        yield name, mean_least({name: answer}, events, _PEER_ROUNDS)[name], made


def _row(workload: Expressions, data: str, case: str, method: str, seconds: float, scan: float, made: Built) -> Row:
    return places.measured(data, len(workload.catalogue), case, method, seconds, scan, made.seconds, made.size)


class Aim(NamedTuple):
    """What was asked of one method on some sets, at sets of a million (places: two)."""

    said: str
    method: str
    sets: tuple[str, ...]
    events: str
    field: str
    asked: float
    unit: str

    @property
    def at_least(self) -> bool:
        return self.field == "times_scan"

    def met(self, measured: float) -> bool:
        return measured >= self.asked if self.at_least else measured <= self.asked

    def size(self, data: str) -> int:
        """The size for which it was asked."""
        return FULL_PLACES if data in places.SETS else int(FULL * _DENSE_SIZE.get(data, 1.0))


AIMS = (
    Aim("pivot against the scan", OURS, EVEN, MATCHING, "times_scan", 150, "×"),
    Aim("pivot against the scan", OURS, DENSE, MATCHING, "times_scan", 80, "×"),
    Aim("pivot against the scan", OURS, EVEN + DENSE, NOTHING, "times_scan", 30, "×"),
    Aim("pivot is built", OURS, EVEN, MATCHING, "build_s", 5, " s"),
    Aim("pivot, bytes per subscription beyond the catalogue", OURS, EVEN, MATCHING, "bytes_per_subscription", 200, ""),
    Aim("BE*-Tree is built dynamically", STAR, EVEN, MATCHING, "build_s", 60, " s"),
    Aim("BE*-Tree against the scan", STAR, EVEN, MATCHING, "times_scan", 20, "×"),
    Aim("R^I-tree against the scan", "ri-tree", places.SETS, MATCHING, "times_scan", 20, "×"),
)


def verdicts(rows: list[Row]) -> list[Row]:
    """One line per aim and set, of the largest size measured; a size below the one asked for is not judged."""
    found: list[Row] = []
    for aim in AIMS:
        for data in aim.sets:
            wanted = (data, aim.method, aim.events)
            sizes = [row for row in rows if (row["data"], row["method"], row["events"]) == wanted]
            if not sizes:
                continue
            row = max(sizes, key=lambda row: row["subscriptions"])
            measured, size = row[aim.field], row["subscriptions"]
            found.append({
                "target": f"{aim.said}: {data}, {size}, {aim.events}",
                "asked": f"{'≥' if aim.at_least else '≤'} {aim.asked:g}{aim.unit} at {aim.size(data)}",
                "measured": f"{measured:.4g}{aim.unit}",
                "met": aim.met(measured) if size >= aim.size(data) else None,
            })  # fmt: skip
    return found
