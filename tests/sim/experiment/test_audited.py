"""An audited ε in a network: audits and what they look up past the stop are in the trace, and lose no event."""

from __future__ import annotations

from sim.experiment.compiled_support import unsupported
from sim.experiment.plan import plan
from sim.experiment.runner import simulate


def test_a_network_with_an_audited_epsilon_tells_its_audits() -> None:
    data = {
        "name": "audited",
        "overlay": {"kind": "line", "brokers": 2},
        "workload": {"kind": "uniform", "attributes": 3, "width": "wide", "subscriptions": 1500, "events": 20},
        "covering": {"method": "density", "epsilon": 0.2, "audit": 0.2},
    }
    (run,) = plan(data).runs
    assert unsupported(run.experiment) == "covering.method = 'density'"
    tables, _ = simulate(run)
    record = tables["run"].to_pylist()[0]
    assert (record["store"], record["epsilon_of"], record["may_miss"]) == ("next key", "covers", True)
    assert record["missed"] == record["spurious"] == 0
    decisions = tables["decisions"].to_pandas()
    checks = decisions[decisions["outcome"].isin(["forwarded", "suppressed"])]
    audited = checks["audited"] == 1
    assert 0.1 < audited.mean() < 1.0
    asked = checks["probes"] > 0  # not where nothing was stored yet
    assert audited[asked].iloc[:100].all(), "at first all searches are audits"
    assert (checks["past_stop"][~audited] == 0).all()
    assert 0 < checks["past_stop"].sum() < checks["probes"].sum()
    assert (checks["round_trips"] == checks["probes"]).all(), "audits are charged like all others"
    late = checks.iloc[len(checks) // 2 :]
    covered = late[late["exact"]]
    assert 0.0 < 1.0 - (covered["outcome"] == "suppressed").mean() < 0.35
