"""Life as a library: many readers at once, copies, what Python users expect of a container, examples that run."""

from __future__ import annotations

import copy
import doctest
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import covering
from covering import auto, contract
from coverlay import CoverlayError
from tests.covering.oracles import covers

METHODS = covering.methods()
DOMAIN = [[0.0, 1.0]] * 2


def filled(name: str, count: int = 400) -> tuple[covering.CoveringIndex, dict[int, np.ndarray]]:
    rng = np.random.default_rng(1)
    centre, half = rng.random((count, 2)), 0.3 * rng.random((count, 2)) ** 4
    boxes = np.stack([centre - half, centre + half], axis=2)
    index = covering.create(name, DOMAIN)
    index.add_many(range(count), boxes)
    return index, dict(enumerate(boxes))


@pytest.fixture
def short_turns() -> Iterator[None]:
    """Threads take turns as often as Python allows."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", METHODS)
def test_threads_that_only_ask_get_right_answers(name, short_turns, monkeypatch):
    """Also while `auto` reviews its choice: it changes the method under its readers."""
    monkeypatch.setattr(auto, "REVIEW", 50)
    monkeypatch.setattr(auto, "ATTRIBUTES", 1)
    index, stored = filled(name)
    rng = np.random.default_rng(2)
    low = rng.random((150, 2))
    asked = np.stack([low, low + 0.002], axis=2)
    truth = [covers(stored, box) for box in asked]
    alone = [index.find_cover(box) for box in asked]
    inside = [index.find_covered(box) for box in (DOMAIN, [[0.2, 0.8], [0.1, 0.9]])]

    def ask(reader: int) -> list[str]:
        wrong = []
        order = np.random.default_rng(reader).permutation(len(asked))
        for i in order.tolist():
            found = index.find_cover(asked[i])
            if (found is not None and found not in truth[i]) or (found is None) != (alone[i] is None):
                wrong.append(f"{i}: {found}")
        for i, found in zip(order.tolist(), index.find_cover_many(asked[order]), strict=True):
            if (found is not None and found not in truth[i]) or (found is None) != (alone[i] is None):
                wrong.append(f"{i} in a batch: {found}")
        if [index.find_covered(box) for box in (DOMAIN, [[0.2, 0.8], [0.1, 0.9]])] != inside:
            wrong.append("covered ones")
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert [wrong for found in pool.map(ask, range(8)) for wrong in found] == []
    index.check()
    assert len(index) == len(stored)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])
def test_a_copy_is_an_index_of_its_own(name, copied):
    index, stored = filled(name, 150)
    index.remove(3)
    other = copied(index)
    other.check()
    asked = np.array(list(stored.values()))
    assert other.find_cover_many(asked) == index.find_cover_many(asked)
    other.add("new", [[-1.0, 2.0], [-1.0, 2.0]])
    other.remove(5)
    assert ("new" in index, 5 in index, len(index)) == (False, True, 149)
    index.check()
    other.check()


@pytest.mark.parametrize("name", METHODS)
def test_an_index_is_a_container(name):
    index = covering.create(name, (0, 100))
    assert repr(index) == f"<covering index {name}: 0 boxes of 1 attribute>"
    index.add_many(["a", "b", "c"], [(0, 20), (10, 40), (60, 100)])
    assert (len(index), sorted(index), "a" in index, "z" in index) == (3, ["a", "b", "c"], True, False)
    assert repr(index) == f"<covering index {name}: 3 boxes of 1 attribute>"
    index.update("a", (70, 90))
    assert index.box("a").tolist() == [[70, 90]]
    with pytest.raises(CoverlayError, match="lo must not exceed hi"):
        index.update("b", (5, 1))
    with pytest.raises(CoverlayError, match="'z' is not stored"):
        index.remove_many(["b", "z"])
    with pytest.raises(CoverlayError, match="repeat"):
        index.remove_many(["b", "b"])
    assert sorted(index) == ["a", "b", "c"], "a mistake changes nothing"
    index.remove_many(["b", "c"])
    assert (sorted(index), index.find_cover((15, 30)), index.find_cover((75, 80))) == (["a"], None, "a")
    index.clear()
    assert (len(index), index.find_cover((75, 80))) == (0, None)
    index.check()


@pytest.mark.parametrize("name", METHODS)
def test_one_attribute_needs_no_brackets(name):
    index, full = (covering.create(name, domain) for domain in ((0, 100), [[0, 100]]))
    index.add(1, (0, 20))
    full.add(1, [[0, 20]])
    index.add_many([2, 3], [50, 60])  # of one value each
    full.add_many([2, 3], [[[50, 50]], [[60, 60]]])
    for short, box in ((15, [[15, 15]]), ((2, 3), [[2, 3]]), (50, [[50, 50]]), (55, [[55, 55]])):
        assert index.find_cover(short) == full.find_cover(box)
    assert index.find_covered((40, 100)) == full.find_covered([[40, 100]]) == [2, 3]
    assert index.find_cover_many([15, 60, 61]) == [1, 3, None]


@pytest.mark.parametrize("documented", [contract.CoveringIndex, *covering.METHODS.values()], ids=lambda c: c.__name__)
def test_the_example_of_a_docstring_runs(documented):
    (example,) = [test for test in doctest.DocTestFinder(recurse=False).find(documented, documented.__name__)]
    assert example.examples, "a class shows how it is used"
    assert doctest.DocTestRunner().run(example).failed == 0
