"""Runs in which the k best of the whole network are served: churn, faults and full queues, by the oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from analysis.spark.verify import damages
from broker import trace
from coverlay import CoverlayError
from sim.experiment import oracle
from sim.experiment.build import workload_of
from sim.experiment.config import parse
from sim.experiment.effects import idle
from sim.experiment.oracle_truth import scores_of, terms_of
from sim.experiment.plan import plan
from sim.experiment.runner import simulate
from sim.random_streams import streams
from sim.tell.explain import explain
from tests.sim.experiment.slow_oracle import USUAL

DATA = {
    "name": "ranked",
    "overlay": {"kind": "random-tree", "brokers": 8},
    "workload": {"kind": "zipf", "attributes": 2, "subscriptions": 300, "events": 60},
    "matching": {"k": 4, "scope": "network"},
}
WAYS = [
    {"strategy": "flooding"},
    {"strategy": "covering"},
    {"rank": "cover"},
    {"rank": "cover", "visit": "best-first", "mode": "active"},
    {"rank": "cover", "visit": "waves", "trees": "per-source"},
    {"rank": "skyband"},
]
WRONG = ("missed", "duplicates", "spurious", "strays", "wrong_times")


def run(**sections):
    merged = {name: {**DATA.get(name, {}), **section} for name, section in sections.items()}
    tables, _ = simulate(plan({**DATA, **merged}).runs[0])
    return tables["run"].to_pylist()[0], tables


def faultless(record):
    return [record[name] for name in WRONG] == [0] * len(WRONG)


@pytest.mark.parametrize("routing", WAYS, ids=str)
def test_exactly_the_k_best_of_the_network_are_served(routing):
    record, tables = run(routing=routing)
    assert faultless(record)
    assert record["missed_transient"] == 0
    assert tables["deliveries"].to_pandas().groupby("event").size().max() == 4
    assert record["deliveries"] == run(routing={"strategy": "simple"})[0]["deliveries"]


@pytest.mark.parametrize("routing", WAYS, ids=str)
def test_churn_loses_no_winner_that_had_settled(routing):
    record, _ = run(
        routing=routing,
        arrivals={"kind": "churn", "lifetime": 400.0},
        broker={"service": {"kind": "exponential", "mean": 0.05}},
        links={"jitter": 3.0},
    )
    assert faultless(record)
    assert record["deliveries"] > 50


@pytest.mark.parametrize("routing", WAYS, ids=str)
def test_winners_that_a_fault_costs_are_counted_apart(routing):
    record, tables = run(
        routing=routing,
        faults={"crash_fraction": 0.3, "cut_fraction": 0.3, "downtime": 60.0, "window": [0.3, 0.6]},
        arrivals={"publish_rate": 0.1},
        broker={"service": {"kind": "constant", "value": 0.1}},
    )
    assert faultless(record)
    assert record["missed_fault"] > 0
    assert "converged" in set(tables["faults"].to_pandas()["kind"])
    assert record["deliveries"] > 50


@pytest.mark.parametrize("overflow", ["drop", "shed", "hold"])
@pytest.mark.parametrize("rank", ["none", "cover", "skyband"])
def test_whoever_asks_a_broker_without_room_is_told(rank, overflow):
    broker = {"service": {"kind": "constant", "value": 2.0}, "queue": 2, "overflow": overflow}
    record, _ = run(routing={"rank": rank}, broker=broker)
    assert faultless(record)
    assert (record["missed_dropped"] > 0) == (overflow != "hold")


def test_ranked_tables_save_messages_and_best_first_the_most():
    def messages(**routing):
        return int((run(routing=routing)[1]["ranked"].column("source").to_numpy() >= 0).sum())

    plain, parallel = messages(), messages(rank="cover")
    careless = messages(rank="cover", threshold=False)
    first, known = messages(rank="cover", visit="best-first"), messages(rank="skyband")
    assert known < first <= parallel < careless
    assert parallel < plain


LOCATED = {"kind": "located", "attributes": 12, "subscriptions": 200, "events": 40}
WEIGHTED = {"kind": "begen", "attributes": 12, "subscriptions": 200, "events": 40}


@pytest.mark.parametrize("rank", ["none", "cover", "skyband"])
@pytest.mark.parametrize(
    ("workload", "matching"),
    [
        ({}, {"semantics": "relaxed"}),
        (WEIGHTED, {"kind": "predicates", "semantics": "relaxed"}),
        (LOCATED, {"kind": "places"}),
        (LOCATED, {"kind": "places", "semantics": "relaxed"}),
    ],
    ids=["weights", "predicates relaxed", "places", "places relaxed"],
)
def test_every_kind_of_matching_is_ranked_over_the_network(rank, workload, matching):
    """Exact predicates are in test_ranked_stories.py: those drawn here hardly match anything."""
    record, _ = run(routing={"rank": rank}, workload=workload, matching=matching)
    assert faultless(record)
    assert record["deliveries"] > 5


def test_what_cannot_be_ranked_is_refused_and_what_does_not_count_is_said():
    with pytest.raises(CoverlayError, match="k-index is exact; relaxed matching by predicates is done by"):
        run(workload=WEIGHTED, matching={"method": "k-index", "semantics": "relaxed"})
    _, notes = simulate(plan({**DATA, "workload": WEIGHTED}).runs[0])
    assert any("weights of events have no effect: matching.kind = 'boxes'" in note for note in notes)


# ── the oracle ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def finished():
    planned = plan({**DATA, "routing": {"rank": "cover"}}).runs[0]
    return workload_of(planned.experiment, streams(planned.seed)), simulate(planned)[0]


def judged(finished, **changed):
    workload, tables = finished
    return oracle.judge(workload, {**tables, **changed}, replace(USUAL, k=4, network=True))


def test_the_oracle_counts_winners_that_are_lost_or_served_twice(finished):
    deliveries = finished[1]["deliveries"]
    assert judged(finished) == oracle.Verdict(due=deliveries.num_rows, due_delivered=deliveries.num_rows)
    assert judged(finished, deliveries=deliveries.slice(1)).missed == 1
    assert judged(finished, deliveries=pa.concat_tables([deliveries, deliveries.slice(0, 1)])).duplicates == 1


def test_one_who_matches_and_did_not_win_is_spurious(finished):
    """With k = 4 a broker's own best that did not win: what `scope = "broker"` serves."""
    by_broker = simulate(plan({**DATA, "matching": {"k": 4}}).runs[0])[0]["deliveries"]
    verdict = judged(finished, deliveries=by_broker)
    assert verdict.missed == 0
    assert verdict.spurious >= by_broker.num_rows - finished[1]["deliveries"].num_rows
    # In the place of a winner.
    won, matched = finished[1]["deliveries"].to_pandas(), by_broker.to_pandas()
    last = won[won["rank"] == 4].iloc[0]
    others = matched[(matched["event"] == last.event) & ~matched["subscription"].isin(won["subscription"])]
    won.loc[last.name, ["broker", "subscription"]] = others.iloc[0][["broker", "subscription"]]
    verdict = judged(finished, deliveries=pa.Table.from_pandas(won))
    assert (verdict.missed, verdict.spurious) == (1, 1)


def test_ranks_in_another_order_are_wrong(finished):
    deliveries = finished[1]["deliveries"].to_pandas()
    deliveries["rank"] = 5 - deliveries["rank"]
    assert judged(finished, deliveries=pa.Table.from_pandas(deliveries)).spurious > 0


def test_a_message_without_a_cause_is_a_wrong_time(finished):
    ranked = finished[1]["ranked"].to_pandas()
    place = ranked.index[ranked["kind"] == "answer"][0]
    ranked.loc[place, ["sent", "time"]] += 0.25
    assert judged(finished, ranked=pa.Table.from_pandas(ranked)).wrong_times >= 1


# ── telling ────────────────────────────────────────────────────────────────────────────────────────────


def test_explain_tells_who_was_asked_who_won_and_why_another_did_not(tmp_path, finished):
    tables = finished[1]
    name = tables["run"].column("run_id")[0].as_py()
    trace.write_run(tmp_path / "runs" / f"run={name}", tables)
    counts = tables["deliveries"].to_pandas().groupby("event").size()
    event = int(counts[counts == 4].index[0])
    words = list(explain(tmp_path, event, None))
    assert any("asked" in line for line in words)
    assert any("answered" in line for line in words)
    assert sum(line.startswith("  rank") for line in words) == 4
    deliveries = tables["deliveries"].to_pandas()
    winner = deliveries[(deliveries["event"] == event) & (deliveries["rank"] == 2)].iloc[0]
    assert "it was served as number 2 of 4" in list(explain(tmp_path, event, int(winner.subscription)))[-1]
    scores = scores_of(terms_of(finished[0], "exact"), finished[0].events[event])
    order = np.lexsort((np.arange(300), -scores))  # NaN, who does not match, last
    fifth, others = int(order[4]), int(order[-1])
    assert list(explain(tmp_path, event, others))[-1].strip() == "it does not match the event"
    told = list(explain(tmp_path, event, fifth))[-1]
    matching = int((~np.isnan(scores)).sum())
    assert f"it matches the event with score {scores[fifth]:g}, number 5 of {matching} that match: not among" in told


def test_a_damaged_or_lost_table_of_ranked_messages_is_noticed(tmp_path, finished):
    tables = finished[1]
    folder = tmp_path / "runs" / f"run={tables['run'].column('run_id')[0].as_py()}"
    trace.write_run(folder, tables)
    assert not list(damages(folder, rehash=True))
    file = folder / "ranked.parquet"
    file.write_bytes(file.read_bytes()[:100] + b"x" + file.read_bytes()[101:])
    assert any("ranked.parquet is damaged" in sentence for sentence in damages(folder))
    file.unlink()
    assert any("ranked.parquet is missing" in sentence for sentence in damages(folder))


# ── settings ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("routing", "mentions"),
    [
        ({"rank": "cover", "strategy": "merging"}, '"simple" or "covering"'),
        ({"rank": "skyband", "mode": "active"}, 'mode = "lazy"'),
        ({"rank": "cover", "mode": "prune"}, '"lazy" or "active"'),
        ({"rank": "cover", "cover": "union"}, 'cover = "single"'),
        ({"rank": "cover", "advertisements": "simple"}, 'advertisements = "none"'),
        ({"rank": "best"}, "rank"),
        ({"visit": "sideways"}, "visit"),
        ({"wave": 0}, "wave"),
    ],
)
def test_what_ranks_do_not_go_with_is_refused(routing, mentions):
    with pytest.raises(CoverlayError, match=mentions):
        plan({**DATA, "routing": routing})


@pytest.mark.parametrize(
    ("sections", "key", "why"),
    [
        ({"matching": {"scope": "network"}}, "matching.scope", "without matching.k"),
        ({"matching": {"k": 3}, "routing": {"rank": "cover"}}, "routing.rank", "at each broker"),
        ({"routing": {"visit": "best-first"}}, "routing.visit", "knows no bounds"),
        ({"routing": {"rank": "skyband", "visit": "best-first"}}, "routing.visit", "without asking"),
        ({"routing": {"rank": "cover", "wave": 3}}, "routing.wave", "parallel"),
        ({"routing": {"rank": "skyband"}, "covering": {"method": "kdtree"}}, "covering.method", "exact scan"),
    ],
)
def test_settings_that_do_nothing_are_named(sections, key, why):
    found = {item.key: item.reason for item in idle(parse({**DATA, **sections}, "it"))}
    assert why in found.get(key, ""), found


def test_the_compiled_engine_refuses_it_by_name():
    with pytest.raises(CoverlayError, match=r"does not support matching\.scope = 'network'"):
        run(run={"engine": "compiled"})
