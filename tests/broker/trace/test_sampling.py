"""A sampled trace: fewer rows, the same ones every time, and no total changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.trace.buckets import RELATIVE_ERROR
from broker.trace.sampling import is_kept
from broker.trace.schema import HASHED
from sim.experiment.plan import plan
from sim.experiment.runner import execute, simulate

SWEEP = {
    "name": "sampled",
    "overlay": {"kind": "random-tree", "brokers": 8},
    "workload": {"kind": "zipf", "attributes": 1, "subscriptions": 200, "events": 120},
    "matching": {"k": 3},
    "covering": {"method": "zorder", "epsilon": 0.3},
}
HALF = {"run": {"sample_decisions": 0.3, "sample_deliveries": 0.25}}
NOTHING = {"run": {"sample_decisions": 0.0, "sample_deliveries": 0.0}}


@given(st.lists(st.integers(-(2**40), 2**60), min_size=1, max_size=100), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_keeps_what_a_smaller_one_does(numbers, one, other):
    ids = np.array(numbers, dtype=np.int64)
    few, many = is_kept(ids, min(one, other)), is_kept(ids, max(one, other))
    assert (few <= many).all()
    assert is_kept(ids, 1.0).all()
    assert not is_kept(ids, 0.0).any()


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_the_share_is_kept(share):
    kept = is_kept(np.arange(100_000), share).mean()
    assert abs(kept - share) < 4 * np.sqrt(share * (1 - share) / 100_000)


@pytest.fixture(scope="module")
def runs():
    return [simulate(plan({**SWEEP, **more}).runs[0])[0] for more in ({}, HALF, NOTHING)]


def test_whole_subscriptions_and_whole_events_are_kept(runs):
    complete, sample, _ = runs
    for name, by in (("decisions", "subscription"), ("deliveries", "event")):
        everything, some = complete[name].to_pandas(), sample[name].to_pandas()
        assert 0 < len(some) < len(everything)
        chosen = everything[everything[by].isin(set(some[by]))]
        assert some.reset_index(drop=True).equals(chosen.reset_index(drop=True))


def test_other_tables_and_the_record_are_the_same(runs):
    complete, *others = runs
    for tables in others:
        for name in HASHED:
            if not name.startswith(("decisions", "deliveries")):
                assert tables[name].equals(complete[name]), name
        for column in ("deliveries", "missed", "control_messages", "event_messages"):
            assert tables["run"].column(column) == complete["run"].column(column)


def test_rows_and_rest_are_everything(runs):
    complete = runs[0]
    assert len(complete["decisions_rest"]) == len(complete["deliveries_rest"]) == 0
    for tables in runs[1:]:
        for name, sums in (("decisions", ("probes", "cubes", "runs", "volume")), ("deliveries", ("latency",))):
            rows, rest = tables[name].to_pandas(), tables[f"{name}_rest"].to_pandas()
            everything = complete[name].to_pandas()
            assert len(rows) + rest["count"].sum() == len(everything)
            for column in sums:
                total = rows[column].sum() + rest[column].sum()
                assert total == pytest.approx(everything[column].sum(), rel=1e-6)
        keys = ["hops", "latency_bucket"]
        counted = (
            tables["deliveries"]
            .to_pandas()
            .groupby(keys)
            .size()
            .add(tables["deliveries_rest"].to_pandas().set_index(keys)["count"], fill_value=0)
        )
        assert counted.sort_index().to_dict() == complete["deliveries"].to_pandas().groupby(keys).size().to_dict()


def test_checks_that_searched_no_curve_are_apart_in_the_rest():
    """As on a link without entries: the mean resolution is that of the others, the one that was set."""
    given = {**SWEEP, "covering": {**SWEEP["covering"], "bits": 2}, "run": {"sample_decisions": 0.5}}
    rest = simulate(plan(given).runs[0])[0]["decisions_rest"].to_pandas()
    assert {0.0, 2.0} == {*(rest["bits"] / rest["count"])}


def test_the_same_sample_every_time(runs):
    again = simulate(plan({**SWEEP, **HALF}).runs[0])[0]
    assert again["run"].column("trace_hash") == runs[1]["run"].column("trace_hash")
    assert again["run"].column("trace_hash") != runs[0]["run"].column("trace_hash")


@pytest.mark.spark
def test_every_metric_of_a_sampled_run_is_that_of_the_whole_run(tmp_path):
    from analysis.aggregate import analyze

    shares = [{"run.sample_decisions": one, "run.sample_deliveries": two} for one, two in ((1, 1), (0.3, 0.25), (0, 0))]
    names = [execute(run, tmp_path).run_id for run in plan({**SWEEP, "case": shares}).runs]
    runs = (
        analyze(tmp_path)
        .runs.set_index("run")
        .drop(columns=["point", "settings", "trace_hash", "made", "wall_seconds"])
    )
    whole, *others = (runs.loc[[name]].reset_index(drop=True) for name in names)
    assert whole["recall_first_hop"].notna().all()
    assert whole["topk_overlap"].notna().all()
    percentiles = [f"latency_p{percent}" for percent in (50, 95, 99)]  # only the bucket is known of what was left out
    for other in others:
        pd.testing.assert_frame_equal(other[percentiles], whole[percentiles], rtol=RELATIVE_ERROR)
        pd.testing.assert_frame_equal(
            other.drop(columns=percentiles), whole.drop(columns=percentiles), check_exact=True
        )
