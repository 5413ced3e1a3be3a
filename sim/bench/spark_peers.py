"""The metrics of the catalogue in DuckDB's SQL, on the same files: what one machine can do.

DuckDB gets the same definitions (percentiles from buckets too) and the same two cores, and may share between queries
what our jobs share.
`coverlay bench spark` checks every number against Spark's before it reports a time.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from analysis.spark.metrics.covering import CHECKS
from analysis.spark.metrics.delivery import PERCENTS
from analysis.spark.metrics.service import COPIES_LOST
from analysis.spark.metrics.traffic import KINDS
from broker.trace.buckets import EXPONENT_BIAS, PARTS, SUBBITS
from broker.trace.schema import CLIENT, FAILURES, LOSSES, LOST, MUST_BE_ZERO, SCHEMAS

# The middle of a bucket, see broker/trace/buckets.py.
_MIDDLE = f"if(b = 0, 0, (1 + ((b & {PARTS - 1}) + 0.5) / {PARTS}) * pow(2, (b >> {SUBBITS}) - {EXPONENT_BIAS}))"


def _words(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _percentile(name: str, percent: int) -> str:
    return f"(select {_MIDDLE} from (select min(bucket) filter (reached * 100 >= total * {percent}) b)) {name}"


_RANKED = """(select *, sum(count) over (partition by run order by bucket) reached,
              sum(count) over (partition by run) total from {counts})"""

DUCKDB_STEPS = (
    "create temp table control_counts as select run, source, target, kind, count(*) count from control group by all",
    """create temp table publication_counts as select run, source, target, count(*) count,
       count_if(not useful) needless, sum(waited) waited from publications group by all""",
    """create temp table decision_counts as
       select run, outcome, capped, exact, at_home, count(*) count, sum(probes) probes, sum(cubes) cubes,
       sum(runs) runs, sum(volume) volume, sum(took) took, sum(pages) pages,
       sum(round_trips) round_trips from decisions group by all
       union all by name select * exclude (pages, round_trips) from decisions_rest""",
    """create temp table delivery_counts as
       select run, bucket, sum(count) count, sum(hops) hops, sum(latency) latency from (
       select run, latency_bucket bucket, count(*) count, sum(hops) hops, sum(latency) latency from deliveries
       group by all union all
       select run, latency_bucket, count, hops * count, latency from deliveries_rest) group by all""",
    f"""create temp table waits as select run, waited_bucket bucket, count(*) count from publications
        where source <> {CLIENT} group by all""",
    """create temp table lasted as select run, lasted_bucket bucket, count(*) count from operations
       where kind = 'subscribe' group by all""",
    "create temp table final as select run, broker, neighbour, entries from tables where final",
)

_CHECK = f"outcome in ({_words(CHECKS)})"
_FOUND = f"{_CHECK} and exact and outcome = 'suppressed'"


def _there(chosen: str) -> str:
    """Checks that had a cover; unknown unless every check says whether it had one."""
    asked = f"{_CHECK} and {chosen}"
    return f"if(count_if({asked} and exact is null) > 0, null, sum(count) filter ({asked} and exact))"


# Service time, where the trace says what it was spent on.
_BY_KIND = "if(sum(covering + tables + matching) > 0, sum(service), null)"

# No copy of an event was lost.
_WHOLE = "coalesce(any_value(lost), 0) = 0"

DUCKDB_JOBS = {
    "table_size": f"""
        with remote as (select run, broker, sum(entries) entries from final where neighbour <> {CLIENT} group by all),
        totals as (select run, sum(entries) total, max(entries) largest from remote group by run),
        stored as (select run, sum(entries) stored from final group by run)
        select run, coalesce(total, 0) entries, coalesce(total, 0) / brokers entries_per_broker,
        coalesce(largest, 0) entries_max, 1 - coalesce(total, 0) / nullif(simple_entries, 0) reduction,
        stored * (16 * attributes + 8) / brokers memory_per_broker
        from run left join totals using (run) left join stored using (run)""",
    "control": f"""select run, sum(count) control_messages,
        {", ".join(f"coalesce(sum(count) filter (kind in ({_words(of)})), 0) {name}" for name, of in KINDS.items())}
        from (select run, kind, count from control_counts where source <> {CLIENT}
              union all select run, 'subscribe', messages from operations where kind = 'preload') group by run""",
    "covering": f"""select run, sum(count) filter ({_CHECK}) checks, sum(probes) probes,
        sum(probes) filter ({_CHECK}) / checks probes_per_check, sum(cubes) cubes, sum(runs) key_ranges,
        1000 * sum(took) filter ({_CHECK}) / checks check_time,
        sum(pages) filter ({_CHECK}) / checks pages_per_check,
        sum(round_trips) filter ({_CHECK}) / checks round_trips_per_check,
        sum(volume) filter ({_CHECK}) / checks volume,
        coalesce(sum(count) filter ({_CHECK} and capped), 0) / checks capped,
        sum(count) filter ({_FOUND}) / {_there("true")} recall,
        {_there("true")} - sum(count) filter ({_FOUND}) missed_covers,
        sum(count) filter ({_FOUND} and at_home) / {_there("at_home")} recall_first_hop
        from decision_counts group by run""",
    "events": f"""select run, sum(count) event_messages, sum(needless) false_positives,
        sum(needless) / sum(count) false_positive_share
        from publication_counts where source <> {CLIENT} group by run""",
    "deliveries": f"""select run, sum(count) deliveries, sum(hops) / sum(count) hops,
        sum(latency) / sum(count) latency_mean,
        {", ".join(_percentile(f"latency_p{percent}", percent) for percent in PERCENTS)}
        from {_RANKED.format(counts="delivery_counts")} group by run""",
    "top_k": """select run, sum(least(delivered, k)) / sum(delivered) topk_overlap from (
        select run, event, sum(served) delivered, any_value(k) k from publications
        join (select run, (parameters->>'$.matching.k')::int k from run) using (run) where served > 0
        group by run, event) where k is not null group by run""",
    "waiting": f"""with p as (select run, {_percentile("waiting_p95", 95)}
            from {_RANKED.format(counts="waits")} group by run)
        select run, sum(waited) / sum(count) waiting_mean, any_value(waiting_p95) waiting_p95
        from publication_counts join p using (run) where source <> {CLIENT} group by run""",
    "load": """with processed as (select run, broker, coalesce(sum(count), 0) processed from brokers left join (
            select run, target broker, count from control_counts union all
            select run, target, count from publication_counts) using (run, broker) group by all),
        ranked as (select *, row_number() over (partition by run order by processed, broker) rank from processed)
        select run, max(processed) * count(*) / sum(processed) load_max_mean,
        2 * sum(rank * processed) / (count(*) * sum(processed)) - (count(*) + 1) / count(*) load_gini
        from ranked group by run""",
    "service": f"""with period as (
            select run, min(published) first, max(published) last from publications group by run),
        lost as (select run, count_if(kind in ({_words(COPIES_LOST)})) lost from faults group by run),
        parts as (
            select run, target, sum(waited) waited, sum(service) service, count(*) count, sum(on_covering) covering,
            0 tables, 0 matching, 0 on_events, 0 published,
            coalesce(sum(service) filter (sent between first and last), 0) asked
            from control left join period using (run) group by all union all
            select run, target, sum(waited), sum(service), count(*), 0, sum(on_tables), sum(on_matching), sum(service),
            count_if(source = {CLIENT}), sum(service) from publications group by all),
        each as (select run, target, sum(waited) waited, sum(service) service, sum(count) count,
            sum(covering) covering, sum(tables) tables, sum(matching) matching, sum(on_events) on_events,
            sum(published) published, sum(asked) asked from parts group by all)
        select run, nullif(max(service), 0) / any_value(finished) utilisation_max,
        if(max(service) > 0 and {_WHOLE}, max(asked), null) / nullif(any_value(last - first), 0) event_load,
        nullif(sum(service), 0) / any_value(finished * brokers) utilisation_mean,
        sum(waited) / sum(count) queueing_delay,
        1000 * if({_WHOLE}, sum(published), null) / nullif(max(on_events), 0) event_rate_held,
        sum(covering) / {_BY_KIND} share_covering, sum(tables) / {_BY_KIND} share_tables,
        sum(matching) / {_BY_KIND} share_matching
        from each join run using (run) left join period using (run) left join lost using (run) group by run""",
    "convergence": f"""with p as (select run, {_percentile("convergence_p95", 95)}
            from {_RANKED.format(counts="lasted")} group by run)
        select run, count_if(kind = 'subscribe') subscribe_requests,
        avg(finished - time) filter (kind = 'subscribe') convergence_mean, any_value(convergence_p95)
        convergence_p95, avg(finished - time) filter (kind = 'unsubscribe') unsubscribe_mean,
        avg(messages) filter (kind in ('subscribe', 'preload')) messages_per_subscribe
        from operations join p using (run) group by run""",
    "faults": f"""select run, count_if(kind in ({_words(FAILURES)})) failures,
        count_if(kind in ({_words(LOST)})) dropped
        from faults group by run""",
    "truth": f"""select run, {", ".join((*MUST_BE_ZERO, *LOSSES))}, judged_share,
        due_delivered / nullif(due, 0) delivery_ratio,
        control_messages / nullif(events, 0) control_per_event, finished simulated_time, wall_seconds from run""",
}


def duckdb(base: Path, cores: int, memory: str) -> pd.DataFrame:
    """Every metric of every run, by DuckDB."""
    import duckdb as library

    connection = library.connect(config={"threads": cores, "memory_limit": memory})
    for name in SCHEMAS:
        files = f"{base}/run=*/{name}.parquet"
        connection.execute(f"create view {name} as from read_parquet('{files}', hive_types={{'run': varchar}})")
    for step in DUCKDB_STEPS:
        connection.execute(step)
    wide = connection.execute("select run from run").df()
    for query in DUCKDB_JOBS.values():
        wide = wide.merge(connection.execute(query).df(), "left", "run")
    connection.close()
    return wide.set_index("run")
