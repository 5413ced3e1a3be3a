"""Each job of the catalogue on traces written by hand, against numbers worked out on paper."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, nan
from typing import Any

import pyarrow.parquet as pq
import pytest

from analysis.spark.metrics import (
    CATALOGUE,
    COUNTS,
    JOBS,
    convergence,
    covering,
    delivery,
    load,
    metric,
    missed_covers,
    over_time,
    ranked,
    service,
    table_size,
    traffic,
    truth,
)
from analysis.spark.metrics.definition import Counted
from analysis.spark.parts import parts_of, together
from broker.trace.buckets import RELATIVE_ERROR, bucket_of, middle_of
from broker.trace.schema import ALL, CLIENT, SCHEMAS
from coverlay import CoverlayError
from tests.analysis import handmade

Make = Callable[..., Counted]


def expect(found: Any, names: str, *values: float | None) -> None:
    """Each metric has its value; None is unknown."""
    known = {name: nan if value is None else float(value) for name, value in found.items()}
    expected = {name: nan if value is None else value for name, value in zip(names.split(), values, strict=True)}
    assert known == pytest.approx(expected, rel=1e-12, nan_ok=True)


def rows_of(columns: Any) -> list[tuple[Any, ...]]:
    """A frame that is kept as columns, row by row."""
    return list(zip(*(values.tolist() for values in columns.values()), strict=True))


SIZES = "entries entries_per_broker entries_max reduction pruned memory_per_broker"


def test_table_size_counts_remote_entries_of_the_final_sample_only(counted: Make) -> None:
    run = counted(tables=handmade.final(1, 3, 2, 1), run=[handmade.record(active=4, brokers=3)])
    # Broker 1 has 3 + 2; simple routing would have 4 × 2.
    expect(table_size.table_size(run), SIZES, 7.0, 7 / 3, 5.0, 1 - 7 / 8, 2.0, 15 * 40 / 3)
    # Of how many attributes a file has, only the record tells; the experiment says the default.
    wide = table_size.table_size(counted(tables=handmade.final(1, 3, 2, 1), run=[handmade.record(attributes=5)]))
    assert wide["memory_per_broker"] == 15 * 88 / 3
    nothing = counted(run=[handmade.record(active=0)])
    expect(table_size.table_size(nothing), SIZES, 0.0, 0.0, 0.0, None, 0.0, 0.0)  # nothing to save


COVERING = (
    "checks probes probes_per_check check_time pages_per_check round_trips_per_check cubes key_ranges volume capped "
    "recall missed_covers recall_first_hop"
)


def test_covering_counts_checks_but_not_retractions(counted: Make) -> None:
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
        {"outcome": "forwarded", "probes": 1, "volume": 1.0, "exact": False},
        {"outcome": "retracted", "probes": 7, "pages": 9, "volume": 0.0, "exact": None},
    ]
    values = (4.0, 23.0, 4.0, 0.244140625, 1.5, 0.5, 6.0, 4.0, 0.875, 0.25, 0.5, 1.0, None)
    expect(covering.covering_work(counted(decisions=rows)), COVERING, *values)


def test_recall_is_unknown_where_exact_covering_was_not_asked(counted: Make) -> None:
    """Searches that found a cover know that there was one; of the others nobody knows."""
    found = {"outcome": "suppressed", "exact": True, "at_home": True}
    sent = {"outcome": "forwarded", "exact": None}
    known = ("recall", "missed_covers", "recall_first_hop")

    def recall(*rows: dict[str, Any], rest: tuple[dict[str, Any], ...] = ()) -> list[float | None]:
        values = covering.covering_work(counted(decisions=rows, decisions_rest=rest))
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
            "volume": 1.25,
            "pages": 5.0,
        },
        {"outcome": "forwarded", "exact": False, "capped": True, "count": 2, "probes": 2.0, "volume": 1.0},
        {"outcome": "retracted", "exact": True, "count": 7, "probes": 7.0, "volume": 7.0},
    ]
    found = covering.covering_work(counted(decisions=rows, decisions_rest=rest))
    # 10 checks; exact covering would have found 8 covers, 5 were found; at home 1 of 4.
    expect(found, COVERING, 10.0, 27.0, 2.0, None, 0.5, 0.0, 8.0, 2.0, 0.5, 0.2, 5 / 8, 3.0, 0.25)


def test_pages_of_an_earlier_version_are_unknown_and_its_waits_zero(counted: Make) -> None:
    run = counted(decisions=[{"outcome": "forwarded"}] * 3, control=[{"target": 1, "kind": "subscribe"}])
    for table, later in (("decisions", ("pages", "round_trips", "took")), ("control", ("waited", "service"))):
        path = run.run.path(table)
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns(later), path)
    old = Counted(run.run, together(part.count() for part in parts_of([run.run], set())))
    found = covering.covering_work(old)
    assert found["probes_per_check"] == 0
    assert found["check_time"] is None
    assert isnan(found["pages_per_check"] or 0)
    assert service.service(old)["queueing_delay"] == 0


def test_probe_counts_beyond_64_bits_do_not_overflow(counted: Make) -> None:
    rows = [{"outcome": "forwarded", "probes": 2**62, "cubes": 2**62, "took": 2.0**45}] * 4
    found = covering.covering_work(counted(decisions=rows))
    assert found["probes"] == float(2**64)
    assert found["check_time"] == 2.0**45 * 1000, "searches of millions of years"


def test_time_beyond_64_bits_does_not_overflow(counted: Make) -> None:
    rows = [{"target": 0, "service": 2.0**45, "on_covering": 2.0**45, "waited": 2.0**50}] * 4
    found = service.service(counted(control=rows, run=[handmade.record(finished=2.0**47, brokers=2)]))
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
    expect(traffic.control_traffic(counted(control=rows, operations=asked)), names, 5.0, 2.0, 1.0, 1.0, 1.0)
    # What spread before time 0 left no rows but its number.
    asked.append({"kind": "preload", "messages": 7})
    expect(traffic.control_traffic(counted(control=rows, operations=asked)), names, 12.0, 9.0, 1.0, 1.0, 1.0)


PUBLICATIONS = [
    {"hop": 0, "source": -1, "target": 0, "useful": False},  # at the publisher's own broker: no link
    {"hop": 1, "source": 0, "target": 1, "waited": 1.0, "useful": True},
    {"hop": 2, "source": 1, "target": 2, "waited": 0.0, "useful": True},
    {"hop": 1, "source": 1, "target": 0, "waited": 3.0, "useful": False},
]


def middle(value: float) -> float:
    """What a percentile says for this value: the middle of its bucket."""
    return float(middle_of(bucket_of([value]))[0])


def test_event_traffic_and_false_positives(counted: Make) -> None:
    found = traffic.event_traffic(counted(publications=PUBLICATIONS))
    expect(found, "event_messages false_positives false_positive_share", 3.0, 1.0, 1 / 3)


def test_waiting_is_per_link_and_not_at_the_publisher(counted: Make) -> None:
    run = counted(publications=[{**PUBLICATIONS[0], "waited": 50.0}, *PUBLICATIONS[1:]])
    expect(delivery.waiting(run), "waiting_mean waiting_p95", 4 / 3, middle(3.0))


def test_traffic_per_link_joins_both_directions(counted: Make) -> None:
    control = [{"source": 2, "target": 1, "kind": "subscribe"}, {"source": -1, "target": 1}]
    found = traffic.per_link(counted(control=control, publications=PUBLICATIONS))
    assert list(found) == ["broker", "neighbour", "control", "events", "needless"]
    assert rows_of(found) == [(0, 1, 0, 2, 1), (1, 2, 1, 1, 0)]


LATENCY = "deliveries hops latency_mean latency_p50 latency_p95 latency_p99"


def test_deliveries_and_percentiles_from_buckets(counted: Make) -> None:
    rows = [{"latency": i / 8, "hops": i % 2} for i in range(101)]
    # Of 101 values, 51 are the first that make half, 96 the first that make 95 %, 100 the first that make 99 %.
    ranks = [middle(50 / 8), middle(95 / 8), middle(99 / 8)]
    assert all(abs(m - i / 8) <= RELATIVE_ERROR * i / 8 for m, i in zip(ranks, (50, 95, 99), strict=True))
    expect(delivery.deliveries(counted(deliveries=rows)), LATENCY, 101.0, 50 / 101, 6.25, *ranks)
    one = counted(deliveries=[{"latency": 7.0, "hops": 3}])
    expect(delivery.deliveries(one), LATENCY, 1.0, 3.0, 7.0, *[middle(7.0)] * 3)


def test_deliveries_add_what_sampling_left_out(counted: Make) -> None:
    rows = [{"latency": 0.0, "hops": 0}, {"latency": 4.0, "hops": 1}]
    rest = [
        {"hops": 1, "latency_bucket": int(bucket_of([4.0])[0]), "count": 97, "latency": 388.0},
        {"hops": 5, "latency_bucket": int(bucket_of([100.0])[0]), "count": 1, "latency": 100.0},
    ]
    four = middle(4.0)
    found = delivery.deliveries(counted(deliveries=rows, deliveries_rest=rest))
    expect(found, LATENCY, 100.0, 1.03, 4.92, four, four, four)
    only = counted(deliveries_rest=[{"hops": 2, "latency_bucket": 0, "count": 2, "latency": 0.0}])
    expect(delivery.deliveries(only), LATENCY, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0)


def test_overlap_with_the_global_top_k(counted: Make) -> None:
    # Event 1 reached three subscriptions and event 2 one: of these four, a global top 2 would have made three.
    publications = [{"event": e, "served": n} for e, n in ((1, 2), (1, 1), (2, 1), (3, 0))]
    limited = handmade.record(parameters='{"matching": {"k": 2}}')
    expect(delivery.top_k(counted(publications=publications, run=[limited])), "topk_overlap", 0.75)
    expect(delivery.top_k(counted(publications=publications)), "topk_overlap", None)


def test_load_counts_idle_brokers(counted: Make) -> None:
    control = [{"source": -1, "target": 0}, {"source": 0, "target": 1}]
    # Loads 0, 1, 3: mean 4/3, and Gini 2·(1·0 + 2·1 + 3·3)/(3·4) − 4/3 = 1/2.
    run = counted(control=control, publications=[{"target": 1}, {"target": 1}])
    expect(load.load(run), "load_max_mean load_gini", 9 / 4, 0.5)
    assert rows_of(load.per_broker(run)) == [(0, 1), (1, 3), (2, 0)]


def test_load_of_a_silent_network_is_unknown(counted: Make) -> None:
    expect(load.load(counted()), "load_max_mean load_gini", None, None)


CONVERGENCE = "subscribe_requests convergence_mean convergence_p95 unsubscribe_mean messages_per_subscribe"


def test_convergence_keeps_subscribe_and_unsubscribe_apart(counted: Make) -> None:
    rows = [
        {"kind": "subscribe", "time": 1.0, "finished": 1.0, "messages": 0},
        {"kind": "subscribe", "time": 1.0, "finished": 11.0, "messages": 4},
        {"kind": "unsubscribe", "time": 5.0, "finished": 8.0, "messages": 9},
        {"kind": "restart", "time": 5.0, "finished": 99.0, "messages": 9},
    ]
    expect(convergence.convergence(counted(operations=rows)), CONVERGENCE, 2.0, 5.0, middle(10.0), 3.0, 2.0)
    before = [{"kind": "preload", "time": 0.0, "finished": 0.0, "messages": 6}]
    expect(convergence.convergence(counted(operations=before)), CONVERGENCE, 0.0, None, None, None, 6.0)


def test_truth_is_the_run_record(counted: Make) -> None:
    must_be_zero = {"missed": 1, "duplicates": 2, "spurious": 3, "strays": 6, "wrong_times": 7, "unaccounted": 8}
    lost = {"missed_transient": 3, "missed_dropped": 5, "missed_fault": 1, "missed_refused": 4, "missed_unpublished": 6}
    record = handmade.record(**must_be_zero, **lost, due=80, due_delivered=60)
    record |= {
        "judged_share": 0.5,
        "deliveries": 70,
        "control_messages": 8,
        "events": 4,
        "finished": 9.0,
        "wall_seconds": 0.5,
    }
    names = "missed duplicates spurious strays wrong_times unaccounted missed_transient missed_dropped missed_fault"
    names += (
        " missed_refused missed_unpublished judged_share delivery_ratio control_per_event simulated_time wall_seconds"
    )
    values = (1.0, 2.0, 3.0, 6.0, 7.0, 8.0, 3.0, 5.0, 1.0, 4.0, 6.0, 0.5, 0.75, 2.0, 9.0, 0.5)
    expect(truth.truth(counted(run=[record])), names, *values)


def test_what_nobody_judged_is_unknown(counted: Make) -> None:
    found = truth.truth(counted(run=[handmade.record(judged_share=0.0, deliveries=7)]))
    assert found["judged_share"] == 0.0
    assert [found[name] for name in ("missed", "duplicates", "missed_fault", "delivery_ratio")] == [None] * 4


def test_repair_runs_to_the_next_time_everything_is_whole(counted: Make) -> None:
    times = [("crash", 10.0), ("cut", 20.0), ("restart", 30.0), ("heal", 35.0), ("converged", 40.0)]
    times += [("crash", 50.0), ("restart", 60.0), ("converged", 61.0), ("crash", 90.0), ("queue-full", 1.0)]
    run = counted(faults=[{"kind": kind, "time": time} for kind, time in times])
    # Failures at 10, 20 and 50 lasted 30, 20 and 11 ms; the one at 90 never ended. Repairs took 10, 5 and 1.
    expect(convergence.repair(run), "failures outage_mean repair_mean", 4.0, 61 / 3, 16 / 3)


def test_drops_count_lost_copies_only(counted: Make) -> None:
    run = counted(faults=[{"kind": "queue-full"}, {"kind": "link-down"}, {"kind": "crash"}])
    expect(truth.drops(run), "dropped", 2.0)


def test_ranked_messages_are_counted_per_event_over_links(counted: Make) -> None:
    said = [(0, -1, True, 48), (0, 2, True, 64), (0, 3, False, 40), (1, -1, True, 48)]
    rows = [{"event": e, "source": s, "carries": c, "bytes": b, "kind": "query"} for e, s, c, b in said]
    served = [{"event": e, "latency": latency} for e, latency in ((0, 3.0), (0, 9.0), (1, 1.0))]
    names = "messages_per_event bytes_per_event brokers_visited first_winner_mean last_winner_mean"
    expect(ranked.ranked(counted(ranked=rows, deliveries=served)), names, 1.0, 52.0, 1.5, 2.0, 5.0)
    expect(ranked.ranked(counted(deliveries=served)), names, *[None] * 5)


def test_the_catalogue_describes_what_the_jobs_compute(counted: Make) -> None:
    silent = counted()
    for job in JOBS:
        assert list(job.compute(silent)) == [m.name for m in job.metrics], job.compute.__name__
    assert len(CATALOGUE) == sum(len(job.metrics) for job in JOBS), "two metrics share a name"


def test_counts_have_the_columns_they_declare_in_every_run(counted: Make) -> None:
    """Even where a table has no rows, and where its only row has nothing but zeros."""
    one = {table: [{"run": "a"}] for table in ALL if table not in {"run", "brokers", "links"}}
    for run in (counted(), counted(**one)):
        for count in COUNTS.values():
            assert list(run[count]) == list(count.columns), count.name
    assert {table for count in COUNTS.values() for table in count.of} | {"run", "links"} == {*SCHEMAS, "ranked"}


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
    ]
    run = counted(decisions=decisions, control=control)
    found = missed_covers.costliest_misses(run)
    assert list(found) == ["subscription", "first_broker", "links", "messages", "entries", "rank"]
    assert rows_of(found) == [(7, 0, 2, 5, 1, 1), (8, 1, 1, 1, 1, 2)]
    assert len(missed_covers.costliest_misses(run, most=1)["rank"]) == 1


TIMED = '{"broker": {"service": {"kind": "constant"}}}'


def test_load_over_time_counts_messages_waits_and_service_by_broker_and_bin(counted: Make) -> None:
    control = [{"target": 1, "time": 2.0, "waited": 2.0, "service": 4.0}]
    rows = [{"target": 1, "time": 6.0, "waited": 1.0, "service": 0.5}, {"target": 2, "time": 392.0, "service": 8.0}]
    record = handmade.record(finished=400.0, parameters=TIMED)
    found = over_time.per_broker(counted(control=control, publications=rows, run=[record]))
    assert list(found) == ["broker", "start", "width", "messages", "events", "waited", "queued", "busy"]
    assert rows_of(found) == [(1, 0.0, 10.0, 2, 1, 3.0, 3.0, 4.5), (2, 390.0, 10.0, 1, 1, 0.0, 0.0, 8.0)]
    said = [{"target": 2, "time": 390.5, "service": 1.0}, {"target": 2, "time": 400.0, "carries": True}]
    ranked_too = over_time.per_broker(counted(control=control, publications=rows, ranked=said, run=[record]))
    assert rows_of(ranked_too)[1] == (2, 390.0, 10.0, 2, 1, 0.0, 0.0, 9.0)
    at_once = counted(control=control, publications=rows, run=[handmade.record(finished=400.0)])
    assert rows_of(over_time.per_broker(at_once)) == []


def test_a_queue_that_is_worked_off_falls(counted: Make) -> None:
    """Four messages come at 5 ms and take 16 ms each: the last has waited longest when the queue is empty."""
    rows = [{"target": 1, "time": 5.0 + 16 * i, "waited": 16.0 * i, "service": 16.0} for i in range(4)]
    record = handmade.record(finished=400.0, parameters=TIMED)
    found = over_time.per_broker(counted(publications=rows, run=[record]))
    busy = [5.0, 10.0, 10.0, 10.0, 10.0, 10.0, 9.0]
    waiting = [[10 * n <= t < 10 * n + 10 for t in range(5, 5 + 16 * i)] for n in range(7) for i in range(4)]
    queued = [float(sum(map(sum, waiting[4 * n : 4 * n + 4]))) for n in range(7)]
    assert found["start"].tolist() == [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    assert found["messages"].tolist() == [1, 0, 1, 1, 0, 1, 0]
    assert found["waited"].tolist() == [0.0, 0.0, 16.0, 32.0, 0.0, 48.0, 0.0]
    assert found["queued"].tolist() == queued == [15.0, 30.0, 21.0, 17.0, 10.0, 3.0, 0.0]
    assert found["busy"].tolist() == busy


def test_what_was_there_before_time_0_was_no_message(counted: Make) -> None:
    control = [
        {"target": 1, "source": CLIENT, "operation": 0},
        {"target": 0, "source": CLIENT, "operation": 1, "time": 3.0, "waited": 2.0, "service": 1.0},
    ]
    asked = [{"operation": 0, "kind": "preload"}, {"operation": 1, "kind": "subscribe", "time": 1.0, "finished": 4.0}]
    parameters = '{"broker": {"service": {"kind": "constant"}}, "arrivals": {"kind": "preloaded"}}'
    run = counted(control=control, operations=asked, run=[handmade.record(finished=40.0, parameters=parameters)])
    assert service.service(run)["queueing_delay"] == 2.0
    assert rows_of(load.per_broker(run)) == [(0, 1), (1, 0), (2, 0)]
    assert over_time.per_broker(run)["messages"].sum() == 1
    events = [{"target": 2, "source": CLIENT, "time": 5.0, "service": 1.0}]
    record = handmade.record(finished=40.0, parameters=parameters, trace_hash="01")
    alone = counted(control=control[:1], publications=events, operations=asked[:1], run=[record])
    assert over_time.per_broker(alone)["busy"].tolist() == [1.0], "a table of which nothing is left"


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
    found = service.service(counted(control=control, publications=events, run=run))
    # Broker 0 served 3 ms for events, published within 4 ms; its control message came before the first of them.
    expect(found, SERVICE, 0.7, 8.0 / 40, 2000.0 / 3.0, 3.0 / 4, 4.0 / 5, 2.0 / 8, 1.0 / 8, 0.5 / 8)
    # An answer is work for an event; a query that brings the event is counted as a publication.
    said = [{"target": 2, "service": 4.0, "waited": 1.0}, {"target": 2, "service": 9.0, "carries": True}]
    ranked_too = counted(control=control, publications=events, ranked=said, run=run)
    expect(service.service(ranked_too), SERVICE, 0.7, 0.3, 2000.0 / 4.0, 1.0, 5.0 / 6, 2.0 / 12, 1.0 / 12, 0.5 / 12)
    assert rows_of(load.per_broker(ranked_too)) == [(0, 2), (1, 1), (2, 3)]
    control[1]["service"] = 6.0
    run[0]["trace_hash"] = "01"
    found = service.service(counted(control=control, publications=events, run=run))
    assert found["event_load"] == 6.0 / 4, "what is asked for while events are published counts"
    # Another trace in the same folder: its events were published before, and its control message came later.
    events, run[0]["trace_hash"] = [{**row, "published": row["published"] / 2} for row in events], "02"
    assert service.service(counted(control=control, publications=events, run=run))["event_load"] == 3.0 / 2
    silent = service.service(counted(run=run))
    expect(silent, SERVICE, *[None] * 8)
    # Where a message takes a constant time nobody wrote down what for, and where none takes any nobody is idle.
    plain = [{"target": 0, "source": CLIENT, "service": 3.0, "published": 1.0}, {"target": 0, "published": 4.0}]
    expect(service.service(counted(publications=plain, run=run)), SERVICE, 0.3, 3 / 40, 1000 / 3, 1.0, 0.0, *[None] * 3)
    at_once = [{**row, "service": 0.0} for row in plain]
    expect(service.service(counted(publications=at_once, run=run)), SERVICE, *[None] * 4, 0.0, *[None] * 3)


def test_where_copies_were_lost_nobody_knows_the_load(counted: Make) -> None:
    """A copy that was dropped brought no work to where it would have come."""
    events = [
        {"target": 0, "source": CLIENT, "service": 3.0, "published": 1.0},
        {"target": 0, "source": CLIENT, "service": 3.0, "published": 4.0},
    ]
    loads = {}
    for kind, number in (("queue-full", "01"), ("link-down", "02"), ("crash", "03"), ("publisher-down", "04")):
        run = handmade.record(finished=10.0, trace_hash=number)
        found = service.service(counted(publications=events, faults=[{"kind": kind}], run=[run]))
        loads[kind] = found["event_load"], found["event_rate_held"]
    assert loads["crash"] == loads["publisher-down"] == (6.0 / 3, 2000.0 / 6)
    assert loads["queue-full"] == loads["link-down"] == (None, None)
