"""Metrics of traces written by hand, against numbers worked out on paper: their SQL in DuckDB, some in Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.spark.frames import Frames
from analysis.spark.metrics import CATALOGUE, QUERIES, TOTALS, metric
from analysis.spark.metrics.durations import PERCENTS
from analysis.spark.metrics.missed_covers import MOST
from analysis.spark.records import SCHEMA, is_older
from analysis.spark.runs import open_run
from analysis.spark.traces import find_runs
from broker.trace.buckets import RELATIVE_ERROR, bucket_of, middle_of
from broker.trace.schema import ALL, CLIENT
from coverlay import CoverlayError
from tests.analysis import handmade
from tests.analysis.twin import Twin

Make = Callable[..., Twin]


def expect(found: Twin, names: str, *values: float | None) -> None:
    """Each metric has its value; None is unknown."""
    known = {name: nan if found[name] is None else found[name] for name in names.split()}
    expected = {name: nan if value is None else value for name, value in zip(names.split(), values, strict=True)}
    assert known == pytest.approx(expected, rel=1e-12, nan_ok=True)


SIZES = "entries entries_per_broker entries_max reduction pruned memory_per_broker"


def test_table_size_counts_remote_entries_of_the_final_sample_only(counted: Make) -> None:
    run = counted(tables=handmade.final(1, 3, 2, 1), run=[handmade.record(active=4, brokers=3)])
    # Broker 1 has 3 + 2; simple routing would have 4 × 2.
    expect((run), SIZES, 7.0, 7 / 3, 5.0, 1 - 7 / 8, 2.0, 15 * 40 / 3)
    # Of how many attributes a file has, only the record tells; the experiment says the default.
    wide = counted(tables=handmade.final(1, 3, 2, 1), run=[handmade.record(attributes=5)])
    assert wide["memory_per_broker"] == 15 * 88 / 3
    nothing = counted(run=[handmade.record(active=0)])
    expect(nothing, SIZES, 0.0, 0.0, 0.0, None, 0.0, 0.0)  # nothing to save


COVERING = (
    "checks probes probes_per_check candidates candidates_per_check bits check_time pages_per_check "
    "round_trips_per_check cubes key_ranges volume capped recall missed_covers recall_first_hop"
)


def test_covering_counts_checks_but_not_retractions(counted: Make) -> None:
    rows = [
        {"outcome": "suppressed", "probes": 5, "cubes": 2, "runs": 1, "volume": 0.5, "exact": True, "took": 2.0**-10},
        {
            "outcome": "forwarded",
            "pages": 6,
            "round_trips": 2,
            "candidates": 6,
            "bits": 2,
            "probes": 9,
            "cubes": 4,
            "runs": 3,
            "volume": 1.0,
            "exact": True,
            "capped": True,
        },
        {"outcome": "exposed", "probes": 1, "volume": 1.0, "exact": False},
        {"outcome": "forwarded", "probes": 1, "volume": 1.0, "exact": False},
        {"outcome": "retracted", "probes": 7, "candidates": 5, "pages": 9, "volume": 0.0, "exact": None},
    ]
    values = (4.0, 23.0, 4.0, 11.0, 1.5, 2.0, 0.244140625, 1.5, 0.5, 6.0, 4.0, 0.875, 0.25, 0.5, 1.0, None)
    expect((counted(decisions=rows)), COVERING, *values)


def test_audits_and_what_they_cost_are_per_check(counted: Make) -> None:
    rows = [
        {"outcome": "forwarded", "audited": 1, "past_stop": 6, "exact": True},
        {"outcome": "suppressed", "audited": 1, "past_stop": 3, "exact": True},
        {"outcome": "suppressed", "exact": True},
    ]
    rest = [{"outcome": "suppressed", "count": 1, "audited": 1.0, "past_stop": 1.0, "exact": True}]
    found = counted(decisions=rows, decisions_rest=rest)
    expect(found, "audited past_stop_per_check recall missed_share", 0.75, 2.5, 0.75, 0.25)


def test_recall_is_unknown_where_exact_covering_was_not_asked(counted: Make) -> None:
    """Searches that found a cover know that there was one; of the others nobody knows."""
    found = {"outcome": "suppressed", "exact": True, "at_home": True}
    sent = {"outcome": "forwarded", "exact": None}
    known = ("recall", "missed_covers", "recall_first_hop")

    def recall(*rows: dict[str, Any], rest: tuple[dict[str, Any], ...] = ()) -> list[float | None]:
        values = counted(decisions=rows, decisions_rest=rest)
        return [values[name] for name in known]

    assert recall(found, {**sent, "at_home": True}) == [None, None, None]
    assert recall(found, sent) == [None, None, 1.0], "at the first hop nothing was missed"
    assert recall(found, rest=({**sent, "count": 3, "at_home": True},)) == [None, None, None]
    assert recall(sent) == [None, None, None]
    assert recall(found, found) == [1.0, 0, 1.0]


def test_covering_adds_what_sampling_left_out(counted: Make) -> None:
    rows = [{"outcome": "suppressed", "probes": 5, "volume": 0.5, "exact": True, "at_home": True}]
    rest = [
        {"outcome": "forwarded", "exact": True, "at_home": True, "count": 3, "probes": 9.0, "volume": 2.25},
        {
            "outcome": "suppressed",
            "exact": True,
            "count": 4,
            "probes": 4.0,
            "cubes": 8.0,
            "runs": 2.0,
            "candidates": 30.0,
            "bits": 12.0,
            "volume": 1.25,
            "pages": 5.0,
        },
        {"outcome": "forwarded", "exact": False, "capped": True, "count": 2, "probes": 2.0, "volume": 1.0},
        {"outcome": "retracted", "exact": True, "count": 7, "probes": 7.0, "volume": 7.0},
    ]
    found = counted(decisions=rows, decisions_rest=rest)
    # 10 checks; exact covering would have found 8 covers, 5 were found; at home 1 of 4.
    expect(found, COVERING, 10.0, 27.0, 2.0, 30.0, 3.0, 3.0, None, 0.5, 0.0, 8.0, 2.0, 0.5, 0.2, 5 / 8, 3.0, 0.25)


def without(run: Any, table: str, *columns: str) -> None:
    """What an earlier version would have written: no digests, and without these columns."""
    path = run.path(table)
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns(columns), path)


def test_pages_of_an_earlier_version_are_unknown_and_its_waits_zero(counted: Make) -> None:
    (run,) = counted(decisions=[{"outcome": "forwarded"}] * 3, control=[{"target": 1, "kind": "subscribe"}]).runs
    without(run, "decisions", "pages", "round_trips", "took")
    without(run, "control", "waited", "service")
    expect(Twin([run]), "probes_per_check check_time pages_per_check queueing_delay", 0.0, None, None, 0.0)


def test_what_an_earlier_version_did_not_record_is_counted(counted: Make) -> None:
    events = [{"target": 0, "source": CLIENT, "service": 3.0, "published": t} for t in (2.0, 6.0)]
    asked = [{"kind": "preload", "messages": 7}, {"operation": 1, "kind": "subscribe", "messages": 1}]
    found = counted(publications=events, operations=asked)
    (run,) = found.runs
    later = ("first_published", "last_published", "preloads", "preload_messages")
    old = replace(run, record={name: value for name, value in run.record.items() if name not in later})
    assert is_older(old)
    assert not is_older(run)
    expect(found, "event_load control_messages subscribe_messages", 6.0 / 4, 7.0, 7.0)
    pd.testing.assert_frame_equal(Twin([old]).values, found.values, check_exact=True)


def test_probe_counts_beyond_64_bits_do_not_overflow(counted: Make) -> None:
    rows = [{"outcome": "forwarded", "probes": 2**62, "cubes": 2**62, "took": 2.0**45}] * 4
    found = counted(decisions=rows)
    assert found["probes"] == float(2**64)
    small = counted(decisions=[{"outcome": "forwarded", "probes": probes} for probes in (2**53, 1, 1)])
    assert small["probes"] == 2**53 + 2, "digits that doubles would lose"


def test_time_beyond_64_bits_does_not_overflow(counted: Make) -> None:
    rows = [{"target": 0, "service": 2.0**45, "on_covering": 2.0**45, "waited": 2.0**50}] * 4
    found = counted(control=rows, run=[handmade.record(finished=2.0**47, brokers=2)])
    assert (found["utilisation_max"], found["utilisation_mean"]) == (1.0, 0.5)
    assert (found["queueing_delay"], found["share_covering"]) == (2.0**50, 1.0)


def test_control_traffic_leaves_out_the_clients(counted: Make) -> None:
    rows = [
        {"source": -1, "target": 0, "kind": "subscribe"},
        {"source": 0, "target": 1, "kind": "subscribe"},
        {"source": 1, "target": 0, "kind": "unsubscribe"},
        {"source": 1, "target": 0, "kind": "unadvertise"},
        {"source": 1, "target": 0, "kind": "summary"},
        {"source": 1, "target": 0, "kind": "rerank"},
    ]
    names = "control_messages subscribe_messages unsubscribe_messages advertise_messages recovery_messages"
    asked = [{"kind": "subscribe", "messages": 4}]
    expect((counted(control=rows, operations=asked)), names, 5.0, 2.0, 1.0, 1.0, 1.0)
    # What spread before time 0 left no rows but its number.
    asked.append({"kind": "preload", "messages": 7})
    expect((counted(control=rows, operations=asked)), names, 12.0, 9.0, 1.0, 1.0, 1.0)


PUBLICATIONS = [
    {"hop": 0, "source": -1, "target": 0, "useful": False},  # at the publisher's own broker: no link
    {"hop": 1, "source": 0, "target": 1, "waited": 1.0, "useful": True},
    {"hop": 2, "source": 1, "target": 2, "waited": 0.0, "useful": True},
    {"hop": 1, "source": 1, "target": 0, "waited": 3.0, "useful": False},
]


def test_event_traffic_and_false_positives(counted: Make) -> None:
    found = counted(publications=PUBLICATIONS)
    expect(found, "event_messages false_positives false_positive_share", 3.0, 1.0, 1 / 3)


def test_waiting_is_per_link_and_not_at_the_publisher(counted: Make) -> None:
    run = counted(publications=[{**PUBLICATIONS[0], "waited": 50.0}, *PUBLICATIONS[1:]])
    expect((run), "waiting_mean waiting_p95", 4 / 3, 3.0)


def test_traffic_per_link_joins_both_directions(counted: Make) -> None:
    control = [{"source": 2, "target": 1, "kind": "subscribe"}, {"source": -1, "target": 1}]
    found = counted(control=control, publications=PUBLICATIONS)
    assert list(found.frame("drawn_links")) == ["run", "broker", "neighbour", "control", "events", "needless"]
    assert found.rows("drawn_links", "broker") == [(0, 1, 0, 2, 1), (1, 2, 1, 1, 0)]


LATENCY = "deliveries hops latency_mean latency_p50 latency_p95 latency_p99"


def test_percentiles_are_values_at_the_nearest_rank(counted: Make) -> None:
    rows = [{"latency": i / 8, "hops": i % 2} for i in range(101)]
    # Of 101 values, 51 are the first that make half, 96 the first that make 95 %, 100 the first that make 99 %.
    expect(counted(deliveries=rows[::-1]), LATENCY, 101.0, 50 / 101, 6.25, 50 / 8, 95 / 8, 99 / 8)
    expect(counted(deliveries=[{"latency": 2.0, "hops": 3}]), LATENCY, 1.0, 3.0, *[2.0] * 4)
    # All in one bucket: the value inside it counts, each as often as it is there.
    close = [{"latency": 1000.0 + i} for i in (3, 0, 1, 1, 1, 2)]
    assert len(set(bucket_of([row["latency"] for row in close]).tolist())) == 1
    expect(counted(deliveries=close), "latency_p50 latency_p95", 1001.0, 1003.0)


@given(st.lists(st.sampled_from([0.0, 1e-9, 1.0, 1.001, 7.5, 1e6]) | st.floats(0, 1e4), min_size=1, max_size=60))
@settings(max_examples=25)
def test_percentiles_are_those_of_sorted_values(latencies: list[float]) -> None:
    with TemporaryDirectory() as folder:
        run = open_run(handmade.write(Path(folder), "a", deliveries=[{"latency": value} for value in latencies]))
        found = Twin([run])
    for percent in PERCENTS:
        rank = -(-percent * len(latencies) // 100)
        assert found[f"latency_p{percent}"] == sorted(latencies)[rank - 1]


def test_deliveries_add_what_sampling_left_out(counted: Make) -> None:
    """Of these only the bucket is known, so a percentile is the middle of one."""
    rows = [{"latency": 0.0, "hops": 0}, {"latency": 4.0, "hops": 1}]
    rest = [
        {"hops": 1, "latency_bucket": int(bucket_of([4.0])[0]), "count": 97, "latency": 388.0},
        {"hops": 5, "latency_bucket": int(bucket_of([100.0])[0]), "count": 1, "latency": 100.0},
    ]
    four = float(middle_of(bucket_of([4.0]))[0])
    assert 0 < abs(four - 4.0) <= RELATIVE_ERROR * 4.0
    expect(counted(deliveries=rows, deliveries_rest=rest), LATENCY, 100.0, 1.03, 4.92, four, four, four)
    only = counted(deliveries_rest=[{"hops": 2, "latency_bucket": 0, "count": 2, "latency": 0.0}])
    expect(only, LATENCY, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0)


def test_overlap_with_the_global_top_k(counted: Make) -> None:
    # Event 1 reached three subscriptions and event 2 one: of these four, a global top 2 would have made three.
    publications = [{"event": e, "served": n} for e, n in ((1, 2), (1, 1), (2, 1), (3, 0))]
    limited = handmade.record(parameters='{"matching": {"k": 2}}')
    expect((counted(publications=publications, run=[limited])), "topk_overlap", 0.75)
    expect((counted(publications=publications)), "topk_overlap", None)


def test_load_counts_idle_brokers(counted: Make) -> None:
    control = [{"source": -1, "target": 0}, {"source": 0, "target": 1}]
    # Loads 0, 1, 3: mean 4/3, and Gini 2·(1·0 + 2·1 + 3·3)/(3·4) − 4/3 = 1/2.
    run = counted(control=control, publications=[{"target": 1}, {"target": 1}])
    expect((run), "load_max_mean load_gini", 9 / 4, 0.5)
    assert run.rows("drawn_brokers", "broker") == [(0, 1, 0), (1, 3, 0), (2, 0, 0)]


def test_load_of_a_silent_network_is_unknown(counted: Make) -> None:
    expect((counted()), "load_max_mean load_gini", None, None)


CONVERGENCE = "subscribe_requests convergence_mean convergence_p95 unsubscribe_mean messages_per_subscribe"


def test_convergence_keeps_subscribe_and_unsubscribe_apart(counted: Make) -> None:
    rows = [
        {"kind": "subscribe", "time": 1.0, "finished": 1.0, "messages": 0},
        {"kind": "subscribe", "time": 1.0, "finished": 11.0, "messages": 4},
        {"kind": "unsubscribe", "time": 5.0, "finished": 8.0, "messages": 9},
        {"kind": "restart", "time": 5.0, "finished": 99.0, "messages": 9},
    ]
    expect((counted(operations=rows)), CONVERGENCE, 2.0, 5.0, 10.0, 3.0, 2.0)
    before = [{"kind": "preload", "time": 0.0, "finished": 0.0, "messages": 6}]
    expect((counted(operations=before)), CONVERGENCE, 0.0, None, None, None, 6.0)


def test_truth_is_the_run_record(counted: Make) -> None:
    must_be_zero = {"missed": 1, "duplicates": 2, "spurious": 3, "strays": 6, "wrong_times": 7, "unaccounted": 8}
    lost = {"missed_transient": 3, "missed_dropped": 5, "missed_fault": 1, "missed_refused": 4, "missed_unpublished": 6}
    record = handmade.record(**must_be_zero, **lost, due=80, due_delivered=60, unavoidable=4, spare_links=2, links=2)
    record |= {"due_during": 40, "due_delivered_during": 10, "unavoidable_during": 4}
    record |= {"due_after": 30, "due_delivered_after": 15}
    record |= {"detections": 2, "detecting": 500.0, "switchovers": 4, "switching": 60.0}
    record |= {"switchover_messages": 33, "heartbeats": 900}
    record |= {
        "judged_share": 0.5,
        "deliveries": 70,
        "events": 4,
        "finished": 9.0,
        "wall_seconds": 0.5,
    }
    names = "missed duplicates spurious strays wrong_times unaccounted missed_transient missed_dropped missed_fault"
    names += (
        " missed_refused missed_unpublished unavoidable unavoidable_share spare_share"
        " delivery_ratio_during floor_during delivery_ratio_after"
        " detection_mean switchovers switchover_mean switchover_messages heartbeats judged_share delivery_ratio"
        " control_per_event simulated_time wall_seconds"
    )
    values = (1.0, 2.0, 3.0, 6.0, 7.0, 8.0, 3.0, 5.0, 1.0, 4.0, 6.0, 4.0, 0.05, 0.2, 0.25, 0.9, 0.5)
    values += (250.0, 4.0, 15.0, 33.0, 900.0, 0.5, 0.75, 2.0, 9.0, 0.5)
    control = [{"source": 0, "target": 1, "kind": "subscribe"}] * 8
    expect(counted(run=[record], control=control), names, *values)


def test_what_nobody_judged_is_unknown(counted: Make) -> None:
    found = counted(run=[handmade.record(judged_share=0.0, deliveries=7)])
    assert found["judged_share"] == 0.0
    assert [found[name] for name in ("missed", "duplicates", "missed_fault", "delivery_ratio")] == [None] * 4


def test_no_other_way_saves_anything_in_a_tree(counted: Make) -> None:
    record = handmade.record(brokers=3, due=80, due_delivered=60, unavoidable=4, links=2, spare_links=0)
    assert (counted(run=[record]))["spare_share"] is None


def test_repair_runs_to_the_next_time_everything_is_whole(counted: Make) -> None:
    times = [("crash", 10.0), ("cut", 20.0), ("restart", 30.0), ("heal", 35.0), ("converged", 40.0)]
    times += [("crash", 50.0), ("restart", 60.0), ("converged", 61.0), ("crash", 90.0), ("queue-full", 1.0)]
    run = counted(faults=[{"kind": kind, "time": time} for kind, time in times])
    # Failures at 10, 20 and 50 lasted 30, 20 and 11 ms; the one at 90 never ended. Repairs took 10, 5 and 1.
    expect((run), "failures outage_mean repair_mean", 4.0, 61 / 3, 16 / 3)


def test_drops_count_lost_copies_only(counted: Make) -> None:
    run = counted(faults=[{"kind": "queue-full"}, {"kind": "link-down"}, {"kind": "crash"}])
    expect((run), "dropped", 2.0)


def test_ranked_messages_are_counted_per_event_over_links(counted: Make) -> None:
    said = [(0, -1, True, 48), (0, 2, True, 64), (0, 3, False, 40), (1, -1, True, 48)]
    rows = [{"event": e, "source": s, "carries": c, "bytes": b, "kind": "query"} for e, s, c, b in said]
    served = [{"event": e, "latency": latency} for e, latency in ((0, 3.0), (0, 9.0), (1, 1.0))]
    names = "messages_per_event bytes_per_event brokers_visited first_winner_mean last_winner_mean"
    expect((counted(ranked=rows, deliveries=served)), names, 1.0, 52.0, 1.5, 2.0, 5.0)
    expect((counted(deliveries=served)), names, *[None] * 5)


def test_totals_have_different_columns(counted: Make) -> None:
    """An expression of a metric names a column of any of them, or of `runs`."""
    found = counted()
    columns = [name for query in TOTALS for name in found.frame(query.name).columns if name != "run"]
    columns += SCHEMA.names
    assert [name for name in columns if columns.count(name) > 1] == []


def test_a_run_without_rows_has_what_each_metric_says(counted: Make) -> None:
    """Besides what its record says; no missed covers, because there were no checks."""
    silent = counted()
    known = {name for name in CATALOGUE if silent[name] is not None}
    recorded = {name for name, its in CATALOGUE.items() if its.formula.startswith("run record")}
    amounts = {name for name, its in CATALOGUE.items() if its.empty is not None}
    assert known - recorded == amounts | {"memory_per_broker", "missed_covers", "reduction"}
    assert {silent[name] for name in amounts} == {0.0}


def test_queries_read_every_table_that_has_numbers() -> None:
    read = {name for query in QUERIES.values() for name in query.sources if name in ALL}
    assert read == {*ALL} - {"run", "links", "published", "versions"}


def test_an_unknown_metric_lists_those_there_are() -> None:
    assert metric("recall").unit == "share"
    with pytest.raises(CoverlayError, match=r"unknown metric 'recal'.*recall"):
        metric("recal")


def test_the_ledger_lists_what_missed_covers_cost(counted: Make) -> None:
    def sent(subscription: int, broker: int, neighbour: int, outcome: str, exact: bool | None) -> dict[str, Any]:
        return {
            "subscription": subscription,
            "broker": broker,
            "neighbour": neighbour,
            "outcome": outcome,
            "exact": exact,
            "time": 2.0 + broker,
        }

    decisions = [
        sent(7, 1, 2, "forwarded", True),  # missed, for the second time: it was at broker 0 before
        sent(7, 0, 1, "forwarded", True),
        sent(7, 0, 1, "forwarded", True),  # and it came again
        sent(8, 1, 2, "exposed", True),
        sent(9, 0, 1, "forwarded", False),  # nothing to find
        sent(6, 0, 1, "suppressed", True),  # found
    ]
    control = [
        {"kind": "unsubscribe", "subscription": 7, "source": 1, "target": 2},
        {"kind": "unsubscribe", "subscription": 7, "source": 0, "target": 1},
        {"kind": "unsubscribe", "subscription": 9, "source": 0, "target": 1},
        *[{"kind": "unsubscribe", "subscription": 8, "source": 1, "target": 2}] * 2,  # one of which was not needless
    ]
    run = counted(decisions=decisions, control=control)
    names = ["run", "subscription", "first_broker", "links", "messages", "entries", "rank"]
    assert list(run.frame("drawn_misses")) == names
    assert run.rows("drawn_misses", "rank") == [(7, 0, 2, 5, 1, 1), (8, 1, 1, 2, 0, 2)]
    many = counted(decisions=[sent(number, 0, 1, "forwarded", True) for number in range(MOST + 1)])
    assert [row[0] for row in many.rows("drawn_misses", "rank")] == list(range(MOST))


TIMED = '{"broker": {"service": {"kind": "constant"}}}'


@pytest.mark.spark
def test_load_over_time_counts_messages_waits_and_service_by_broker_and_bin(spark: Any, tmp_path: Path) -> None:
    control = [{"target": 1, "time": 2.0, "waited": 2.0, "service": 4.0}]
    events = [{"target": 1, "time": 6.0, "waited": 1.0, "service": 0.5}, {"target": 2, "time": 392.0, "service": 8.0}]
    said = [{"target": 2, "time": 390.5, "service": 1.0}, {"target": 2, "time": 400.0, "carries": True}]
    # Four messages come at 5 ms and take 16 ms each: the last has waited longest when the queue is empty.
    queue = [{"target": 1, "time": 5.0 + 16 * i, "waited": 16.0 * i, "service": 16.0} for i in range(4)]
    # What was there before time 0 was no message.
    before = [
        {"target": 1, "source": CLIENT, "operation": 0, "service": 9.0},
        {"target": 0, "source": CLIENT, "operation": 1, "time": 3.0, "waited": 2.0, "service": 1.0},
    ]
    asked = [{"operation": 0, "kind": "preload"}, {"operation": 1, "kind": "subscribe", "time": 1.0, "finished": 4.0}]
    runs: dict[str, dict[str, Any]] = {
        "plain": {"control": control, "publications": events},
        "ranked": {"control": control, "publications": events, "ranked": said},
        "queue": {"publications": queue},
        "preloaded": {"control": before, "operations": asked},
        "at once": {"control": control, "publications": events},
    }
    for seed, (name, tables) in enumerate(runs.items()):
        timed = {} if name == "at once" else {"parameters": TIMED}
        record = handmade.record({"workload.subscriptions": seed}, finished=400.0, **timed)
        handmade.write(tmp_path, name, run=[record], **tables)
    found = Frames(spark, find_runs(tmp_path), drawn=runs)["drawn_times"].toPandas()
    found = found.sort_values(["run", "broker", "start"])
    assert list(found) == ["run", "broker", "start", "width", "messages", "events", "waited", "queued", "busy"]

    def rows(name: str) -> list[tuple[Any, ...]]:
        return list(found[found["run"] == name].drop(columns="run").itertuples(index=False, name=None))

    assert rows("plain") == [(1, 0.0, 10.0, 2, 1, 3.0, 3.0, 4.5), (2, 390.0, 10.0, 1, 1, 0.0, 0.0, 8.0)]
    assert rows("ranked")[1] == (2, 390.0, 10.0, 2, 1, 0.0, 0.0, 9.0)
    assert rows("at once") == []
    assert rows("preloaded") == [(0, 0.0, 10.0, 1, 0, 2.0, 2.0, 1.0)]
    of_queue = found[found["run"] == "queue"]
    waiting = [[10 * n <= t < 10 * n + 10 for t in range(5, 5 + 16 * i)] for n in range(7) for i in range(4)]
    queued = [float(sum(map(sum, waiting[4 * n : 4 * n + 4]))) for n in range(7)]
    assert of_queue["start"].tolist() == [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    assert of_queue["messages"].tolist() == [1, 0, 1, 1, 0, 1, 0]
    assert of_queue["waited"].tolist() == [0.0, 0.0, 16.0, 32.0, 0.0, 48.0, 0.0]
    assert of_queue["queued"].tolist() == queued == [15.0, 30.0, 21.0, 17.0, 10.0, 3.0, 0.0]
    assert of_queue["busy"].tolist() == [5.0, 10.0, 10.0, 10.0, 10.0, 10.0, 9.0]


def test_what_was_there_before_time_0_was_no_message(counted: Make) -> None:
    control = [
        {"target": 1, "source": CLIENT, "operation": 0},
        {"target": 0, "source": CLIENT, "operation": 1, "time": 3.0, "waited": 2.0, "service": 1.0},
    ]
    asked = [{"operation": 0, "kind": "preload"}, {"operation": 1, "kind": "subscribe", "time": 1.0, "finished": 4.0}]
    run = counted(control=control, operations=asked)
    assert run["queueing_delay"] == 2.0
    assert run.rows("drawn_brokers", "broker") == [(0, 1, 0), (1, 0, 0), (2, 0, 0)]


SERVICE = (
    "utilisation_max utilisation_mean event_rate_held event_load queueing_delay share_covering share_tables "
    "share_matching"
)


def test_service_says_how_busy_brokers_are_and_with_what(counted: Make) -> None:
    control = [
        {"target": 0, "waited": 3.0, "service": 4.0, "on_covering": 2.0},
        {"target": 1, "service": 1.0, "sent": 4.0},
    ]
    first = {"waited": 1.0, "service": 3.0, "on_tables": 1.0, "on_matching": 0.5}
    events = [
        {"target": 0, "source": CLIENT, "published": 2.0, **first},
        {"target": 2, "source": CLIENT, "published": 6.0},
        {"target": 2, "source": 0, "published": 2.0},
    ]
    run = [handmade.record(finished=10.0, brokers=4)]
    found = counted(control=control, publications=events, run=run)
    # Broker 0 served 3 ms for events, published within 4 ms; its control message came before the first of them.
    expect(found, SERVICE, 0.7, 8.0 / 40, 2000.0 / 3.0, 3.0 / 4, 4.0 / 5, 2.0 / 8, 1.0 / 8, 0.5 / 8)
    # An answer is work for an event; a query that brings the event is counted as a publication.
    said = [{"target": 2, "service": 4.0, "waited": 1.0}, {"target": 2, "service": 9.0, "carries": True}]
    ranked_too = counted(control=control, publications=events, ranked=said, run=run)
    expect((ranked_too), SERVICE, 0.7, 0.3, 2000.0 / 4.0, 1.0, 5.0 / 6, 2.0 / 12, 1.0 / 12, 0.5 / 12)
    assert ranked_too.rows("drawn_brokers", "broker") == [(0, 2, 0), (1, 1, 0), (2, 3, 0)]
    control[1]["service"] = 6.0
    run[0]["trace_hash"] = "01"
    found = counted(control=control, publications=events, run=run)
    assert found["event_load"] == 6.0 / 4, "what is asked for while events are published counts"
    # Another trace in the same folder: its events were published before, and its control message came later.
    events, run[0]["trace_hash"] = [{**row, "published": row["published"] / 2} for row in events], "02"
    assert (counted(control=control, publications=events, run=run))["event_load"] == 3.0 / 2
    silent = counted(run=run)
    expect(silent, SERVICE, *[None] * 8)
    # Where a message takes a constant time nobody wrote down what for, and where none takes any nobody is idle.
    plain = [{"target": 0, "source": CLIENT, "service": 3.0, "published": 1.0}, {"target": 0, "published": 4.0}]
    expect((counted(publications=plain, run=run)), SERVICE, 0.3, 3 / 40, 1000 / 3, 1.0, 0.0, *[None] * 3)
    at_once = [{**row, "service": 0.0} for row in plain]
    expect((counted(publications=at_once, run=run)), SERVICE, *[None] * 4, 0.0, *[None] * 3)


def test_where_copies_were_lost_nobody_knows_the_load(counted: Make) -> None:
    """A copy that was dropped brought no work to where it would have come."""
    events = [
        {"target": 0, "source": CLIENT, "service": 3.0, "published": 1.0},
        {"target": 0, "source": CLIENT, "service": 3.0, "published": 4.0},
    ]
    loads = {}
    for kind, number in (("queue-full", "01"), ("link-down", "02"), ("crash", "03"), ("publisher-down", "04")):
        run = handmade.record(finished=10.0, trace_hash=number)
        found = counted(publications=events, faults=[{"kind": kind}], run=[run])
        loads[kind] = found["event_load"], found["event_rate_held"]
    assert loads["crash"] == loads["publisher-down"] == (6.0 / 3, 2000.0 / 6)
    assert loads["queue-full"] == loads["link-down"] == (None, None)
