"""Rules are two-sided: what is said for values on either side of a band, and what noise and seeds change."""

from __future__ import annotations

import pytest

from analysis.report.claims import FAILS, HOLDS, MORE, SMALLER
from coverlay import CoverlayError
from sim.reproduce.rules import (
    COUNTS,
    About,
    Above,
    AtLeast,
    AtMost,
    Below,
    Factor,
    Rule,
    SavesAtMost,
    Saving,
    Told,
    Yes,
    table,
)


@pytest.mark.parametrize(
    ("rule", "values", "noise", "expected"),
    [
        (Factor(4.0), [0.9], 0.0, FAILS),
        (Factor(4.0), [1.1], 0.15, FAILS),  # within the noise of "no faster"
        (Factor(4.0), [2.0], 0.0, SMALLER),
        (Factor(4.0), [3.0], 0.0, HOLDS),
        (Factor(4.0), [5.3], 0.0, HOLDS),
        (Factor(4.0), [5.4], 0.0, MORE),
        (Factor(4.0), [5.4], 0.15, HOLDS),  # noise may have made it larger
        (Factor(4.0), [5.0, 60.0], 0.0, HOLDS),  # the seeds' range meets the band
        (Factor(4.0), [0.9, 4.0], 0.0, FAILS),  # one seed shows the opposite
        (Factor(26.0, 52.0), [69.0], 0.0, HOLDS),
        (Factor(26.0, 52.0), [70.0], 0.0, MORE),
        (Saving(60.0), [-1.0], 0.0, FAILS),
        (Saving(60.0), [10.0], 0.15, FAILS),
        (Saving(60.0), [30.0], 0.0, SMALLER),
        (Saving(60.0), [45.0], 0.0, HOLDS),
        (Saving(60.0), [70.0], 0.0, HOLDS),
        (Saving(60.0), [71.0], 0.0, MORE),
        (SavesAtMost(11.0), [-5.0, 11.0], 0.0, HOLDS),
        (SavesAtMost(11.0), [0.0, 12.0], 0.0, FAILS),
        (SavesAtMost(11.0), [20.0], 0.15, HOLDS),
        (SavesAtMost(11.0), [25.0], 0.15, FAILS),
        (About(100.0, 2.0), [49.0], 0.0, FAILS),
        (About(100.0, 2.0), [50.0, 200.0], 0.0, HOLDS),
        (About(100.0, 2.0), [201.0], 0.0, FAILS),
        (About(100.0, 2.0), [float("inf")], 0.0, FAILS),
        (AtMost(2.0), [2.0], 0.0, HOLDS),
        (AtMost(2.0), [1.0, 2.1], 0.0, FAILS),
        (AtMost(2.0), [2.2], 0.15, HOLDS),
        (AtLeast(1.0), [0.9], 0.15, HOLDS),  # a tie within the noise is no loss
        (AtLeast(1.0), [0.8, 3.0], 0.15, FAILS),
        (Above(1.0), [1.1], 0.0, HOLDS),
        (Above(1.0), [1.1], 0.15, FAILS),
        (Below(1.0), [0.9], 0.0, HOLDS),
        (Below(1.0), [0.9], 0.15, FAILS),
        (Yes(), [1.0, 1.0], 0.0, HOLDS),
        (Yes(), [1.0, 0.0], 0.0, FAILS),
    ],
)
def test_what_is_said(rule: Rule, values: list[float], noise: float, expected: str) -> None:
    assert rule.judge(values, noise) == expected


def test_bands_are_stated() -> None:
    assert Factor(4.0).band == "3 to 5.33×"
    assert Factor(1.29).band == "1 to 1.72×"  # not below "no difference"
    assert Saving(60.0).band == "45 to 70 %"
    assert About(32_000.0, 2.0, "").band == "16,000 to 64,000"
    assert AtMost(10.0, " µs").band == "at most 10 µs"


def test_a_table_has_each_id_once_and_knows_its_bases() -> None:
    told = Told("a", "it is right", "yes", Yes(), COUNTS)
    assert list(table(told, [Told("b", "too", "yes", Yes(), COUNTS)])) == ["a", "b"]
    with pytest.raises(CoverlayError, match="a is declared twice"):
        table(told, [told])
    with pytest.raises(CoverlayError, match="rests on 'luck'"):
        Told("a", "it is right", "yes", Yes(), "luck")
