"""From traces to answers: Spark jobs, statistics, the report and the claims ledger.

For notebooks (analysis/notebook.py, loaded on first use, so that `import analysis` stays cheap):

    analysis.load(out), analysis.table(results), analysis.differences(results), analysis.advice(results),
    analysis.compare(results, others)                                                                     → pandas
    analysis.trace(out, table), analysis.metric(out, name), analysis.metrics(out)                         → Spark
    @analysis.register_metric(…): a metric of yours, in every result

Behind them: aggregate.analyze (traces → results), report.summary (the small frames), report.study,
report.page.write_report, report.claims_page.write_claims, and spark.metrics.CATALOGUE, every metric with its formula.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.notebook import advice, compare, differences, load, metric, metrics, table, trace
    from analysis.spark.metrics import register_metric

__all__ = ["advice", "compare", "differences", "load", "metric", "metrics", "register_metric", "table", "trace"]


def __getattr__(name: str) -> Any:
    if name == "register_metric":
        from analysis.spark.metrics import register_metric

        return register_metric
    if name in __all__:
        from analysis import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module 'analysis' has no attribute {name!r}; there are: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
