"""What the oracle found, in words: whether every delivery was right, and how the lost ones were lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis.report.summary import Summary
from analysis.report.words import Sentence
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import LOSSES, MUST_BE_ZERO

NO_PROCESSING = "latencies contain no processing (broker.service is none)"
# How a delivery can be lost though routing is correct.
_LOST = {
    "missed_fault": "during faults",
    "missed_unpublished": "because the publisher's broker was down",
    "missed_refused": "because the publisher's broker had no room",
    "missed_dropped": "to full queues",
    "missed_transient": "while subscriptions were on their way",
}


@dataclass(frozen=True)
class Judged:
    """What the oracle counted in all runs together: sentence and card are made from it."""

    runs: int
    deliveries: int
    share: float  # of the events, those that the oracle judged
    wrong: Mapping[str, int]  # counts that must be 0 and are not
    lost: Mapping[str, int]  # by cause, those that are not 0

    @classmethod
    def of(cls, summary: Summary) -> Judged:
        counts = {name: int(summary.runs[name].sum()) for name in ("deliveries", "events", *MUST_BE_ZERO, *LOSSES)}
        unjudged = float(((1.0 - summary.runs["judged_share"]) * summary.runs["events"]).sum())
        wrong, lost = ({name: counts[name] for name in names if counts[name]} for names in (MUST_BE_ZERO, LOSSES))
        return cls(len(summary.runs), counts["deliveries"], 1.0 - unjudged / max(counts["events"], 1), wrong, lost)

    @property
    def sample(self) -> str:
        """Empty if all events were judged."""
        return "" if self.share == 1.0 else f"those of {100 * self.share:.3g} % of the events"

    @property
    def made(self) -> str:
        return f"{self.deliveries:,} deliveries{f' of {self.runs:,} runs' if self.runs > 1 else ''}"

    @property
    def losses(self) -> str:
        """How many deliveries were lost, by cause; empty if none: 2,946 lost during faults, 12 to full queues."""
        words = ", ".join(f"{self.lost[name]:,} {how}" for name, how in _LOST.items() if name in self.lost)
        return words.replace(" ", " lost ", 1)


def without_processing(summary: Summary) -> bool:
    """Whether serving a message takes no time, in every setting."""
    return not any(summary.mean(point, "utilisation_max") > 0 for point in summary.order)


def about_truth(summary: Summary) -> Sentence:
    found = Judged.of(summary)
    return Sentence(_in_words(found), (found,))


def _in_words(found: Judged) -> str:
    made = found.made
    if found.wrong:
        return f"Do not trust this: of {made}, {sum(found.wrong.values()):,} were missing, doubled or wrong."
    if found.share == 0.0:
        return f"None of {made} was checked: run.sample_oracle chose no event."
    sentence = "Nothing was delivered"
    if found.deliveries:
        checked = f"Of {made} {found.sample}, a sample," if found.sample else f"All {made}"
        sentence = f"{checked} were checked one by one: none is wrong or doubled"
    if not found.losses:
        return f"{sentence}, and nobody who asked for an event went without it."
    after = "; once subscriptions had spread and repairs were done, none was missed" if found.deliveries else ""
    return f"{sentence}{after}; {found.losses}."


def truth_card(summary: Summary) -> dict[str, str]:
    """What the oracle found, and in which share of the events; green only if nothing at all was lost."""
    found = Judged.of(summary)
    if found.share == 0.0:
        return _card("Not checked", "run.sample_oracle chose no event for the oracle", "warn")
    which = f", {found.sample} (run.sample_oracle)," if found.sample else ""
    checked = f"{found.made}{which} checked against the oracle: "
    if found.wrong:
        titles = ", ".join(CATALOGUE[name].title for name in found.wrong)
        return _card(f"{sum(found.wrong.values()):,} wrong", checked + titles, "bad")
    if found.losses:
        settled = "after repair" if "missed_fault" in found.lost else "once the network had settled"
        text = f"{checked}none doubled or spurious, none missed {settled}; {found.losses}"
        return _card(f"{sum(found.lost.values()):,} lost", text, "warn")
    if not found.deliveries:
        return _card("No delivery", "and nobody who asked for an event went without it", "warn")
    return _card("All correct", f"{checked}none missed, doubled or spurious", "good")


def _card(figure: str, text: str, tone: str) -> dict[str, str]:
    return {"figure": figure, "text": text, "tone": tone}
