"""One suite for all generators: columns that fit, common random numbers, and what each kind promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.language import compile_subscription, parse_subscription
from covering.residue import EMPTY
from coverlay import CoverlayError
from routing.filter import Filter
from sim.random_streams import streams
from sim.workloads import WORKLOADS, generate, validate, workload_options
from sim.workloads.contract import BLOCK
from sim.workloads.points_in_regions import draw_regions
from sim.workloads.zipf_law import zipf_probabilities

SUBSCRIPTION_COLUMNS = ("lo", "hi", "mentioned", "scores", "weights")


def make(kind, seed=1, attributes=3, subscriptions=500, events=100, **options):
    return generate(kind, streams(seed), attributes=attributes, subscriptions=subscriptions, events=events, **options)


def assert_prefix(short, long):
    count = len(short.lo)
    for column in SUBSCRIPTION_COLUMNS:
        np.testing.assert_array_equal(getattr(short, column), getattr(long, column)[:count])
    assert short.residues == {row: r for row, r in long.residues.items() if row < count}


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize(("attributes", "subscriptions", "events"), [(2, 0, 0), (2, 1, 0), (5, 300, 40), (2, 40, 1)])
def test_columns_fit(kind, attributes, subscriptions, events):
    workload = make(kind, 3, attributes, subscriptions, events)
    workload.check()
    place = 2 if kind == "located" else 0  # latitude and longitude come on top
    assert workload.lo.shape == (subscriptions, attributes + place)
    assert workload.events.shape == (events, attributes + place)
    for column in ("lo", "hi", "scores", "weights", "events"):
        assert getattr(workload, column).dtype == np.float64


@pytest.mark.parametrize("kind", [k for k in WORKLOADS if k != "mixture"])
def test_one_attribute(kind):
    make(kind, attributes=1).check()


# The weights of the others are inverse frequencies over all rows, so more rows change them.
by_row = pytest.mark.parametrize("kind", [k for k in WORKLOADS if k not in ("begen", "located")])


@by_row
@settings(max_examples=10)
@given(st.integers(0, 2**31), st.integers(0, 200), st.integers(0, 200), st.integers(0, 60), st.integers(0, 60))
def test_more_rows_change_no_earlier_row(kind, seed, few, more, events, more_events):
    short = make(kind, seed, 2, few, events)
    long = make(kind, seed, 2, few + more, events + more_events)
    assert_prefix(short, long)
    np.testing.assert_array_equal(short.events, long.events[: len(short.events)])


@by_row
def test_prefixes_hold_across_blocks(kind):
    assert_prefix(make(kind, subscriptions=BLOCK - 1), make(kind, subscriptions=2 * BLOCK + 5))


@pytest.mark.parametrize("kind", WORKLOADS)
def test_seeds_matter(kind):
    one, other = make(kind, 1), make(kind, 2)
    assert not np.array_equal(one.lo, other.lo)
    assert not np.array_equal(one.events, other.events)
    assert not np.array_equal(one.scores, other.scores)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("uniform", {"width": "wide"}),
        ("zipf", {"width": 0.1}),
        ("zipf", {"width_skew": 0.0}),
        ("anisotropic", {"wide": 0.1}),
        ("regional-zipf", {"skew_length": 2.0}),
        ("mixture", {"different": 1.0}),
    ],
)
def test_options_about_subscriptions_leave_events_alone(kind, options):
    plain, other = make(kind), make(kind, **options)
    assert not np.array_equal(plain.lo, other.lo)
    np.testing.assert_array_equal(plain.events, other.events)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_some_events_match_some_subscriptions(kind):
    workload = make(kind, subscriptions=3000, events=300, attributes=2)
    inside = (workload.lo <= workload.events[:, None]) & (workload.events[:, None] <= workload.hi)
    share = (inside | ~workload.mentioned).all(axis=2).mean()
    assert 1e-4 < share < 0.5


def test_uniform_widths_are_as_asked_and_inside():
    for width, low, high in [(0.25, 0.25, 0.25), ([0.1, 0.3], 0.1, 0.3), ("narrow", 0.0, 0.05)]:
        workload = make("uniform", width=width)
        widths = workload.hi - workload.lo
        assert widths.min() >= low - 1e-12
        assert widths.max() <= high + 1e-12
        assert workload.lo.min() >= 0
        assert workload.hi.max() <= 1 + 1e-12


def test_zipf_is_clustered_and_mostly_narrow():
    workload = make("zipf", subscriptions=4000, attributes=2, clusters=5, spread=0.01, skew=1.0)
    centres = (workload.lo + workload.hi) / 2
    cells = np.unique(np.floor(centres * 10), axis=0)
    assert len(cells) < 40, "of 100 cells"
    widths = workload.hi - workload.lo
    assert np.median(widths) < 0.1 < widths.max() <= 0.5 + 1e-12


def test_adversarial_large_boxes_cover_each_other_never_and_all_others():
    made = make("adversarial", attributes=3)
    volumes = np.prod(made.hi - made.lo, axis=1)
    assert np.allclose(volumes[::2], volumes[0]), "of one volume"
    contains = (made.lo[:, None] <= made.lo) & (made.hi[:, None] >= made.hi)
    covers = contains.all(axis=2) & ~np.eye(len(volumes), dtype=bool)
    assert not covers[:, ::2].any(), "nothing covers a large one"
    earlier = np.triu(covers)
    assert earlier[::2, 1::2].any(axis=0).all(), "an earlier large one covers each small one"


def test_anisotropic_sides():
    widths = np.subtract(*(getattr(make("anisotropic", attributes=4), c) for c in ("hi", "lo")))
    assert widths[:, :2].mean() == pytest.approx(0.02, rel=0.05)
    assert widths[:, 2:].mean() == pytest.approx(0.6, rel=0.05)
    everything = make("anisotropic", attributes=4, narrow_attributes=4)
    assert (everything.hi - everything.lo).max() < 0.05


def test_regional_zipf_follows_the_paper():
    workload = make("regional-zipf", subscriptions=5000, events=2000, attributes=1)
    half = (workload.hi - workload.lo) / 2
    np.testing.assert_allclose(workload.weights, 1 - half)
    np.testing.assert_allclose(workload.scores, workload.weights.sum(axis=1))
    # Zipf(.75) over hundredths: the first hundredth has 1/Σ rank^-.75 of the mass.
    assert (half < 0.01).mean() == pytest.approx(zipf_probabilities(100, 0.75)[0], abs=0.02)
    # Subscriptions and events come from the same ten regions of a twentieth of the space each.
    middle = (workload.hi + workload.lo) / 2
    regions = draw_regions(streams(1)("workload.regions"), 1)
    for points in (middle, workload.events):
        cell = np.floor(points * 100 + 1e-9)
        inside = (cell[:, None, :] >= regions.start) & (cell[:, None, :] < regions.start + regions.side)
        assert inside.all(axis=2).any(axis=1).all()


def test_mixture_shares():
    workload = make("mixture", subscriptions=20_000, attributes=4, different=0.5)
    lo, hi, mentioned = workload.lo[:, 1:], workload.hi[:, 1:], workload.mentioned[:, 1:]
    both = np.isfinite(lo) & np.isfinite(hi)
    assert (~mentioned).mean() == pytest.approx(0.2, abs=0.02)
    assert (mentioned & ~both).mean() == pytest.approx(0.3, abs=0.02)
    assert (both & (lo == hi)).mean() == pytest.approx(0.2 + 0.3 / 100, abs=0.02)
    assert workload.mentioned.any(axis=1).all(), "nobody subscribes to everything"
    assert len(workload.residues) > 1000


def test_mixture_rows_are_canonical():
    """Each row is what the compiler makes of the same condition, so identity routing recognises equals."""
    workload = make("mixture", subscriptions=400, attributes=2, different=0.6, categories=4, levels=5)
    topics = workload.schema["topic"].categories
    for row in range(400):
        said = []
        if workload.mentioned[row, 0]:
            codes = range(int(workload.lo[row, 0]), int(workload.hi[row, 0]) + 1)
            gone = {v for _, values in workload.residue(row).excluded for v in values}
            said.append("topic in {" + ", ".join(f'"{topics[c]}"' for c in codes if c not in gone) + "}")
        if np.isfinite(workload.lo[row, 1]):
            said.append(f"n1 >= {int(workload.lo[row, 1])}")
        if np.isfinite(workload.hi[row, 1]):
            said.append(f"n1 <= {int(workload.hi[row, 1])}")
        expected = compile_subscription(workload.schema, parse_subscription(" and ".join(said)))
        box = np.column_stack([workload.lo[row], workload.hi[row]])
        assert Filter.of_box(box, workload.residue(row)).key == expected.key


def test_a_row_without_residue_has_the_empty_one():
    assert make("uniform").residue(3) is EMPTY


MISTAKES = [
    ("gauss", 2, {}, "unknown workload kind 'gauss'; there are: ads, adversarial, anisotropic"),
    ("uniform", 2, {"widths": 1}, "no option 'widths'; its options are: width"),
    ("uniform", 2, {"width": "huge"}, "narrow, wide"),
    ("uniform", 2, {"width": 1.5}, "workload.width is 1.5"),
    ("uniform", 2, {"width": [0.5]}, "two fractions"),
    ("uniform", 2, {"width": [0.5, 0.1]}, "must not exceed"),
    ("uniform", 2, {"width": float("nan")}, "workload.width is nan"),
    ("zipf", 2, {"clusters": 0}, "workload.clusters is 0"),
    ("zipf", 2, {"skew": -1}, "workload.skew is -1"),
    ("zipf", 2, {"spread": "wide"}, "workload.spread is 'wide'"),
    ("regional-zipf", 2, {"cells": 1}, "workload.cells is 1"),
    ("regional-zipf", 2, {"v_min": 0}, "workload.v_min is 0"),
    ("regional-zipf", 2, {"v_min": 9.0, "v_max": 3.0}, "workload.v_min is 9; it must be at most v_max"),
    ("mixture", 1, {}, "give 2 or more"),
    ("mixture", 2, {"equality": 0, "one_sided": 0, "range": 0, "unmentioned": 0}, "are all 0"),
    ("mixture", 2, {"categories": 1}, "workload.categories is 1"),
    ("anisotropic", 2, {"narrow_attributes": 3}, "from 0 to 2"),
    ("uniform", 0, {}, "workload.attributes is 0"),
]


@pytest.mark.parametrize(("kind", "attributes", "options", "message"), MISTAKES)
def test_mistakes_are_sentences(kind, attributes, options, message):
    with pytest.raises(CoverlayError) as caught:
        validate(kind, attributes, options)
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_defaults_are_valid(kind):
    validate(kind, 2, {})
    assert workload_options(kind)


def test_many_attributes_do_not_overflow():
    make("regional-zipf", attributes=200, subscriptions=3, events=1).check()
