"""Lookups in stores of sorted keys: counts, so they can be asserted."""

from __future__ import annotations

from sim.bench import covering_lookups


def test_searches_of_sorted_keys_compete_within_a_store(monkeypatch):
    for name, value in (("WARM_UP", 600), ("CHECKS", 600), ("FEW", 40), ("BITS", range(1, 4)), ("STREAM", 0)):
        monkeypatch.setattr(covering_lookups, name, value)
    rows = list(covering_lookups.compared("zipf", 1500, 2, 1))
    by_method = {row["method"]: row for row in rows}
    assert {row["case"] for row in rows} == {"sorted keys, yes or no", "sorted keys, next key"}
    exact, audited = by_method["density"], by_method["density, ε = 0.1 of the covers"]
    assert exact["lookups"] < by_method["bigmin"]["lookups"] < by_method["greedy cubes"]["lookups"]
    assert exact["share_missed"] == 0.0 < audited["share_missed"] < 0.2
    assert audited["lookups"] < exact["lookups"]
    assert 0.0 < audited["audits"] < 0.1 * exact["lookups"]
    assert by_method["greedy cubes, best bits"]["lookups"] <= by_method["greedy cubes"]["lookups"]
    (line,) = covering_lookups.table(rows)
    assert line.startswith("zipf, d = 2, n = 1,500; ")


def test_from_the_first_arrival_on_what_is_missed_is_stored(monkeypatch):
    for name, value in (("WARM_UP", 10), ("CHECKS", 50), ("FEW", 5), ("BITS", (2,)), ("EPSILONS", (0.1,))):
        monkeypatch.setattr(covering_lookups, name, value)
    rows = list(covering_lookups.compared("zipf", 1500, 2, 1))
    exact, audited = [row for row in rows if row["case"] == "sorted keys, arrivals"]
    assert exact["share_missed"] == 0.0 < audited["share_missed"] < 0.1
    assert exact["stored"] < audited["stored"]
    assert audited["lookups"] < exact["lookups"]
