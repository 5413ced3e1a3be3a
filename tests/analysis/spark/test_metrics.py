"""Each job of the catalogue on traces written by hand, against numbers worked out on paper."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.testing import assertDataFrameEqual

from analysis.spark.metrics import (
    CATALOGUE,
    JOBS,
    convergence,
    covering,
    delivery,
    ledger,
    load,
    metric,
    over_time,
    ranked,
    service,
    table_size,
    traffic,
    truth,
)
from broker.trace.buckets import RELATIVE_ERROR, bucket_of, middle_of
from broker.trace.schema import ALL, CLIENT
from coverlay import CoverlayError
from tests.analysis import handmade

pytestmark = pytest.mark.spark


def expect(spark: Any, columns: str, *rows: tuple[Any, ...]) -> Any:
    return spark.createDataFrame(list(rows), "run string, " + ", ".join(f"{c} double" for c in columns.split()))


def test_table_size_counts_remote_entries_of_the_final_sample_only(spark: Any, frame: Any) -> None:
    tables = frame("tables", handmade.final(1, 3, 2, 1))
    run = frame("run", [handmade.record(active=4, brokers=3), {**handmade.record(active=0), "run": "empty"}])
    expected = expect(
        spark,
        "entries entries_per_broker entries_max reduction pruned memory_per_broker",
        ("a", 7.0, 7 / 3, 5.0, 1 - 7 / 8, 2.0, 15 * 40 / 3),  # broker 1 has 3 + 2; simple routing would have 4 × 2
        ("empty", 0.0, 0.0, 0.0, None, 0.0, 0.0),  # nothing to save
    )
    assertDataFrameEqual(table_size.table_size(tables, run), expected)


COVERING = (
    "checks probes probes_per_check check_time pages_per_check round_trips_per_check cubes key_ranges volume capped "
    "recall missed_covers recall_first_hop"
)


def test_covering_counts_checks_but_not_retractions(spark: Any, frame: Any) -> None:
    rows = [
        {"outcome": "suppressed", "probes": 5, "cubes": 2, "runs": 1, "volume": 0.5, "exact": True, "took": 2.0**-10},
        {
            "outcome": "forwarded",
            "pages": 6,
            "round_trips": 2,
            "probes": 9,
            "cubes": 4,
            "runs": 3,
            "volume": 1.0,
            "exact": True,
            "capped": True,
        },
        {"outcome": "exposed", "probes": 1, "volume": 1.0, "exact": False},
        {"outcome": "forwarded", "probes": 1, "volume": 1.0, "exact": None},
        {"outcome": "retracted", "probes": 7, "pages": 9, "volume": 0.0, "exact": True},
        {"run": "unasked", "outcome": "forwarded", "probes": 2, "volume": 1.0},
    ]
    expected = expect(
        spark,
        COVERING,
        ("a", 4.0, 23.0, 4.0, 0.244140625, 1.5, 0.5, 6.0, 4.0, 0.875, 0.25, 0.5, 1.0, None),
        ("unasked", 1.0, 2.0, 2.0, None, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, None, None, None),
    )
    assertDataFrameEqual(covering.covering_work(frame("decisions", rows), frame("decisions_rest", [])), expected)


def test_covering_adds_what_sampling_left_out(spark: Any, frame: Any) -> None:
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
            "volume": 1.25,
            "pages": 5.0,
        },
        {"outcome": "forwarded", "exact": None, "capped": True, "count": 2, "probes": 2.0, "volume": 1.0},
        {"outcome": "retracted", "exact": True, "count": 7, "probes": 7.0, "volume": 7.0},
    ]
    found = covering.covering_work(frame("decisions", rows), frame("decisions_rest", rest))
    # 10 checks; exact covering would have found 8 covers, 5 were found; at home 1 of 4.
    values = (10.0, 27.0, 2.0, None, 0.5, 0.0, 8.0, 2.0, 0.5, 0.2, 5 / 8, 3.0, 0.25)
    assertDataFrameEqual(found, expect(spark, COVERING, ("a", *values)))


def test_probe_counts_beyond_64_bits_do_not_overflow(frame: Any) -> None:
    rows = [{"outcome": "forwarded", "probes": 2**62, "cubes": 2**62}] * 4
    found = covering.covering_work(frame("decisions", rows), frame("decisions_rest", [])).first()
    assert found["probes"] == float(2**64)


def test_control_traffic_leaves_out_the_clients(spark: Any, frame: Any) -> None:
    rows = [
        {"source": -1, "target": 0, "kind": "subscribe"},
        {"source": 0, "target": 1, "kind": "subscribe"},
        {"source": 1, "target": 0, "kind": "unsubscribe"},
        {"source": 1, "target": 0, "kind": "unadvertise"},
        {"source": 1, "target": 0, "kind": "summary"},
    ]
    columns = "control_messages subscribe_messages unsubscribe_messages advertise_messages recovery_messages"
    expected = expect(spark, columns, ("a", 4.0, 1.0, 1.0, 1.0, 1.0))
    asked = [{"kind": "subscribe", "messages": 4}]
    assertDataFrameEqual(traffic.control_traffic(frame("control", rows), frame("operations", asked)), expected)
    # What spread before time 0 left no rows but its number.
    expected = expect(spark, columns, ("a", 11.0, 8.0, 1.0, 1.0, 1.0))
    asked.append({"kind": "preload", "messages": 7})
    assertDataFrameEqual(traffic.control_traffic(frame("control", rows), frame("operations", asked)), expected)


PUBLICATIONS = [
    {"hop": 0, "source": -1, "target": 0, "useful": False},  # at the publisher's own broker: no link
    {"hop": 1, "source": 0, "target": 1, "waited": 1.0, "useful": True},
    {"hop": 2, "source": 1, "target": 2, "waited": 0.0, "useful": True},
    {"hop": 1, "source": 1, "target": 0, "waited": 3.0, "useful": False},
]


def middle(value: float) -> float:
    """What a percentile says for this value: the middle of its bucket."""
    return float(middle_of(bucket_of([value]))[0])


def test_event_traffic_and_false_positives(spark: Any, frame: Any) -> None:
    expected = expect(spark, "event_messages false_positives false_positive_share", ("a", 3.0, 1.0, 1 / 3))
    assertDataFrameEqual(traffic.event_traffic(frame("publications", PUBLICATIONS)), expected)


def test_waiting_is_per_link_and_not_at_the_publisher(spark: Any, frame: Any) -> None:
    found = delivery.waiting(frame("publications", [{**PUBLICATIONS[0], "waited": 50.0}, *PUBLICATIONS[1:]]))
    assertDataFrameEqual(found, expect(spark, "waiting_mean waiting_p95", ("a", 4 / 3, middle(3.0))))


def test_traffic_per_link_joins_both_directions(spark: Any, frame: Any) -> None:
    control = frame("control", [{"source": 2, "target": 1, "kind": "subscribe"}, {"source": -1, "target": 1}])
    found = traffic.per_link(control, frame("publications", PUBLICATIONS))
    schema = "run string, broker int, neighbour int, control bigint, events bigint, needless bigint"
    assertDataFrameEqual(found, spark.createDataFrame([("a", 0, 1, 0, 2, 1), ("a", 1, 2, 1, 1, 0)], schema))


LATENCY = "deliveries hops latency_mean latency_p50 latency_p95 latency_p99"


def test_deliveries_and_percentiles_from_buckets(spark: Any, frame: Any) -> None:
    rows = [{"latency": i / 8, "hops": i % 2} for i in range(101)]
    rows += [{"run": "b", "latency": 7.0, "hops": 3}]
    found = delivery.deliveries(frame("deliveries", rows), frame("deliveries_rest", []))
    # Of 101 values, 51 are the first that make half, 96 the first that make 95 %, 100 the first that make 99 %.
    ranks = [middle(50 / 8), middle(95 / 8), middle(99 / 8)]
    assert all(abs(m - i / 8) <= RELATIVE_ERROR * i / 8 for m, i in zip(ranks, (50, 95, 99), strict=True))
    expected = expect(spark, LATENCY, ("a", 101.0, 50 / 101, 6.25, *ranks), ("b", 1.0, 3.0, 7.0, *[middle(7.0)] * 3))
    assertDataFrameEqual(found, expected)


def test_deliveries_add_what_sampling_left_out(spark: Any, frame: Any) -> None:
    rows = [{"latency": 0.0, "hops": 0}, {"latency": 4.0, "hops": 1}]
    rest = [
        {"hops": 1, "latency_bucket": int(bucket_of([4.0])[0]), "count": 97, "latency": 388.0},
        {"hops": 5, "latency_bucket": int(bucket_of([100.0])[0]), "count": 1, "latency": 100.0},
        {"run": "b", "hops": 2, "latency_bucket": 0, "count": 2, "latency": 0.0},
    ]
    found = delivery.deliveries(frame("deliveries", rows), frame("deliveries_rest", rest))
    four = middle(4.0)
    expected = expect(spark, LATENCY, ("a", 100.0, 1.03, 4.92, four, four, four), ("b", 2.0, 2.0, 0.0, 0.0, 0.0, 0.0))
    assertDataFrameEqual(found, expected)


def test_overlap_with_the_global_top_k(spark: Any, frame: Any) -> None:
    # Event 1 reached three subscriptions and event 2 one: of these four, a global top 2 would have made three.
    served = ((1, 2), (1, 1), (2, 1), (3, 0))
    publications = frame("publications", [{"event": e, "served": n, "run": r} for r in "ab" for e, n in served])
    limited = handmade.record(parameters='{"matching": {"k": 2}}')
    run = frame("run", [limited, {**handmade.record(), "run": "b"}])
    assertDataFrameEqual(delivery.top_k(publications, run), expect(spark, "topk_overlap", ("a", 0.75)))


def test_load_counts_idle_brokers(spark: Any, frame: Any) -> None:
    control = frame("control", [{"source": -1, "target": 0}, {"source": 0, "target": 1}])
    publications = frame("publications", [{"target": 1}, {"target": 1}])
    brokers = frame("brokers", handmade.LINE_BROKERS)
    # Loads 0, 1, 3: mean 4/3, and Gini 2·(1·0 + 2·1 + 3·3)/(3·4) − 4/3 = 1/2.
    found = load.load(control, publications, brokers)
    assertDataFrameEqual(found, expect(spark, "load_max_mean load_gini", ("a", 9 / 4, 0.5)))


def test_load_of_a_silent_network_is_unknown(spark: Any, frame: Any) -> None:
    found = load.load(frame("control", []), frame("publications", []), frame("brokers", handmade.LINE_BROKERS))
    assertDataFrameEqual(found, expect(spark, "load_max_mean load_gini", ("a", None, None)))


def test_convergence_keeps_subscribe_and_unsubscribe_apart(spark: Any, frame: Any) -> None:
    rows = [
        {"kind": "subscribe", "time": 1.0, "finished": 1.0, "messages": 0},
        {"kind": "subscribe", "time": 1.0, "finished": 11.0, "messages": 4},
        {"kind": "unsubscribe", "time": 5.0, "finished": 8.0, "messages": 9},
        {"kind": "restart", "time": 5.0, "finished": 99.0, "messages": 9},
    ]
    columns = "convergence_mean convergence_p95 unsubscribe_mean messages_per_subscribe"
    found = convergence.convergence(frame("operations", rows))
    assertDataFrameEqual(found, expect(spark, columns, ("a", 5.0, middle(10.0), 3.0, 2.0)))
    before = [{"kind": "preload", "time": 0.0, "finished": 0.0, "messages": 6}]
    found = convergence.convergence(frame("operations", before))
    assertDataFrameEqual(found, expect(spark, columns, ("a", None, None, None, 6.0)))


def test_truth_is_the_run_record(spark: Any, frame: Any) -> None:
    must_be_zero = {"missed": 1, "duplicates": 2, "spurious": 3, "strays": 6, "wrong_times": 7}
    record = handmade.record(**must_be_zero, missed_transient=3, missed_dropped=5, missed_fault=1)
    record |= {
        "judged_share": 0.5,
        "deliveries": 60,
        "control_messages": 8,
        "events": 4,
        "finished": 9.0,
        "wall_seconds": 0.5,
    }
    run = frame("run", [record])
    columns = "missed duplicates spurious strays wrong_times missed_transient missed_dropped missed_fault"
    columns += " judged_share delivery_ratio control_per_event simulated_time wall_seconds"
    expected = expect(spark, columns, ("a", 1.0, 2.0, 3.0, 6.0, 7.0, 3.0, 5.0, 1.0, 0.5, 0.75, 2.0, 9.0, 0.5))
    assertDataFrameEqual(truth.truth(run), expected)


def test_repair_runs_to_the_next_time_everything_is_whole(spark: Any, frame: Any) -> None:
    times = [("crash", 10.0), ("cut", 20.0), ("restart", 30.0), ("heal", 35.0), ("converged", 40.0)]
    times += [("crash", 50.0), ("restart", 60.0), ("converged", 61.0), ("crash", 90.0), ("queue-full", 1.0)]
    faults = frame("faults", [{"kind": kind, "time": time} for kind, time in times])
    # Failures at 10, 20 and 50 lasted 30, 20 and 11 ms; the one at 90 never ended. Repairs took 10, 5 and 1.
    found = convergence.repair(faults)
    assertDataFrameEqual(found, expect(spark, "failures outage_mean repair_mean", ("a", 4.0, 61 / 3, 16 / 3)))


def test_drops_count_lost_copies_only(spark: Any, frame: Any) -> None:
    faults = frame("faults", [{"kind": "queue-full"}, {"kind": "link-down"}, {"kind": "crash"}])
    assertDataFrameEqual(truth.drops(faults), expect(spark, "dropped", ("a", 2.0)))


def test_ranked_messages_are_counted_per_event_over_links(spark: Any, frame: Any) -> None:
    said = [(0, -1, True, 48), (0, 2, True, 64), (0, 3, False, 40), (1, -1, True, 48)]
    rows = [{"event": e, "source": s, "carries": c, "bytes": b, "kind": "query"} for e, s, c, b in said]
    served = [{"event": e, "latency": latency} for e, latency in ((0, 3.0), (0, 9.0), (1, 1.0))]
    found = ranked.ranked(frame("ranked", rows), frame("deliveries", served))
    columns = "messages_per_event bytes_per_event brokers_visited last_winner_mean"
    assertDataFrameEqual(found, expect(spark, columns, ("a", 1.0, 52.0, 1.5, 5.0)))


def test_the_catalogue_describes_what_the_jobs_compute(frame: Any) -> None:
    for job in JOBS:
        found = job.compute(*(frame(table, []) for table in job.tables))
        assert found.columns == ["run", *(m.name for m in job.metrics)], job.name
        for described in job.metrics:
            assert {column.split(".")[0] for column in described.columns} <= set(job.tables), described.name
            for column in described.columns:
                table, _, name = column.partition(".")
                assert name in ALL[table].names, column
    assert len(CATALOGUE) == sum(len(job.metrics) for job in JOBS), "two metrics share a name"


def test_an_unknown_metric_lists_those_there_are() -> None:
    assert metric("recall").unit == "share"
    with pytest.raises(CoverlayError, match=r"unknown metric 'recal'.*recall"):
        metric("recal")


def test_the_ledger_lists_what_missed_covers_cost(spark: Any, frame: Any) -> None:
    def sent(subscription: int, broker: int, neighbour: int, outcome: str, exact: bool | None) -> dict[str, Any]:
        return {
            "subscription": subscription,
            "broker": broker,
            "neighbour": neighbour,
            "outcome": outcome,
            "exact": exact,
            "time": float(broker),
        }

    decisions = frame(
        "decisions",
        [
            sent(7, 0, 1, "forwarded", True),  # missed, and again one hop further
            sent(7, 1, 2, "forwarded", True),
            sent(8, 1, 2, "exposed", True),
            sent(9, 0, 1, "forwarded", False),  # nothing to find
            sent(6, 0, 1, "suppressed", True),  # found
        ],
    )
    control = frame(
        "control",
        [
            {"kind": "unsubscribe", "subscription": 7, "source": 1, "target": 2},
            {"kind": "unsubscribe", "subscription": 9, "source": 0, "target": 1},
        ],
    )
    expected = spark.createDataFrame(
        [("a", 7, 0, 2, 3, 1, 1), ("a", 8, 1, 1, 1, 1, 2)],
        "run string, subscription long, first_broker int, links long, messages long, entries long, rank int",
    )
    assertDataFrameEqual(ledger.costliest_misses(decisions, control), expected, ignoreNullable=True)
    assert ledger.costliest_misses(decisions, control, most=1).count() == 1


def test_load_over_time_counts_messages_waits_and_service_by_broker_and_bin(spark: Any, frame: Any) -> None:
    control = frame("control", [{"target": 1, "time": 1.0, "waited": 2.0, "service": 4.0}])
    rows = [{"target": 1, "time": 3.0, "waited": 1.0, "service": 0.5}, {"target": 2, "time": 400.0, "service": 8.0}]
    run = frame("run", [{"finished": 400.0}])
    found = over_time.per_broker(control, frame("publications", rows), run)
    names = "run broker start width messages events waited busy"
    expected = [("a", 1, 0.0, 10.0, 2, 1, 3.0, 4.5), ("a", 2, 390.0, 10.0, 1, 1, 0.0, 8.0)]
    types = (
        "run string, broker int, start double, width double, messages bigint, events bigint, waited double, busy double"
    )
    assertDataFrameEqual(found.select(*names.split()), spark.createDataFrame(expected, types))


def test_service_says_how_busy_brokers_are_and_with_what(spark: Any, frame: Any) -> None:
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
    run = frame("run", [{"finished": 10.0, "brokers": 4}])
    found = service.service(frame("control", control), frame("publications", events), run)
    expected = expect(
        spark,
        "utilisation_max utilisation_mean event_rate_held event_load queueing_delay share_covering share_tables "
        "share_matching",
        # Broker 0 served 3 ms for events, published within 4 ms; its control message came before the first of them.
        ("a", 0.7, 8.0 / 40, 2000.0 / 3.0, 3.0 / 4, 4.0 / 5, 2.0 / 8, 1.0 / 8, 0.5 / 8),
    )
    assertDataFrameEqual(found, expected)
    control[1]["service"] = 6.0
    found = service.service(frame("control", control), frame("publications", events), run)
    assert found.collect()[0]["event_load"] == 6.0 / 4, "what is asked for while events are published counts"
