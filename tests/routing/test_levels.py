"""ε by level and by link: where it applies, and what is refused."""

from __future__ import annotations

import pytest

from coverlay import CoverlayError
from sim.experiment.plan import plan
from sim.experiment.runner import simulate

DATA = {
    "name": "levels",
    "overlay": {"kind": "line", "brokers": 5},  # its middle, broker 2, is the root: links 1-2 and 2-3 are level 0
    "workload": {"kind": "uniform", "width": "wide", "attributes": 1, "subscriptions": 200, "events": 5},
    "routing": {"strategy": "covering"},
}


def recall_by_link(**covering) -> dict[tuple[int, int], float]:
    run = plan({**DATA, "covering": {"method": "zorder-emulated", "bits": 8, **covering}}).runs[0]
    decisions = simulate(run)[0]["decisions"].to_pandas()
    coverable = decisions[decisions["exact"].astype(bool)]
    ends = coverable[["broker", "neighbour"]]
    found = (coverable["outcome"] == "suppressed").groupby([ends.min(axis=1), ends.max(axis=1)]).mean()
    return dict(found.items())


def test_epsilon_by_level_applies_where_it_says():
    recall = recall_by_link(epsilon_per_level=[0.0, 0.6])
    assert recall[1, 2] == recall[2, 3] == 1.0
    assert recall[0, 1] < 1.0
    assert recall[3, 4] < 1.0


def test_epsilon_by_link_wins_over_the_rest():
    recall = recall_by_link(epsilon=0.6, epsilon_per_link={"3-4": 0.0})
    assert recall[3, 4] == 1.0
    assert max(recall[0, 1], recall[1, 2], recall[2, 3]) < 1.0


@pytest.mark.parametrize(
    ("covering", "mentions"),
    [
        ({"epsilon_per_level": [0.0, -0.1]}, "-0.1"),
        ({"epsilon_per_link": {"3-4": 1.0}}, "1.0"),
        ({"epsilon_per_link": {"three-four": 0.1}}, "three-four"),
        ({"epsilon_per_link": {"0-4": 0.1}}, "0-4"),
    ],
)
def test_impossible_levels_and_links_are_refused(covering, mentions):
    with pytest.raises(CoverlayError, match=mentions):
        recall_by_link(**covering)
