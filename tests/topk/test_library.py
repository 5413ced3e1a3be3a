"""Life as a library: many readers at once, copies, what Python users expect of a container, examples that run."""

from __future__ import annotations

import copy
import doctest
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import topk
from coverlay import CoverlayError
from topk import places
from topk.contract import TopKIndex
from topk.papers.interval.contract import Entries
from topk.places.contract import PlacedIndex
from topk.sparse import monotone
from topk.sparse.contract import SparseIndex

BOXES = topk.methods("boxes")
CASES = [
    *(("boxes", name, {"semantics": how}) for name in BOXES for how in ("exact", "relaxed")),
    *(("predicates", name, {}) for name in topk.methods("predicates")),
    *(("places", name, {}) for name in topk.methods("places")),
]
ONCE = [case for case in CASES if case[2].get("semantics") != "relaxed"]
COUNT = 300


def dimensions(name: str) -> int:
    return 1 if name == "canopy" else 3


def expressions(rng: np.random.Generator, count: int) -> list[list[tuple[Any, ...]]]:
    def predicate(attribute: int) -> tuple[Any, ...]:
        low, weight = int(rng.integers(0, 20)), float(rng.random())
        return (attribute, "!=", low, weight) if rng.random() < 0.1 else (attribute, "between", (low, low + 8), weight)

    chosen = (rng.choice(6, size=int(rng.integers(1, 3)), replace=False).tolist() for _ in range(count))
    return [[predicate(attribute) for attribute in attributes] for attributes in chosen]


def catalogue(kind: str, name: str, count: int = COUNT, ids: Any = None) -> Any:
    rng = np.random.default_rng(1)
    if kind == "boxes":
        lo = rng.integers(0, 20, (count, dimensions(name))).astype(float)
        return topk.Catalogue.from_boxes(lo, lo + 8.0, rng.random(count), ids=ids)
    rows = expressions(rng, count)
    if kind == "predicates":
        return topk.Catalogue.from_predicates(rows, dimensions=6, ids=ids)
    even = [[(*p[:3], 1.0 / len(row)) for p in row] for row in rows]
    spots = 10.0 * rng.random((count, 2))
    given = [(row, tuple(spot), float(rng.random())) for row, spot in zip(even, spots, strict=True)]
    return places.from_located(given, dimensions=6, max_distance=10.0, ids=ids)


def questions(kind: str, name: str, count: int = 60) -> list[tuple[Any, ...]]:
    """What `top` takes before k."""
    rng = np.random.default_rng(2)
    if kind == "boxes":
        return [(event,) for event in rng.integers(0, 28, (count, dimensions(name))).astype(float)]
    events = [{int(a): float(rng.integers(0, 28)) for a in rng.choice(6, 4, replace=False)} for _ in range(count)]
    return [(e, tuple(10.0 * rng.random(2))) if kind == "places" else (e,) for e in events]


def many(kind: str, asked: list[tuple[Any, ...]]) -> Any:
    """What `top_many` takes before k."""
    if kind == "places":
        return [places.PlacedEvent.of(event, place, 6) for event, place in asked]
    return np.array([e for (e,) in asked]) if kind == "boxes" else [e for (e,) in asked]


@pytest.fixture
def short_turns() -> Iterator[None]:
    """Threads take turns as often as Python allows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def wrong_answers(ask: Callable[[int], list[Any]], alone: list[Any], readers: int = 8) -> list[Any]:
    with ThreadPoolExecutor(4) as pool:
        return [got for found in pool.map(ask, range(readers)) for got in found if got[1] != alone[got[0]]]


@pytest.mark.parametrize(("kind", "name", "options"), CASES, ids=lambda case: str(case))
def test_threads_that_only_ask_a_matcher_get_right_answers(kind, name, options, short_turns):
    """Also while trees of expressions recycle what they have learnt to be badly placed."""
    learns = {"window": 20} if name.startswith("be-") else {}
    given = catalogue(kind, name)
    index, asked = topk.create(name, given, **options, **learns), questions(kind, name)
    truth = topk.create("scan", given, **options)
    alone = [truth.top(*question, 5) for question in asked]

    def ask(reader: int) -> list[Any]:
        order = np.random.default_rng(reader).permutation(len(asked)).tolist()
        found = [(i, index.top(*asked[i], 5)) for i in order]
        return found + list(zip(order, index.top_many(many(kind, [asked[i] for i in order]), 5), strict=True))

    wrong = wrong_answers(ask, alone)
    if kind == "places":  # sums are added in another order
        wrong = [(i, got) for i, got in wrong if [id for id, _ in got] != [id for id, _ in alone[i]]]
    assert wrong == []
    index.check()
    assert len(index) == COUNT


@pytest.mark.parametrize("name", sorted(topk.interval_indexes()))
def test_iterators_of_one_interval_index_do_not_meet(name, short_turns):
    rng = np.random.default_rng(3)
    lo = rng.integers(0, 50, COUNT).astype(float)
    scores, rows = rng.random(COUNT), np.arange(COUNT)
    index = topk.interval_indexes()[name](Entries(rows, lo, lo + 9.0, scores, rows))
    values = rng.integers(0, 59, 40).astype(float)
    alone = [sorted(np.flatnonzero((lo <= v) & (v <= lo + 9.0)).tolist(), key=lambda r: -scores[r]) for v in values]

    def ask(reader: int) -> list[Any]:
        found = []
        for i in np.random.default_rng(reader).permutation(len(values)).tolist():
            cursor, rows = index.stab(values[i]), []
            while (row := cursor.getnext()) is not None:
                rows.append(row)
            found.append((i, rows))
        return found

    assert wrong_answers(ask, alone) == []


@pytest.mark.parametrize(("kind", "name", "options"), ONCE, ids=lambda case: str(case))
@pytest.mark.parametrize("copied", [copy.copy, lambda index: pickle.loads(pickle.dumps(index))], ids=["copy", "pickle"])
def test_a_copy_is_an_index_of_its_own(kind, name, options, copied):
    index, asked = topk.create(name, catalogue(kind, name, 80)), questions(kind, name, 20)
    index.remove(3)
    other = copied(index)
    other.check()
    answers = [index.top(*question, 5) for question in asked]
    assert [other.top(*question, 5) for question in asked] == answers
    other.remove_many([5, 6])
    other.add_many(catalogue(kind, name, 3, ids=[1000, 1001, 1002]))
    assert (5 in index, 1000 in index, len(index), len(other)) == (True, False, 79, 80)
    assert [index.top(*question, 5) for question in asked] == answers
    index.check()
    other.check()


def saturating(total: float, weight: float, event_weight: float) -> float:
    return total + weight * event_weight / (1.0 + weight * event_weight)


@pytest.mark.parametrize("name", topk.methods("predicates"))
def test_a_copy_has_the_score_of_its_original(name):
    index = topk.create(name, catalogue("predicates", name, 60), score=monotone(saturating))
    state = pickle.dumps(index)
    other = pickle.loads(state)
    assert other.score.scoring.code != index.score.scoring.code, "compiled anew: addresses of a process are its own"
    if name.startswith("be-"):  # their trees pass the address on
        assert other._tree.scoring == other.score.scoring
    for question in questions("predicates", name, 10):
        assert other.top(*question, 5) == copy.copy(index).top(*question, 5) == index.top(*question, 5)


@pytest.mark.parametrize(("kind", "name", "options"), ONCE, ids=lambda case: str(case))
def test_an_index_is_a_container(kind, name, options):
    index = topk.create(name, catalogue(kind, name, 4))
    how = "sum" if kind == "predicates" else index.semantics
    of = "1 attribute" if index.dimensions == 1 else f"{index.dimensions} attributes"
    assert repr(index) == f"<matcher {name}: 4 subscriptions of {of}, {how}>"
    index.add_many(catalogue(kind, name, 3, ids=[9, 7, 8]))
    assert (sorted(index), 7 in index, 70 in index) == ([0, 1, 2, 3, 7, 8, 9], True, False)
    for mistake, ids in (("70 is not in the index", [7, 70]), ("repeat", [7, 7])):
        with pytest.raises(CoverlayError, match=mistake):
            index.remove_many(ids)
    with pytest.raises(CoverlayError, match="8 is already in the index"):
        index.add_many(catalogue(kind, name, 2, ids=[50, 8]))
    assert sorted(index) == [0, 1, 2, 3, 7, 8, 9], "a mistake changes nothing"
    index.check()
    index.clear()
    assert (len(index), list(index), index.top(*questions(kind, name, 1)[0], 5)) == (0, [], [])
    index.check()


@pytest.mark.parametrize("name", BOXES)
def test_a_box_can_be_replaced_and_one_attribute_needs_no_brackets(name):
    index = topk.create(name, topk.Catalogue.from_boxes([0, 4], [5, 9], [1.0, 2.0]))
    index.add(7, 4, 6, 3.0)
    assert index.top(4.5, 3) == [(7, 3.0), (1, 2.0), (0, 1.0)]
    assert [index.top(v, 1) for v in (2, 8, 20)] == list(index.top_many([2, 8, 20], 1)) == [[(0, 1.0)], [(1, 2.0)], []]
    index.update(7, 20, 30, 4.0)
    with pytest.raises(CoverlayError, match="greater than hi"):
        index.update(0, 5, 1, 1.0)
    assert (index.top(20, 2), index.top(4.5, 3), len(index)) == ([(7, 4.0)], [(1, 2.0), (0, 1.0)], 3)
    index.check()


@pytest.mark.parametrize("name", topk.methods("predicates"))
def test_an_expression_can_be_replaced_and_one_attribute_needs_no_mapping(name):
    index = topk.create(name, topk.Catalogue.from_predicates([[(0, "<", 5, 0.5)], [(0, ">", 3, 0.75)]]))
    assert (index.top(4, 2), index.top_many([2, 9], 1)[:]) == ([(1, 0.75), (0, 0.5)], [[(0, 0.5)], [(1, 0.75)]])
    index.update(1, [(0, "=", 20, 1.0)])
    with pytest.raises(CoverlayError, match="operator"):
        index.update(0, [(0, "like", 5, 1.0)])
    assert (index.top(20, 2), index.top(4, 2), len(index)) == ([(1, 1.0)], [(0, 0.5)], 2)


@pytest.mark.parametrize("name", topk.methods("places"))
def test_a_placed_expression_can_be_replaced(name):
    index = topk.create(name, places.from_located([([(0, "<", 5, 1.0)], (0, 0), 0.5)], max_distance=10.0))
    index.update(0, [(0, ">", 5, 1.0)], (3, 4), 0.5)
    assert (index.top(6, (3, 4), 1), index.top(6, (0, 0), 1)) == ([(0, 1.0)], [(0, 0.75)])
    with pytest.raises(CoverlayError):
        index.update(0, [(0, ">", 5, 1.0)], (3, 4), 2.0)
    assert list(index) == [0]


@pytest.mark.parametrize(
    "documented",
    [TopKIndex, SparseIndex, PlacedIndex]
    + [topk.matcher(name, kind) for kind in topk.KINDS for name in topk.methods(kind) if name != topk.AUTO],
    ids=lambda c: c.__name__,
)
def test_the_example_of_a_docstring_runs(documented):
    (example,) = doctest.DocTestFinder(recurse=False).find(documented, documented.__name__, module=False)
    assert example.examples, "a class shows how it is used"
    assert doctest.DocTestRunner().run(example).failed == 0
