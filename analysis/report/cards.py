"""The page's cards: the figures that readers quote, and what the oracle found."""

from __future__ import annotations

from analysis.report.numbers import number_text
from analysis.report.sentences import judged_share, loss_words
from analysis.report.summary import Summary, is_simple, may_miss, point_title
from analysis.spark.metrics import CATALOGUE
from broker.trace.schema import LOSSES, MUST_BE_ZERO


def cards(summary: Summary) -> list[dict[str, str]]:
    found = []
    # Simple routing is what others are compared with, and flooding keeps no tables at all.
    others = [point for point in summary.routed if not is_simple(summary.labels(point))]
    saving = summary.means("reduction", others)
    share, point = max(((share, point) for point, share in saving.items()), default=(0.0, ""))
    if share > 0:
        alike = len(saving) == len(summary.order) > 1 and min(saving.values()) == share
        where = "in every setting" if alike else f"at best ({point_title(summary, point)})"
        found.append(_card(number_text(share, "share"), f"fewer table entries than simple routing, {where}"))
    rough = [point for point in summary.order if may_miss(summary.labels(point))]
    recalls = summary.means("recall", rough)
    if recalls:
        recall, point = min((recall, point) for point, recall in recalls.items())
        where = "" if len(recalls) == len(rough) else f" where it is known, in {len(recalls)} of {len(rough)} settings"
        text = f"of the covers found, at worst{where} ({point_title(summary, point)})"
        found.append(_card(number_text(recall, "share"), text))
    if latencies := summary.means("latency_p95").values():
        text = "within which 95 % of deliveries arrive, in the slowest setting"
        found.append(_card(f"{number_text(max(latencies), 'ms')} ms", text))
    return [*found, truth_card(summary)]


def _card(figure: str, text: str, tone: str = "") -> dict[str, str]:
    return {"figure": figure, "text": text, "tone": tone}


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
