"""The plan and the verdicts of the sstd15 reproduction; the measurements themselves are too slow for here."""

from __future__ import annotations

import pytest

from analysis.report.claims import FAILS, MORE
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.sheet import Sheet, Swept
from sim.reproduce.sstd15 import RI, RT, SCAN, SWEEPS, TAS, report
from sim.workloads.located import Located, located_events, located_workload


def test_equal_points_of_different_figures_are_measured_once():
    base = Located(subscriptions=2_000_000, distribution="zipf")
    points = [point for sweep in SWEEPS for point in sweep.points(base, quick=False)]
    assert len(points) == sum(len(sweep.full) for sweep in SWEEPS) == 34
    assert len({(point.figure, point.x) for point in points}) == 34
    # Table 4's bold column is a point of all seven figures.
    assert len({point.name for point in points}) == 34 - 6
    assert {point.workload.subscriptions for point in points} == {n * 1_000_000 for n in (1, 2, 3, 4, 5)}


def test_events_alone_are_those_of_the_workload():
    p = Located(subscriptions=50, events=5, dimensions=30)
    for one, other in zip(located_events(p), located_workload(p).events, strict=True):
        assert one.place == other.place
        assert one.event.attributes.tolist() == other.event.attributes.tolist()
        assert one.event.lo.tolist() == other.event.lo.tolist()


@pytest.mark.parametrize(("distribution", "speed", "expected"), [("uniform", 1000.0, MORE), ("zipf", 0.5, FAILS)])
def test_verdicts_follow_the_measurements(tmp_path, distribution, speed, expected):
    """Where R^I-tree takes the given share of the time of all others, all factors hold by more, or none does."""
    sheet = Sheet("sstd15", tmp_path, lambda _: None)
    sheet.size = "none"
    for sweep in SWEEPS:
        xs = [point.x for point in sweep.points(Located(distribution=distribution), quick=True)]
        others = {name: {x: 100.0 for x in xs} for name in (SCAN, TAS, RT)}
        series = {**others, RI: {x: 100.0 / speed for x in xs}}
        swept = Swept({TIME: [series] * 3, COUNTS: [others | {RI: others[TAS]}] * 3})
        report(sheet, distribution, sweep, swept)
    factors = [claim for claim in sheet.claims if claim.published.endswith("×")]
    assert len(factors) == 5 + 3 + 1
    assert {claim.verdict for claim in factors} == {expected}
    assert all((claim.disagrees == [COUNTS]) == (expected == MORE) for claim in factors), "counts show no difference"
    assert all((tmp_path / f"{sweep.figure}-{distribution}.png").exists() for sweep in SWEEPS)
