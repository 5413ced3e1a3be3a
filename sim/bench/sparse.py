"""Ranked matching of Boolean expressions and of places: ours against a full numba scan and what others would use.

All methods of a line get the same events in turns and must give the same answer; times are per single call, top-5, and
for our best one also per event of a batch on all cores. Every set of expressions is measured with events that match
.1 % of it (author- and title-like events: one of the expressions) and with events that match nothing. Places are those
of Table 4 of SSTD 2015 with its default values; R^t-tree and R^I-tree search the same tree, which is built once.
Peers take milliseconds to seconds per event, so they get fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sim.bench import Progress, Row
from sim.bench.sparse_peers import PEERS
from sim.bench.timing import mean_least, timed
from sim.workloads.begen import Begen, Expressions, begen, dblp_like, unmatched
from sim.workloads.located import Located, located_workload
from topk import places, sparse
from topk.places.rt_tree import RTTree

K = 5
SCAN, OURS, STAR, OUR_TREE = "scan (numba)", "pivot", "be-star", "ri-tree"
EVEN, DENSE, PLACES = ("uniform", "zipf"), ("author", "title"), ("places, uniform", "places, zipf")
MATCHING, NOTHING = "matching", "nothing matches"
FULL, FULL_PLACES = 1_000_000, 2_000_000
_DENSE_SIZE = {"author": 0.76, "title": 0.25}  # of a million: the published sizes (Table III)
_EVENTS, _PLACED_EVENTS, _PEER_EVENTS = 50, 30, 3
_WARM_UP = 10  # of them, before each turn: the scan leaves nothing of a method in the caches
_ROUNDS, _PEER_ROUNDS = 5, 2
_BATCH = 25  # times the events: long enough to keep all cores busy
_ALL_TREES = 100_000  # expressions up to which all the papers' structures are built; above, BE*-Tree's two

Ask = Callable[[Any, Any], Any]  # an index and an event → its best


class Built(NamedTuple):
    index: Any
    seconds: float
    size: float | None = None  # bytes per subscription beyond the catalogue


@dataclass(frozen=True)
class Set:
    """What is measured together: the same subscriptions in every method, and events by what they match."""

    data: str
    count: int
    built: dict[str, Built]
    events: dict[str, list[Any]]
    ask: Ask
    best: str  # the method that also answers a batch
    batch: Any  # matching events

    def row(self, case: str, method: str, seconds: float, scan: float, made: Built) -> Row:
        return {
            "data": self.data,
            "subscriptions": self.count,
            "events": case,
            "method": method,
            "us_per_event": round(seconds * 1e6, 1),
            "times_scan": round(scan / seconds, 2),
            "build_s": round(made.seconds, 2),
            "bytes_per_subscription": None if made.size is None else round(made.size),
        }


def run(quick: bool, progress: Progress) -> list[Row]:
    tiny = begen(Begen(subscriptions=500, events=1))
    for name in sparse.METHODS:
        progress(f"compiling {name}")
        sparse.build(name, tiny.catalogue).top(tiny.events[0], K)
    rows: list[Row] = []
    for count in (20_000, 100_000) if quick else (100_000, FULL):
        rows += expressions(count, progress)
    return rows + with_places(100_000 if quick else FULL_PLACES, progress)


def expressions(count: int, progress: Progress) -> list[Row]:
    """All sets of about `count` expressions."""
    rows: list[Row] = []
    trees = (STAR, "be-star-batch") if count > _ALL_TREES else (STAR, "be-star-batch", "be-tree", "k-index")
    for data in EVEN:
        progress(f"{data}, {count} expressions: generating")
        workload = begen(Begen(subscriptions=count, events=_EVENTS, distribution=data))
        rows += _of_expressions(data, workload, (OURS, *trees), PEERS, progress)
    for data in DENSE:
        size = int(count * _DENSE_SIZE[data])
        progress(f"{data}, {size} expressions: generating")
        rows += _of_expressions(data, dblp_like(data, size, _EVENTS), (OURS, STAR), {}, progress)
    return rows


def _of_expressions(
    data: str, workload: Expressions, names: tuple[str, ...], peers: dict[str, Any], progress: Progress
) -> list[Row]:
    built = _built(sparse.build, workload.catalogue, names, data, progress)
    events = {MATCHING: list(workload.events), NOTHING: list(unmatched(workload))}
    batch = sparse.Events.of(events[MATCHING] * _BATCH, workload.catalogue.dimensions)
    some = Set(data, len(workload.catalogue), built, events, lambda index, event: index.top(event, K), OURS, batch)
    rows = measured(some, progress)
    scan = rows[0]["us_per_event"] / 1e6
    few, reference = events[MATCHING][:_PEER_EVENTS], built[SCAN].index
    for name, make in peers.items():
        progress(f"{data}, {len(workload.catalogue)} expressions: {name}")
        try:
            made = Built(*timed(partial(make, workload.catalogue, K)))
        except ImportError:
            continue  # not installed
        for event in few:
            assert [id for id, _ in made.index(event)] == [id for id, _ in reference.top(event, K)], f"{name} disagrees"
        rows.append(some.row(MATCHING, name, mean_least({name: made.index}, few, _PEER_ROUNDS)[name], scan, made))
    return rows


def with_places(count: int, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for data in PLACES:
        progress(f"{data}, {count} expressions: generating")
        law = data.split()[-1]
        workload = located_workload(Located(subscriptions=count, events=_PLACED_EVENTS, distribution=law))
        built = _built(places.build, workload.catalogue, ("tas", OUR_TREE), data, progress)
        beside = RTTree.beside(built[OUR_TREE].index)
        built[RTTree.name] = Built(beside, built[OUR_TREE].seconds, beside.overhead / count)
        events = list(workload.events)
        some = Set(data, count, built, {MATCHING: events}, _at_place, OUR_TREE, events * _BATCH)
        rows += measured(some, progress)
    return rows


def _built(
    build: Callable[[str, Any], Any], catalogue: Any, names: tuple[str, ...], said: str, progress: Progress
) -> dict[str, Built]:
    """The scan and these methods."""
    built = {}
    for name in ("scan", *names):
        progress(f"{said}, {len(catalogue)} expressions: building {name}")
        index, seconds = timed(partial(build, name, catalogue))
        built[SCAN if name == "scan" else name] = Built(index, seconds, index.overhead / len(catalogue))
    return built


def measured(some: Set, progress: Progress) -> list[Row]:
    """A row per kind of event and method, and one for the best method in a batch."""
    rows: list[Row] = []
    for case, asked in some.events.items():
        progress(f"{some.data}, {some.count} expressions: {case}")
        tasks = {name: partial(some.ask, made.index) for name, made in some.built.items()}
        expected = [tasks[SCAN](event) for event in asked]
        for name, task in tasks.items():
            assert [task(event) for event in asked] == expected, f"{name} disagrees with the scan"
        times = mean_least(tasks, asked[_WARM_UP:], _ROUNDS, warm_up=asked[:_WARM_UP])
        rows += [some.row(case, name, times[name], times[SCAN], made) for name, made in some.built.items()]
        if case == MATCHING:
            best, name = some.built[some.best], f"{some.best}, batch"
            each = mean_least({name: partial(best.index.top_many, k=K)}, [some.batch], _ROUNDS)[name] / len(some.batch)
            rows.append(some.row(case, name, each, times[SCAN], best))
    return rows


def _at_place(index: Any, event: Any) -> Any:
    return index.top(event.event, event.place, K)


class Aim(NamedTuple):
    """What was asked of one method on some sets of a million (places: two million)."""

    said: str
    method: str
    sets: tuple[str, ...]
    events: str
    field: str
    asked: float
    unit: str


AIMS = (
    Aim("pivot against the scan", OURS, EVEN, MATCHING, "times_scan", 150, "×"),
    Aim("pivot against the scan", OURS, DENSE, MATCHING, "times_scan", 80, "×"),
    Aim("pivot against the scan", OURS, EVEN + DENSE, NOTHING, "times_scan", 30, "×"),
    Aim("pivot is built", OURS, EVEN, MATCHING, "build_s", 5, " s"),
    Aim("pivot, bytes per subscription beyond the catalogue", OURS, EVEN, MATCHING, "bytes_per_subscription", 200, ""),
    Aim("BE*-Tree is built dynamically", STAR, EVEN, MATCHING, "build_s", 60, " s"),
    Aim("BE*-Tree against the scan", STAR, EVEN, MATCHING, "times_scan", 20, "×"),
    Aim("R^I-tree against the scan", "ri-tree", PLACES, MATCHING, "times_scan", 20, "×"),
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
            full = FULL_PLACES if data in PLACES else int(FULL * _DENSE_SIZE.get(data, 1.0))
            sign, met = ("≥", measured >= aim.asked) if aim.field == "times_scan" else ("≤", measured <= aim.asked)
            found.append(
                {
                    "target": f"{aim.said}: {data}, {size}, {aim.events}",
                    "asked": f"{sign} {aim.asked:g}{aim.unit} at {full}",
                    "measured": f"{measured:.4g}{aim.unit}",
                    "met": met if size >= full else None,
                }
            )
    return found
