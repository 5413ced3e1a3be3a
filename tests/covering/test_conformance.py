"""One suite, all methods: register a method and it is tested."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import covering
from covering import contract
from coverlay import CoverlayError
from tests.covering.oracles import covered, covers
from tests.covering.strategies import DOMAIN, boxes, exact

METHODS = covering.methods()
pytestmark = pytest.mark.usefixtures("small_limits")
FAST = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.mark.parametrize("name", METHODS)
@FAST
@given(st.data())
def test_finds_a_cover_iff_there_is_one(name, data):
    attributes = data.draw(st.sampled_from([1, 2]))
    held = data.draw(st.lists(boxes(attributes), max_size=14))
    asked = data.draw(st.lists(boxes(attributes), min_size=1, max_size=5)) + held[:3]
    gone = data.draw(st.sets(st.sampled_from(range(len(held)))) if held else st.just(set()))
    index = exact(name, attributes)
    half = len(held) // 2
    index.add_many(list(range(half)), np.array(held[:half]).reshape(half, attributes, 2))
    for i in range(half, len(held)):
        index.add(i, held[i])
    for i in sorted(gone):
        index.remove(i)
    index.check()
    stored = {i: box for i, box in enumerate(held) if i not in gone}
    assert len(index) == len(stored)
    many = index.find_cover_many(np.array(asked))
    for box, from_batch in zip(asked, many, strict=True):
        truth = covers(stored, box)
        found = index.find_cover(box)
        assert found == from_batch
        assert found in truth if truth else found is None
        assert index.find_covered(box) == covered(stored, box)
    assert index.stats.checks == 2 * len(asked)
    assert index.stats.hits == 2 * sum(found is not None for found in many)
    assert index.stats.capped == 0
    assert 0 <= index.stats.volume <= index.stats.checks + 1e-9


@pytest.mark.parametrize("name", METHODS)
@FAST
@given(st.data())
def test_uncovered_ones_are_stored_in_order_as_one_by_one(name, data):
    """Batches of three: covers are found among those stored before and among those of the same batch."""
    held = np.array(data.draw(st.lists(boxes(2), min_size=1, max_size=14)))
    index, one_by_one = exact(name, 2), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contract, "BATCH", 3)
        found = index.add_uncovered(list(range(len(held))), held)
    for i, box in enumerate(held):
        truth = covers(one_by_one, box)
        assert found[i] in truth if truth else found[i] is None
        if not truth:
            one_by_one[i] = box
    assert sorted(index.ids()) == list(one_by_one)
    index.check()


@pytest.mark.parametrize("name", METHODS)
def test_stats_of_covering_are_a_plain_value(name):
    """Work is counted when it is done, in one object; reading it changes nothing."""
    index = exact(name, 1)
    stats = index.stats
    index.add_many(list(range(8)), np.array([[[i, i + 20.0]] for i in range(8)]))
    index.find_cover([[3.0, 4.0]])
    index.find_cover_many([[[3.0, 4.0]], [[-9.0, 90.0]]])
    assert (stats.checks, stats.hits) == (3, 2)
    counted = stats.copy()
    assert index.stats is stats
    assert index.stats == counted, "reading does not count"
    index.stats.reset()
    index.find_cover([[3.0, 4.0]])
    assert (stats.checks, stats.hits) == (1, 1)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        *((name, attributes) for name in METHODS for attributes in (5, 9, 16)),
        # More coordinates than kernels keep on the stack; the others stop at 32.
        *((name, 33) for name in METHODS if name not in ("bigmin", "density", "quadtree", "zorder", "hilbert")),
    ],
)
def test_many_attributes_take_several_words(name, attributes):
    """Keys and packed fields of more than one word; the greedy search only has to be safe here."""
    rng = np.random.default_rng(attributes)
    index = covering.create(name, [DOMAIN] * attributes)
    inner = np.sort(rng.integers(2, 7, (60, attributes, 2)).astype(float), axis=2)
    outer = inner[:20].copy()
    outer[:, :, 0] -= 2
    outer[:, 0, 1] = np.inf
    index.add_many(range(20), outer)
    for i in range(20, 60):
        index.add(i, inner[i])
    stored = dict(enumerate([*outer, *inner[20:]]))
    greedy = name in ("zorder", "hilbert")
    for box in inner:
        truth, found = covers(stored, box), index.find_cover(box)
        assert found in truth or (found is None and (greedy or not truth))
        assert index.find_covered(box) == covered(stored, box)
    for i in range(0, 60, 2):
        index.remove(i)
        del stored[i]
    index.check()
    found = index.find_cover_many(inner)
    assert all(
        (f in covers(stored, b)) if f is not None else greedy or not covers(stored, b)
        for f, b in zip(found, inner, strict=True)
    )


@pytest.mark.parametrize("name", METHODS)
def test_equal_boxes_cover_each_other_and_ids_may_be_anything(name):
    index = exact(name, 1)
    index.add("first", [[1, 2]])
    assert index.find_cover([[1, 2]]) == "first"
    index.add(("second", 2), [[1, 2]])
    index.remove("first")
    assert index.find_cover([[1, 2]]) == ("second", 2)
    for i in range(30):
        index.add(i, [[1, 2]])
    index.check()
    assert index.find_covered([[0, 3]]) is not None
    assert len(index.find_covered([[0, 3]])) == 31
    assert index.box(7).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("name", METHODS)
def test_a_neighbouring_float_is_not_covered(name):
    """Equal codes are not equal values: every hit is verified."""
    index = exact(name, 1)
    index.add(1, [[1.0, 2.0]])
    assert index.find_cover([[1.0, np.nextafter(2.0, 3.0)]]) is None
    assert index.find_cover([[np.nextafter(1.0, 0.0), 2.0]]) is None
    assert index.find_cover([[1.0, np.nextafter(2.0, 0.0)]]) == 1
    assert index.find_cover([[1.0, np.inf]]) is None


@pytest.mark.parametrize("name", METHODS)
def test_a_domain_of_one_value(name):
    index = covering.create(name, [[3.0, 3.0]])
    index.add(1, [[3.0, 3.0]])
    index.add(2, [[0.0, 1e308]])
    assert index.find_cover([[3.0, 3.0]]) in (1, 2)
    assert index.find_cover([[2.0, 3.0]]) == 2
    assert index.find_cover([[-1.0, 3.0]]) is None


@pytest.mark.parametrize("name", METHODS)
def test_mistakes_are_sentences_and_change_nothing(name):
    index = exact(name, 2)
    index.add(1, [[0, 1], [0, 1]])
    for wrong, reason in [
        ([[0, 1]], "shape"),
        ([[0, np.nan], [0, 1]], "NaN"),
        ([[2, 1], [0, 1]], "lo must not exceed hi"),
        ("text", "numbers"),
    ]:
        with pytest.raises(CoverlayError, match=reason):
            index.add(2, wrong)
        with pytest.raises(CoverlayError, match=reason):
            index.find_cover(wrong)
    with pytest.raises(CoverlayError, match="already stored"):
        index.add(1, [[0, 1], [0, 1]])
    with pytest.raises(CoverlayError, match="not stored"):
        index.remove(2)
    with pytest.raises(CoverlayError, match="twice"):
        index.add_many([5, 5], np.zeros((2, 2, 2)))
    with pytest.raises(CoverlayError, match="twice"):  # more than there is room for
        index.add_many([*range(500, 999), 500], np.zeros((500, 2, 2)))
    index.check()
    with pytest.raises(CoverlayError, match="as many"):
        index.add_many([5], np.zeros((2, 2, 2)))
    with pytest.raises(CoverlayError, match="lo must not exceed hi"):
        index.add_many([5, 6], [[[0, 1], [0, 1]], [[0, 1], [1, 0]]])
    index.add_many([], [])
    assert index.find_cover_many([]) == []
    index.check()
    assert len(index) == 1


@pytest.mark.parametrize("name", METHODS)
def test_empty_again(name):
    index = exact(name, 1)
    for round in range(3):
        index.add_many(range(10), np.tile([[0.0, 1.0 + round]], (10, 1, 1)))
        for i in range(10):
            index.remove(i)
        index.check()
        assert len(index) == 0
        assert index.find_cover([[0, 1]]) is None
        assert index.find_covered([[-np.inf, np.inf]]) == []


@pytest.mark.parametrize("name", METHODS)
def test_same_operations_same_witnesses(name):
    def answers() -> list[object]:
        rng = np.random.default_rng(5)
        index = exact(name, 2)
        found: list[object] = []
        for i in range(80):
            box = np.sort(rng.integers(0, 9, (2, 2)), axis=1)
            found.append(index.find_cover(box))
            index.add(i, box)
            if i % 3 == 2:
                index.remove(int(rng.choice(index.ids())))
        return found

    assert answers() == answers()


@pytest.mark.parametrize("name", [name for name in METHODS if covering.METHODS[name].takes_epsilon])
@FAST
@given(st.data())
def test_epsilon_may_miss_but_never_invents(name, data):
    held = data.draw(st.lists(boxes(2), max_size=30))
    epsilon = data.draw(st.sampled_from([0.001, 0.05, 0.3, 0.9]))
    index = covering.create(name, [DOMAIN] * 2, epsilon)
    index.add_many(range(len(held)), np.array(held).reshape(len(held), 2, 2))
    stored = dict(enumerate(held))
    for box in data.draw(st.lists(boxes(2), min_size=1, max_size=5)):
        before = index.stats.copy()
        found = index.find_cover(box)
        work = index.stats.since(before)
        assert found is None or found in covers(stored, box)
        if found is None and not work.capped and index.epsilon_of == "volume":
            assert work.volume >= 1 - epsilon - 1e-12
        assert index.find_covered(box) == covered(stored, box)


def test_create_refuses_by_name():
    with pytest.raises(CoverlayError, match="scan"):
        covering.create("nonsense", [[0, 1]])
    for epsilon in (-0.1, 1.0, float("nan"), "much", True, None):
        with pytest.raises(CoverlayError, match="epsilon"):
            covering.create("zorder", [[0, 1]], epsilon)
    with pytest.raises(CoverlayError, match="zorder"):
        covering.create("scan", [[0, 1]], 0.1)
    with pytest.raises(CoverlayError, match="speed"):
        covering.create("scan", [[0, 1]], speed=11)
    for domain in ([[0, np.inf]], [[1, 0]], [[0, np.nan]], [0, 1, 2], 5, [], "x"):
        with pytest.raises(CoverlayError, match="domain"):
            covering.create("scan", domain)
    for option, value in [("bits", 0), ("bits", 33), ("bits", 1.5), ("probe_cap", 0), ("merge_runs", 1)]:
        with pytest.raises(CoverlayError, match=option):
            covering.create("zorder", [[0, 1]], **{option: value})
