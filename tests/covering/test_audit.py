"""The audited ε: its guarantee over drawn streams, what it forgets, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import covering
from covering import audit
from covering.audit import EXACT, Audit, Audits, drawn, may_miss
from coverlay import CoverlayError
from sim.workloads.boxes import wide

STREAMS, CHECKS = 200, 40
NEARLY_SURE = 1.0 - 1e-6


def covered(rng: np.random.Generator, by_number: int = 2) -> Audit:
    """An audit that found a cover, with scores drawn alike each time."""
    return Audit(1000, True, rng.exponential(), 1 + int(rng.pareto(1.0) * 1e6), 2, by_number)


@pytest.mark.parametrize("rule", ["threshold", "number"])
@pytest.mark.parametrize("epsilon", [0.1, 0.25])
def test_over_exchangeable_streams_no_more_is_missed_than_was_asked_for(epsilon, rule, monkeypatch):
    """Few audits, so that one too few or too many shows: with m = 10 and ε = .1 none may be missed."""
    for name, value in (("AUDITS", 10), ("PER_EPSILON", 1.0), ("TRIAL", 3)):
        monkeypatch.setattr(audit, name, value)
    cheap = 1 if rule == "number" else 3
    allowed = 1 + may_miss(epsilon, 10)
    beyond, missed = 0, np.zeros(STREAMS)
    for stream in range(STREAMS):
        rng = np.random.default_rng((stream, int(100 * epsilon)))
        audits = Audits(epsilon, 0.05)
        for _ in range(30):
            audits.add(covered(rng, cheap))
        stop = audits.next(1000)[0]
        assert (stop.lookups < audit.NEVER) == (rule == "number"), "the cheaper rule is chosen"
        checks = [covered(rng) for _ in range(CHECKS)]
        missed[stream] = np.mean([check.left < stop.left or check.lookups > stop.lookups for check in checks])
        beyond += missed[stream] > epsilon
    # With continuous scores, what one calibration misses is Beta(j, m + 1 − j); over all streams at most ε.
    spread = stats.betabinom(CHECKS, allowed, 11 - allowed)
    assert missed.mean() <= epsilon + 5 * spread.std() / CHECKS / np.sqrt(STREAMS)
    assert beyond <= stats.binom(STREAMS, spread.sf(np.floor(epsilon * CHECKS))).ppf(NEARLY_SURE)


def test_the_most_that_audits_may_miss():
    assert [may_miss(0.05, m) for m in (18, 19, 38, 39, 99)] == [-1, 0, 0, 1, 4]
    for epsilon in (0.01, 0.05, 0.3):
        for m in range(400):
            missed = may_miss(epsilon, m)
            assert (missed + 1) / (m + 1) <= epsilon
            assert (missed + 2) / (m + 1) > epsilon, "nor fewer than possible"


def test_a_share_of_the_checks_is_audited_and_the_same_ones_each_time():
    for share in (0.05, 0.3, 1.0):
        lots = [drawn(check, share) for check in range(4000)]
        assert abs(np.mean(lots) - share) <= 5 * np.sqrt(share * (1 - share) / 4000)
        assert lots == [drawn(check, share) for check in range(4000)]


def test_audits_of_a_much_smaller_or_larger_index_are_forgotten():
    rng = np.random.default_rng(1)
    audits = Audits(0.05, 0.05)
    while audits.next(1000)[0] == EXACT:
        audits.add(covered(rng))
    for entries in (500, 2000, 1000):
        assert audits.next(entries)[0] != EXACT
    assert audits.next(2001)[0] == EXACT
    assert audits.next(1000)[0] == EXACT, "what is forgotten does not come back"


def filled(epsilon: float, **options: float) -> tuple[covering.CoveringIndex, covering.CoveringIndex]:
    """`density` with an ε and without, over the same 3,000 boxes."""
    held = wide(3000, 4, np.random.default_rng(1))
    pair = covering.create("density", [[0, 1]] * 4, epsilon, **options), covering.create("density", [[0, 1]] * 4)
    for index in pair:
        index.add_many(range(3000), held)
    return pair


def test_an_index_misses_about_the_share_asked_for_and_looks_up_less():
    index, exact = filled(0.2, audit=0.1)
    asked = wide(4000, 4, np.random.default_rng(2))
    found, truth = index.find_cover_many(asked), exact.find_cover_many(asked)
    late = slice(1000, None)
    covers = sum(t is not None for t in truth[late])
    missed = sum(f is None and t is not None for f, t in zip(found[late], truth[late], strict=True))
    assert all(t is not None for f, t in zip(found, truth, strict=True) if f is not None)
    assert 0.0 < missed / covers < 0.2 + 0.1
    assert index.stats.probes < 0.8 * exact.stats.probes
    assert 400 <= index.stats.audits <= 700
    assert 0 < index.stats.past_stop < index.stats.probes
    assert 0 < index.stats.audit_misses < 0.3 * index.stats.audits


def test_until_enough_covers_are_audited_the_search_is_exact():
    index, exact = filled(0.05)
    asked = wide(4000, 4, np.random.default_rng(3))
    seen = 0
    for box in asked:
        truth = exact.find_cover(box)
        assert index.find_cover(box) == truth, "the same order, to its end"
        seen += truth is not None
        if seen == audit.AUDITS:
            break
    assert index.stats.audits == index.stats.checks
    assert index.stats.probes == exact.stats.probes
    before = index.stats.audits
    for box in asked[-200:]:
        index.find_cover(box)
    assert index.stats.audits - before < 50


def test_an_audit_finds_what_the_stop_would_have_missed():
    """Where every check is an audit, answers are exact, and the misses of the stop are counted."""
    index, exact = filled(0.3, audit=1.0)
    asked = wide(1500, 4, np.random.default_rng(4))
    assert index.find_cover_many(asked) == exact.find_cover_many(asked)
    share = index.stats.audit_misses / index.stats.hits
    assert 0.1 < share < 0.45


def test_keys_that_fall_into_an_empty_leaf_are_found():
    """Counters of a lopsided set; then keys come where there were none."""
    index = covering.create("density", [[0, 1]] * 2)
    index.add_many(range(200), np.tile([[0.1, 0.2], [0.1, 0.2]], (200, 1, 1)))
    assert index.find_cover([[0.6, 0.7], [0.6, 0.7]]) is None
    index.add("new", [[0.5, 0.8], [0.5, 0.8]])
    assert index.find_cover([[0.6, 0.7], [0.6, 0.7]]) == "new"
    index.remove("new")
    assert index.find_cover([[0.6, 0.7], [0.6, 0.7]]) is None
    index.check()


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.1, True, "few"])
def test_a_share_of_audits_is_a_share(wrong):
    with pytest.raises(CoverlayError, match="audit"):
        covering.create("density", [[0, 1]], 0.1, audit=wrong)
