"""The page's cards: the figures one would quote, and what the oracle found."""

from __future__ import annotations

from analysis.report.numbers import number_text
from analysis.report.sentences import judged_share, loss_words
from analysis.report.summary import Summary, may_miss, point_title
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import LOSSES, MUST_BE_ZERO


def cards(summary: Summary) -> list[dict[str, str]]:
    found = []
    saving = summary.means("reduction", [point for point in summary.order if _saves(summary, point)])
    if saving:
        share, point = max((share, point) for point, share in saving.items())
        alike = len(saving) == len(summary.order) > 1 and min(saving.values()) == share
        where = "in every setting" if alike else f"at best ({point_title(summary, point)})"
        text = f"fewer table entries than simple routing, {where}"
        found.append({"figure": number_text(share, "share"), "text": text, "tone": ""})
    rough = [point for point in summary.order if may_miss(summary.labels(point))]
    recalls = summary.means("recall", rough)
    if recalls:
        recall, point = min((recall, point) for point, recall in recalls.items())
        where = "" if len(recalls) == len(rough) else f" where it is known, in {len(recalls)} of {len(rough)} settings"
        text = f"of the covers found, at worst{where} ({point_title(summary, point)})"
        found.append({"figure": number_text(recall, "share"), "text": text, "tone": ""})
    if latencies := summary.means("latency_p95").values():
        text = "within which 95 % of deliveries arrive, in the slowest setting"
        found.append({"figure": f"{number_text(max(latencies), 'ms')} ms", "text": text, "tone": ""})
    return [*found, truth_card(summary)]


def truth_card(summary: Summary) -> dict[str, str]:
    """What the oracle found, and what that covers: green only where nothing at all was lost."""
    wrong = int(summary.runs[list(MUST_BE_ZERO)].sum().sum())
    share = judged_share(summary)
    if share == 0.0:
        return {"figure": "Not checked", "text": "run.sample_oracle chose no event for the oracle", "tone": "warn"}
    which = "" if share == 1.0 else f", those of {100 * share:.3g} % of the events (run.sample_oracle),"
    checked = f"{int(summary.runs['deliveries'].sum()):,} deliveries{which} checked against the oracle: "
    if wrong:
        titles = [CATALOGUE[name].title for name in MUST_BE_ZERO if summary.runs[name].sum() > 0]
        return {"figure": f"{wrong:,} wrong", "text": checked + ", ".join(titles), "tone": "bad"}
    losses = loss_words(summary)
    if losses:
        lost = int(summary.runs[list(LOSSES)].sum().sum())
        settled = "after repair" if summary.runs["missed_fault"].sum() > 0 else "once the network had settled"
        text = f"{checked}none doubled or spurious, none missed {settled}; {losses}"
        return {"figure": f"{lost:,} lost", "text": text, "tone": "warn"}
    if not summary.runs["deliveries"].sum():
        return {"figure": "No delivery", "text": "and nobody who asked for an event went without it", "tone": "warn"}
    return {"figure": "All correct", "text": f"{checked}none missed, doubled or spurious", "tone": "good"}


def _saves(summary: Summary, point: str) -> bool:
    """Simple routing is what is compared with; that flooding keeps no tables at all is no achievement."""
    return summary.labels(point)["strategy"] not in {"simple", "flooding"}
