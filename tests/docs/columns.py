"""Writes docs/results.md: the columns of every trace table and of every file of results, and what they mean.

What columns of a trace mean is said once, in comments of broker/trace/schema.py: after a column, or in the lines above
it. `python -m tests.docs.columns > docs/results.md` writes the page; a test compares.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from analysis.aggregate import RECORD_COLUMNS
from analysis.report.summary import FILES
from analysis.spark.metrics import CATALOGUE, OURS
from analysis.spark.runs import plain
from broker.trace.schema import ALL, OPTIONAL, SPECIAL

HEAD = """# Traces, results and metrics: every column

`python -m tests.docs.columns` writes this page from what the program declares; a test compares. Runs are in
`OUT/runs/run=ID/`, a Parquet file per table; results of all runs together are in `OUT/results/`. In Python:

```python
import analysis, sim

results = sim.run("demo", {"workload.subscriptions": 100, "workload.events": 20, "overlay.brokers": 10, "seeds": [1]})
deliveries = analysis.trace(results, "deliveries")  # Spark, lazy: a row per delivery of every run
metrics = analysis.metrics(results)  # a row per run, a column per metric
metrics.join(deliveries, "run").where("recall < 1").groupBy("run").avg("latency").show()
```

A metric of your own is a function from these tables to a lazy DataFrame of `run` and the value. It is in every result
of the process that registers it, or as a [plug-in](plugins.md) in those of the experiments that name it:

    @analysis.register_metric(title="far deliveries", unit="share", definition="Deliveries after more than three hops.",
                              formula="count(hops > 3) ÷ count", reads=["deliveries"])
    def far(trace):
        return trace("deliveries").groupBy("run").agg(F.avg((F.col("hops") > 3).cast("double")).alias("far"))

## Traces: `OUT/runs/run=ID/`

Spark adds the column `run`, the run's name. Times are milliseconds of simulated time.
"""
POINT = {
    "point": "the values of the swept keys, as JSON",
    "strategy": "routing.strategy",
    "mode": "routing.mode",
    "method": "covering.method",
    "epsilon": "covering.epsilon; empty if the search may miss covers for another reason",
    "overlay": "overlay.file or overlay.kind",
}
INTERVAL = {
    "n": "seeds for which it is known",
    "mean": "over seeds",
    "sd": "standard deviation over seeds",
    "low": "of the 95 % interval of the mean (Student's t)",
    "high": "its other end",
}
RUN = {"run": "name of the run"}
BROKER = {**RUN, "broker": "number of the broker"}
# By frame of a Summary: what a row is, and the meaning of its columns.
RESULTS: dict[str, tuple[str, dict[str, str]]] = {
    "runs": (
        "A row per run: what it was, then a column for each metric (below).",
        {**RUN, "point": POINT["point"], "settings": "the values of all swept keys in force, as JSON", **POINT},
    ),
    "points": (
        "A row per point and metric.",
        {**POINT, "metric": "its name", **INTERVAL, "min": "over seeds", "max": "over seeds", "unit": "of the metric"},
    ),
    "differences": (
        "A row per point, factor and metric: the difference to a point that differs in this alone, seed by seed.",
        {**POINT, "factor": "the swept key, or keys, in which the two differ", "baseline": "the point compared with",
         "metric": "its name", **INTERVAL, "effect": "mean ÷ standard deviation of the differences",
         "differs": "whether the interval leaves out 0; empty for one seed", "unit": "of the metric"},
    ),
    "brokers": (
        "A row per broker, for the first seed of each point.",
        {**BROKER, "processed": "messages, those of its clients included", "entries": "of its neighbours, at the end"},
    ),
    "links": (
        "A row per link that messages crossed, both directions together, for the first seed of each point.",
        {**BROKER, "neighbour": "the other end, of the larger number", "control": "control messages",
         "events": "event messages", "needless": "of these, towards brokers behind which nothing matched"},
    ),
    "misses": (
        "The subscriptions whose missed covers cost most, for the first seed of each point.",
        {**RUN, "subscription": "its number", "first_broker": "where a cover was missed first",
         "links": "over which it was sent needlessly", "messages": "needless ones, unsubscriptions included",
         "entries": "needless ones that are left at the end", "rank": "1 cost most"},
    ),
    "times": (
        "A row per broker and part of a run (40 of equal length) in which something happened, for the first seed of "
        "each point in which messages take time.",
        {**BROKER, "start": "ms", "width": "ms", "messages": "whose service began then", "events": "of these, events",
         "waited": "ms that these messages had waited", "queued": "ms that messages waited within this part, added up",
         "busy": "ms that the broker served within this part"},
    ),
}  # fmt: skip

SCHEMA = Path(__file__).parents[2] / "broker" / "trace" / "schema.py"
_TABLE = re.compile(r'    "(\w+)": _schema\($')
_COLUMN = re.compile(r"        (?:(\w+)|\*\*\{\w+\.COLUMN)\b.*?,(?:  # (.*))?$")
_NOTE = re.compile(r"(    |        )# (.*)")


def comments() -> dict[tuple[str, str], str]:
    """What the schema says of each table (its column is empty) and of each column."""
    said: dict[tuple[str, str], str] = {}
    table, above = "", list[str]()
    for line in SCHEMA.read_text(encoding="utf-8").splitlines():
        if note := _NOTE.fullmatch(line):
            above.append(note[2])
            continue
        if begin := _TABLE.fullmatch(line):
            table = begin[1]
            said[table, ""] = " ".join(above)
        elif table and (column := _COLUMN.fullmatch(line)):
            said[table, column[1]] = " ".join([*above, column[2] or ""]).strip()
        elif line == "    ),":
            table = ""
        above = []
    return said


def page() -> str:
    said = comments()
    lines = [HEAD]
    for name, schema in ALL.items():
        lines += [f"### {name}", "", said[name, ""], "", "| column | type | meaning |", "|---|---|---|"]
        if name in SPECIAL:
            lines[-3:-3] = ["Not every run has this table.", ""]
        for column in schema:
            text = said[name, column.name]
            notes = ["may be null"] * column.nullable + ["not in traces of earlier versions"] * (
                (name, column.name) in OPTIONAL
            )
            lines.append(_row(column.name, str(plain(column.type)), text + f" ({', '.join(notes)})" * bool(notes)))
        lines.append("")
    lines += [
        "## Results: `OUT/results/`",
        "",
        "Each as `.parquet` and `.csv`; `metrics.csv` has the metrics below, and yours.",
        "",
    ]
    of_record = {name: said["run", name] or name.replace("_", " ") for name in RECORD_COLUMNS}
    for frame, file in FILES.items():
        about, columns = RESULTS[frame]
        if frame == "runs":
            columns = {**columns, **of_record}
        lines += [f"### {file}", "", about, "", "| column | meaning |", "|---|---|"]
        lines += [_row(column, meaning) for column, meaning in columns.items()]
        lines.append("")
    lines += ["## Metrics", "", "`coverlay list metrics` has them too.", ""]
    lines += ["| metric | unit | definition | formula |", "|---|---|---|---|"]
    for name in sorted(OURS):
        its = CATALOGUE[name]
        lines.append(_row(name, its.unit, its.definition, its.formula))
    return "\n".join(lines) + "\n"


def _row(name: str, *cells: str) -> str:
    return "| " + " | ".join([f"`{name}`", *(cell.replace("|", "\\|") for cell in cells)]) + " |"


if __name__ == "__main__":
    sys.stdout.write(page())
