"""Covering: how often brokers asked, what the search cost, and how many covers it found.

A *check* is one decision whether to send a subscription over a link (forwarded, exposed or suppressed). The
other outcomes are no checks: a retraction follows from such a decision, a merger invents a cover, and a dormant
subscription waits for an advertisement. They count neither as checks nor in the recall; only their search cost
counts. Decisions that sampling left out are counted through `decisions_rest`.

A search that found a cover knows that there is one, whether or not an exact search was asked too
(`covering.recall`). So missed covers are known only if every check says whether there was one.
"""

from __future__ import annotations

from analysis.spark.metrics.definition import Amount, Metric, Query, Totals, in_units, of_units, ratio, words
from broker.trace.buckets import SHARE_UNIT, WORK_UNIT

MICROSECONDS = 1000.0  # in a millisecond
CHECKS = ("forwarded", "exposed", "suppressed")
_KEYS = "run, outcome, capped, exact, at_home"
_COUNTED = ("probes", "cubes", "runs", "candidates", "bits", "audited", "past_stop", "pages", "round_trips")
_WORK = f"{', '.join(_COUNTED)}, volume, took"

# Emulated searches count probes by the trillion: a double would lose digits, and 64 bits may not do.
DECISION_COUNTS = Query(
    "decision_counts",
    f"""
    select {_KEYS}, sum(count) count, {", ".join(f"sum(cast({name} as decimal(38, 0))) {name}" for name in _COUNTED)},
        sum(if(bits > 0, count, 0)) on_curve,
        sum({in_units("volume", SHARE_UNIT)}) volume, sum({in_units("took", WORK_UNIT)}) took
    from (select {_KEYS}, 1 count, {_WORK} from decisions union all
          select {_KEYS}, count, {_WORK} from decisions_rest)
    group by {_KEYS}""",
)

_CHECK = f"outcome in ({words(CHECKS)})"
_SUPPRESSED = "outcome = 'suppressed'"


def _of_checks(name: str) -> str:
    return f"sum(if({_CHECK}, {name}, null)) {name}_of_checks"


def _covers(chosen: str, which: str) -> str:
    """Of these checks: how many had a cover, and how many found one; unknown unless each says whether it had one."""
    known = f"count_if({chosen} and exact is null) = 0"
    there, found = f"{chosen} and exact", f"{chosen} and exact and {_SUPPRESSED}"
    return (
        f"if({known}, sum(if({there}, count, 0)), null) covers{which}, "
        f"if({known}, sum(if({found}, count, 0)), null) found{which}"
    )


COVERING_TOTALS = Totals(
    "covering_totals",
    f"""
    select run, sum(if({_CHECK}, count, 0)) checks, sum(if({_CHECK} and capped, count, 0)) capped_checks,
        sum(probes) probes, sum(candidates) candidates, sum(cubes) cubes, sum(runs) key_ranges,
        {", ".join(map(_of_checks, (*_COUNTED, "on_curve", "volume", "took")))},
        sum(took) all_took, {_covers(_CHECK, "")}, {_covers(f"{_CHECK} and at_home", "_at_home")}
    from decision_counts group by run""",
)

QUERIES = (DECISION_COUNTS, COVERING_TOTALS)


def _per_check(name: str) -> str:
    return ratio(f"cast({name}_of_checks as double)", "checks")


METRICS = (
    Amount("checks", "covering checks", "checks",
           "Decisions whether a subscription must be sent over a link.",
           "count of decisions forwarded, exposed or suppressed"),
    Amount("probes", "probes", "probes",
           "Stored entries or key ranges looked at by all searches, those of retractions and mergers included.",
           "Σ probes over decisions"),
    Metric("probes_per_check", "probes per check", "probes",
           "Search cost of an average covering check.",
           "Σ probes over checks ÷ checks",
           _per_check("probes")),
    Amount("candidates", "candidates", "candidates",
           "Rows compared inside the key ranges of all searches; none where probes count entries already.",
           "Σ candidates over decisions"),
    Metric("candidates_per_check", "candidates per check", "candidates",
           "Rows that an average covering check compares inside key ranges, beside its probes.",
           "Σ candidates over checks ÷ checks",
           _per_check("candidates")),
    Metric("bits", "bits per coordinate", "bits",
           "Resolution of the curve in an average check that searched one: not on a link without entries.",
           "Σ bits over checks ÷ checks with bits above 0",
           ratio("cast(bits_of_checks as double)", "on_curve_of_checks")),
    Metric("audited", "audited checks", "searches",
           "Searches per check that went on past the stop of an audited ε of the covers, or had no stop yet.",
           "Σ audited over checks ÷ checks",
           _per_check("audited")),
    Metric("past_stop_per_check", "probes past the stop", "probes",
           "Probes of an average check after the stop of an audited ε of the covers, and among its probes: what audits "
           "cost.",
           "Σ past_stop over checks ÷ checks",
           _per_check("past_stop")),
    Metric("check_time", "time per check", "µs",
           "What an average covering check takes, by the profile of broker.service; unknown for other kinds.",
           "mean of took over checks",
           f"if(all_took > 0, {ratio(of_units('took_of_checks', WORK_UNIT * MICROSECONDS), 'checks')}, null)"),
    Metric("pages_per_check", "pages per check", "pages",
           "Pages of 4 KB that an average covering check would touch, were the index on disk.",
           "Σ pages over checks ÷ checks",
           _per_check("pages")),
    Metric("round_trips_per_check", "round trips per check", "round trips",
           "Round trips that an average covering check would take, were the index on another machine.",
           "Σ round_trips over checks ÷ checks",
           _per_check("round_trips")),
    Amount("cubes", "standard cubes", "cubes",
           "Standard cubes searched by curve methods; other methods have none.",
           "Σ cubes over decisions"),
    Amount("key_ranges", "key ranges", "ranges",
           "Ranges of curve keys searched, after neighbouring cubes were merged.",
           "Σ runs over decisions"),
    Metric("volume", "searched volume", "share",
           "Part of the search region that an average check searched; 1 is exhaustive.",
           "mean of volume over checks",
           ratio(of_units("volume_of_checks", SHARE_UNIT), "checks")),
    Metric("capped", "capped searches", "share",
           "Part of the checks that a probe cap or a budget ended before all possible covers were seen.",
           "capped checks ÷ checks",
           ratio("capped_checks", "checks")),
    Metric("recall", "recall of covering", "share",
           "Part of the checks with a cover in which this search found one; unknown if covering.recall = false.",
           "suppressed checks with a cover ÷ checks with a cover",
           ratio("found", "covers")),
    Metric("missed_share", "covers missed", "share",
           "Part of the checks with a cover in which this search found none; an ε of the covers promises to bound it.",
           "1 − recall of covering",
           ratio("(covers - found)", "covers")),
    Metric("missed_covers", "missed covers", "checks",
           "Subscriptions sent although there was a cover: each is one needless entry at the neighbour.",
           "checks with a cover − suppressed checks with a cover",
           "if(checks is null, 0, covers - found)"),
    Metric("recall_first_hop", "recall at the first hop", "share",
           "Recall of covering among the checks at the subscriber's own broker: later hops search again for what the "
           "first hop missed.",
           "suppressed checks with a cover ÷ checks with a cover, where the broker is the subscriber's",
           ratio("found_at_home", "covers_at_home")),
)  # fmt: skip
