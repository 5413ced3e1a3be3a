"""What the oracle found, in words: whether every delivery was right, and how the lost ones were lost."""

from __future__ import annotations

from analysis.report.summary import Summary
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import LOSSES, MUST_BE_ZERO

NO_PROCESSING = "latencies contain no processing (broker.service is none)"


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
    losses = loss_words(summary)
    sentence = f"{checked} were checked one by one: none is wrong or doubled" if deliveries else "Nothing was delivered"
    after = "; once subscriptions had spread and repairs were done, none was missed" if deliveries else ""
    if losses:
        return f"{sentence}{after}; {losses}."
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


def truth_card(summary: Summary) -> dict[str, str]:
    """What the oracle found, and in which share of the events; green only if nothing at all was lost."""
    wrong = int(summary.runs[list(MUST_BE_ZERO)].sum().sum())
    share = judged_share(summary)
    if share == 0.0:
        return _card("Not checked", "run.sample_oracle chose no event for the oracle", "warn")
    which = "" if share == 1.0 else f", those of {100 * share:.3g} % of the events (run.sample_oracle),"
    checked = f"{int(summary.runs['deliveries'].sum()):,} deliveries{which} checked against the oracle: "
    if wrong:
        titles = [CATALOGUE[name].title for name in MUST_BE_ZERO if summary.runs[name].sum() > 0]
        return _card(f"{wrong:,} wrong", checked + ", ".join(titles), "bad")
    losses = loss_words(summary)
    if losses:
        lost = int(summary.runs[list(LOSSES)].sum().sum())
        settled = "after repair" if summary.runs["missed_fault"].sum() > 0 else "once the network had settled"
        text = f"{checked}none doubled or spurious, none missed {settled}; {losses}"
        return _card(f"{lost:,} lost", text, "warn")
    if not summary.runs["deliveries"].sum():
        return _card("No delivery", "and nobody who asked for an event went without it", "warn")
    return _card("All correct", f"{checked}none missed, doubled or spurious", "good")


def _card(figure: str, text: str, tone: str) -> dict[str, str]:
    return {"figure": figure, "text": text, "tone": tone}
