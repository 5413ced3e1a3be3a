"""Who is reached by an event, and with what score, from the columns of the workload alone.

Only mentioned attributes are looked at, attribute by attribute. Sums are added in that order everywhere, so that scores
agree to the last bit. Plain numpy: no code is shared with the brokers' matching or with the compiled engine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import EARTH_RADIUS_KM
from sim.workloads import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
KINDS = BOXES, PREDICATES, PLACES = 0, 1, 2
_KIND_OF = dict(zip(("boxes", "predicates", "places"), KINDS, strict=True))


PREDICATE = np.dtype(
    [("attribute", "i8"), ("lo", "f8"), ("hi", "f8"), ("weight", "f8"), ("first_list", "i8"), ("last_list", "i8")]
)


class Terms(NamedTuple):
    """All predicates, row by row, attributes ascending; and what else decides who is reached, with what score."""

    first: Ints  # (rows + 1,) where the predicates of a row begin
    predicates: NDArray[Any]  # of PREDICATE: bounds, weight, and where its lists of values begin and end
    lists: Ints  # (lists, 3) begin and end in `listed`; 1: these are excluded, 0: only these are allowed
    listed: Floats
    score: Floats  # (rows,) as the subscription has it
    near: Floats  # (rows, 3) latitude, longitude and α; NaN where it has no place
    kind: int
    relaxed: bool
    place: tuple[int, int]  # the attributes that are an event's place
    far: float  # distance at which closeness is 0
    globe: bool  # distances are great circles in kilometres; else Euclidean in degrees


def terms_of(
    workload: Workload,
    semantics: str,
    kind: str = "boxes",
    max_distance: float = 1.0,
    metric: str | None = None,
    order: Ints | None = None,
) -> Terms:
    """The predicates of a workload; row i of the result is row `order[i]` of the workload.

    Kind, distance and metric decide scores only; without them the terms say who is reached.
    """
    order = np.arange(len(workload.lo)) if order is None else order
    row, attribute = np.nonzero(workload.mentioned[order])
    at = order[row], attribute
    weight = workload.weights[at].astype(np.float64)
    if kind == "places":
        sums = np.bincount(row, weight, len(order))
        weight = weight / np.where(sums > 0, sums, 1.0)[row]
    near = np.full((len(order), 3), np.nan) if workload.near is None else workload.near[order]
    first = np.searchsorted(row, np.arange(len(order) + 1))
    first_list, lists, listed = _lists(workload, order, first, attribute)
    predicates = np.empty(len(row), PREDICATE)
    predicates["attribute"], predicates["weight"] = attribute, weight
    predicates["lo"], predicates["hi"] = workload.lo[at], workload.hi[at]
    predicates["first_list"], predicates["last_list"] = first_list[:-1], first_list[1:]
    return Terms(
        first,
        predicates,
        lists,
        listed,
        workload.scores[order].astype(np.float64),
        np.ascontiguousarray(near, dtype=np.float64),
        _KIND_OF[kind],
        semantics == "relaxed",
        workload.schema.place or (0, 0),
        float(max_distance),
        metric == "great-circle",
    )


def _lists(workload: Workload, order: Ints, first: Ints, attribute: Ints) -> tuple[Ints, Ints, Floats]:
    """Values that predicates exclude or allow (≠, in): where a predicate's lists begin, the lists, their values."""
    found: list[tuple[int, tuple[float, ...], bool]] = []
    for row in np.flatnonzero(np.isin(order, list(workload.residues))).tolist() if workload.residues else ():
        residue = workload.residues[int(order[row])]
        names = attribute[first[row] : first[row + 1]].tolist()
        for entries, excludes in ((residue.excluded, True), (residue.allowed, False)):
            found += [(int(first[row]) + names.index(a), values, excludes) for a, values in entries if a in names]
    found.sort(key=lambda item: item[0])
    ends = np.cumsum([len(values) for _, values, _ in found], dtype=np.int64)
    begins = ends - np.array([len(values) for _, values, _ in found], dtype=np.int64)
    lists = np.column_stack([begins, ends, np.array([excludes for *_, excludes in found], dtype=np.int64)])
    first_list = np.searchsorted(np.array([p for p, *_ in found], dtype=np.int64), np.arange(len(attribute) + 1))
    return first_list, lists, np.array([value for _, values, _ in found for value in values], dtype=np.float64)


CHUNK_ROWS = 1 << 14  # that are compared with some events at a time: a column of bounds fits into a cache


def spans(begins: Ints, counts: Ints) -> Ints:
    """begins[0], begins[0] + 1, … (counts[0] of them), begins[1], begins[1] + 1, …"""
    before = np.cumsum(counts) - counts
    return np.repeat(begins - before, counts) + np.arange(int(counts.sum()))


def _held(terms: Terms, values: Floats, event: Ints, row: Ints) -> tuple[Ints, Ints, Bools]:
    """For each predicate of each pair of event and row: the pair, the predicate, and whether it holds.

    NaN (missing) fails every comparison.
    """
    counts = terms.first[row + 1] - terms.first[row]
    pair, number = np.repeat(np.arange(len(row)), counts), spans(terms.first[row], counts)
    predicates = terms.predicates[number]
    value = values[event[pair], predicates["attribute"]]
    holds = (predicates["lo"] <= value) & (value <= predicates["hi"])
    if len(terms.lists):
        first_list, lists = predicates["first_list"], predicates["last_list"] - predicates["first_list"]
        of = np.repeat(np.arange(len(number)), lists)  # the place of each list
        begin, end, excludes = terms.lists[spans(first_list, lists)].T
        item = np.repeat(np.arange(len(of)), end - begin)
        equal = terms.listed[spans(begin, end - begin)] == value[of[item]]
        found = np.bincount(item, equal, len(of)) > 0
        holds[of[found == (excludes == 1)]] = False
    return pair, number, holds


def reached(terms: Terms, values: Floats, event: Ints, row: Ints) -> Bools:
    """Does each event reach its row? Exact: all predicates hold. Relaxed: at least one does."""
    pair, _, holds = _held(terms, values, event, row)
    held = np.bincount(pair[holds], minlength=len(row))
    return held > 0 if terms.relaxed else held == terms.first[row + 1] - terms.first[row]


class Chunk(NamedTuple):
    """Some rows, and their bounds attribute by attribute, as arrays that fit into a cache."""

    begin: int
    end: int
    tests: list[tuple[int, Any, Floats, Floats]]  # attribute, which of the rows mention it, lower and upper bounds


def chunks_of(terms: Terms, rows: int) -> list[Chunk]:
    """The first `rows` rows, cut into chunks."""
    chunks = []
    for begin in range(0, rows, CHUNK_ROWS):
        end = min(begin + CHUNK_ROWS, rows)
        within = terms.predicates[terms.first[begin] : terms.first[end]]
        owner = np.repeat(np.arange(end - begin), np.diff(terms.first[begin : end + 1]))
        order = np.argsort(within["attribute"], kind="stable")
        names, firsts = np.unique(within["attribute"][order], return_index=True)
        tests: list[tuple[int, Any, Floats, Floats]] = []
        for name, some in zip(names.tolist(), np.split(order, firsts[1:]), strict=False):
            columns: Any = slice(None) if len(some) == end - begin else owner[some]
            tests.append((name, columns, *(np.ascontiguousarray(within[side][some]) for side in ("lo", "hi"))))
        chunks.append(Chunk(begin, end, tests))
    return chunks


def all_reached(terms: Terms, chunk: Chunk, values: Floats) -> tuple[Ints, Ints]:
    """All pairs of an event and a row of the chunk that it reaches, sorted by event, then row."""
    reach = np.full((len(values), chunk.end - chunk.begin), not terms.relaxed)
    for attribute, columns, lo, hi in chunk.tests:
        value = values[:, attribute, None]
        holds = value >= lo
        holds &= value <= hi
        if terms.relaxed:
            reach[:, columns] |= holds
        else:
            reach[:, columns] &= holds
    event, row = np.divmod(np.flatnonzero(reach), chunk.end - chunk.begin)
    row += chunk.begin
    if not len(terms.lists):
        return event, row
    keep = reached(terms, values, event, row)  # so far only bounds were looked at
    return event[keep], row[keep]


def _around(near: Floats, there: Floats) -> Floats:
    """Kilometres between places of the globe, from the chord between them; NaN if one is unknown."""

    def on_sphere(places: Floats) -> Floats:
        lift, turn = np.radians(places[:, 0]), np.radians(places[:, 1])
        return np.column_stack([np.cos(lift) * np.cos(turn), np.cos(lift) * np.sin(turn), np.sin(lift)])

    x, y, z = (on_sphere(near) - on_sphere(there)).T
    chord: Floats = 2.0 * EARTH_RADIUS_KM * np.arcsin(np.minimum(0.5 * np.sqrt(x * x + y * y + z * z), 1.0))
    return chord


def _across(near: Floats, there: Floats) -> Floats:
    """Degrees between places of a plane."""
    up, aside = (near - there).T
    distance: Floats = np.sqrt(up * up + aside * aside)
    return distance


def scores_of_pairs(terms: Terms, values: Floats, weights: Floats, event: Ints, row: Ints) -> Floats:
    """The scores of pairs that are reached; `weights`: how much each attribute counts, of each event or of all."""
    if terms.kind == BOXES and not terms.relaxed:
        return terms.score[row]
    pair, number, holds = _held(terms, values, event, row)
    pair, its = pair[holds], terms.predicates[number[holds]]
    weight = its["weight"]
    if terms.kind == PREDICATES:
        weight = weight * weights[np.minimum(event[pair], len(weights) - 1), its["attribute"]]
    total: Floats = np.bincount(pair, weight, len(row)).astype(np.float64)  # adds one after the other
    if terms.kind != PLACES:
        return total
    # ψ of Hu et al. (SSTD 2015), Eq. 1 to 4; without a place: α = 0.
    near, alpha = terms.near[row, :2], terms.near[row, 2]
    there = values[event][:, list(terms.place)]
    close = 1.0 - (_around(near, there) if terms.globe else _across(near, there)) / terms.far
    close = np.where(close > 0.0, close, 0.0)  # 0: too far away, or the event has no place
    return np.where(np.isnan(alpha), total, (1.0 - alpha) * total + alpha * close)


def scores_of(terms: Terms, values: Floats, weights: Floats | None = None) -> Floats:
    """The score of every row for one event; NaN where the event does not reach it."""
    event, weights = np.array(values)[None], np.ones((1, len(values))) if weights is None else np.array(weights)[None]
    scores = np.full(len(terms.score), np.nan)
    place = np.zeros(len(scores), np.int64)
    row = np.flatnonzero(reached(terms, event, place, np.arange(len(scores))))
    scores[row] = scores_of_pairs(terms, event, weights, place[: len(row)], row)
    return scores
