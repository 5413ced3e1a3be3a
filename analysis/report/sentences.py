"""What a sweep showed, in a few plain sentences, for readers who do not want tables.

Every number is a mean over seeds from the summary. Settings are compared only if they differ by more than
SAME; "more than chance explains" is said only if the paired interval leaves out 0.
"""

from __future__ import annotations

import json

from analysis.report.numbers import duration_text, number_text, value_text
from analysis.report.summary import (
    Summary,
    family,
    is_covering,
    is_exact,
    is_flooding,
    is_plain_covering,
    is_simple,
    may_miss,
    other_keys,
)
from broker.trace.schema import MUST_BE_ZERO

NO_PROCESSING = "latencies contain no processing (broker.service is none)"
SAME = 0.02  # relative differences up to this are not worth a sentence


def about_sweep(summary: Summary) -> list[str]:
    """What routing costs, and whether the deliveries are right."""
    return [*about_routing(summary), about_truth(summary)]


def about_routing(summary: Summary) -> list[str]:
    """Sentences about tables, approximate search, traffic, settling and latency, as far as they apply."""
    parts = (about_tables, about_search, about_traffic, about_settling, about_latency)
    return [sentence for part in parts if (sentence := part(summary))]


def said(summary: Summary, point: str) -> str:
    """A setting in plain words: exact covering (method auto)."""
    labels = summary.labels(point)
    name = str(labels["strategy"])
    if not is_covering(labels):
        name = name if is_flooding(labels) else f"{name} routing"
    elif labels["epsilon"] > 0:
        name = f"{name} at ε = {value_text(labels['epsilon'])}"
    elif is_exact(labels) and is_plain_covering(labels):
        name = f"exact {name}"
    keys = [" ".join(key.split(".", 1)[-1].split("=", 1)) for key in other_keys(summary, point)]
    return f"{name} ({', '.join(keys)})" if keys else name


def extremes(summary: Summary, metric: str, points: list[str]) -> tuple[str, str] | None:
    """The points with the least and the most of a metric, if they differ enough; of nearly equal ones the first."""
    known = summary.means(metric, points)
    if not known:
        return None
    low, high = min(known.values()), max(known.values())
    least = next(point for point, value in known.items() if value <= low + SAME * abs(low))
    most = max(known, key=lambda point: known[point])
    return (least, most) if high > low * (1 + SAME) else None


def about_tables(summary: Summary) -> str:
    if not summary.routed:
        return ""
    least = min(summary.routed, key=lambda point: summary.mean(point, "entries"))
    entries, title = _entries(summary, least), said(summary, least)
    simple = _simple_beside(summary, least)
    if simple is not None and simple != least:
        share = summary.mean(least, "reduction")
        return (
            f"With simple routing, where every broker learns of every subscription, the brokers keep "
            f"{_entries(summary, simple)} routing entries in all. With {title} they keep {entries}: "
            f"{number_text(share, 'share')} fewer{_sure(summary, least, simple)}."
        )
    saved = summary.mean(least, "reduction")
    than = f", {number_text(saved, 'share')} fewer than simple routing would need" if saved > 0 else ""
    ends = extremes(summary, "entries", summary.routed)
    if ends is None:
        return f"The brokers keep {entries} routing entries in all{than}."
    most = ends[1]
    return (
        f"Routing tables are smallest with {title}: {entries} entries in all{than}. They are largest with "
        f"{said(summary, most)}: {_entries(summary, most)}."
    )


def _entries(summary: Summary, point: str) -> str:
    return number_text(summary.mean(point, "entries"), "entries")


def _simple_beside(summary: Summary, point: str) -> str | None:
    """Simple routing under the same conditions and in the same trees, if it was run."""
    same = [p for p in summary.order if _family(p) == _family(point)]
    return next((p for p in same if is_simple(summary.labels(p))), None)


def _family(point: str) -> tuple[str, str]:
    keys = json.loads(point)
    return family(keys), str(keys.get("routing.trees"))


def _sure(summary: Summary, one: str, other: str) -> str:
    """Whether the paired difference of their entries is more than chance; empty if there is no interval."""
    frame = summary.differences
    either = frame["point"].isin([one, other]) & frame["baseline"].isin([one, other])  # never equal
    rows = frame[either & (frame["metric"] == "entries") & frame["differs"].notna()]
    if rows.empty:
        return ""
    return ", more than chance explains" if bool(rows["differs"].iloc[0]) else ", which may still be chance"


def about_search(summary: Summary) -> str:
    """What the least thorough search missed."""
    recalls = summary.means("recall", [point for point in summary.order if may_miss(summary.labels(point))])
    if not recalls:
        return ""
    worst = min(recalls, key=lambda point: recalls[point])
    return (
        f"A search that may skip part of the space misses covers, never events: "
        f"{said(summary, worst)} finds {number_text(recalls[worst], 'share')} of them and "
        f"keeps {_entries(summary, worst)} entries."
    )


def about_traffic(summary: Summary) -> str:
    ends = extremes(summary, "event_messages", summary.order)
    if ends is None:
        return ""
    least, most = (f"{number_text(summary.mean(p, 'event_messages'), 'messages')} messages" for p in ends)
    pays = ", which keeps no routing tables" if is_flooding(summary.labels(ends[1])) else ""
    one, other = (said(summary, point) for point in ends)
    return f"Carrying the events takes {least} with {one} and {most} with {other}{pays}."


def about_settling(summary: Summary) -> str:
    """How long a subscription takes to be known everywhere, if brokers need time."""
    ends = extremes(summary, "convergence_p95", summary.routed)
    if ends is None or without_processing(summary):
        return ""
    return f"95 % of the subscriptions are known wherever they must be {_from_to(summary, 'convergence_p95', ends)}."


def _from_to(summary: Summary, metric: str, ends: tuple[str, str]) -> str:
    """Within 2 ms with flooding, and within 1 s with simple routing."""
    return ", and ".join(f"within {duration_text(summary.mean(p, metric))} with {said(summary, p)}" for p in ends)


def about_latency(summary: Summary) -> str:
    known = summary.means("latency_p95")
    if not known:
        return ""
    ends = extremes(summary, "latency_p95", list(known))
    if ends is None:
        within = number_text(max(known.values()), "ms")
        return f"95 % of the deliveries arrive within {within} ms" + (", in every setting." if len(known) > 1 else ".")
    return f"95 % of the deliveries arrive {_from_to(summary, 'latency_p95', ends)}."


def without_processing(summary: Summary) -> bool:
    """Whether serving a message takes no time, in every setting."""
    return not any(summary.mean(point, "utilisation_max") > 0 for point in summary.order)


def about_truth(summary: Summary) -> str:
    runs = summary.runs
    deliveries = int(runs["deliveries"].sum())
    made = f"{deliveries:,} deliveries"
    wrong = int(runs[list(MUST_BE_ZERO)].sum().sum())
    if wrong:
        return f"Do not trust this: of {made}, {wrong:,} were missing, doubled or wrong."
    share = judged_share(summary)
    if share == 0.0:
        return f"None of {made} was checked: run.sample_oracle chose no event."
    checked = f"All {made}" if share == 1.0 else f"Of {made} those of {100 * share:.3g} % of the events, a sample,"
    sentence = f"{checked} were checked one by one: none is wrong or doubled" if deliveries else "Nothing was delivered"
    if losses := loss_words(summary):
        return f"{sentence}; {losses}."
    return f"{sentence}, and nobody who asked for an event went without it."


def judged_share(summary: Summary) -> float:
    """The share of all events of all runs that the oracle judged."""
    unjudged = ((1.0 - summary.runs["judged_share"]) * summary.runs["events"]).sum()
    return 1.0 - float(unjudged) / max(int(summary.runs["events"].sum()), 1)


# How a delivery can be lost though routing is correct.
_LOST = {
    "missed_fault": "during faults",
    "missed_unpublished": "because the publisher's broker was down",
    "missed_refused": "because the publisher's broker had no room",
    "missed_dropped": "to full queues",
    "missed_transient": "while subscriptions were on their way",
}


def loss_words(summary: Summary) -> str:
    """How many deliveries were lost, by cause; empty if none: 2,946 lost during faults, 12 to full queues."""
    counts = {name: int(summary.runs[name].sum()) for name in _LOST}
    words = ", ".join(f"{count:,} {_LOST[name]}" for name, count in counts.items() if count)
    return words.replace(" ", " lost ", 1)
