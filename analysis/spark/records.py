"""The table `runs` of the queries: a row per run, what its record and its settings say.

Rows of other tables are judged by it: which control messages were sent while events were published, which requests are
older than time 0. Traces of earlier versions did not record this; there it is counted from their tables.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.spark.runs import Run
from broker.trace.schema import BY_TIME, LOSSES, MUST_BE_ZERO, OF_FAILOVER, SCHEMAS

# Of the trace's table `run`, in its types.
_RECORDED = (
    "brokers", "events", "attributes", "simple_entries", "finished", "wall_seconds", "due", "due_delivered",
    "unavoidable", "links", "spare_links", *BY_TIME, *OF_FAILOVER,
    "judged_share", *MUST_BE_ZERO, *LOSSES,
    "first_published", "last_published", "preloads", "preload_messages",
)  # fmt: skip
SCHEMA = pa.schema(
    [
        pa.field("run", pa.string()),
        *(SCHEMAS["run"].field(name).with_nullable(True) for name in _RECORDED),
        pa.field("k", pa.int64()),  # of matching.k; null: all that match
        pa.field("is_ranked", pa.bool_()),  # the k best of the whole network are served
        pa.field("takes_time", pa.bool_()),  # messages can take time or wait
        pa.field("drawn", pa.bool_()),  # the report shows its brokers, links and misses
    ]
)


def parameter(run: Run, section: str, name: str) -> Any:
    """A setting of a run's experiment; None if it is not set."""
    return (run.parameters.get(section) or {}).get(name)


def records(runs: Collection[Run], drawn: Collection[str]) -> pa.Table:
    """`drawn`: the names of the runs that the report draws."""
    return pa.Table.from_pylist([_row(run, run.name in drawn) for run in runs], SCHEMA)


def is_older(run: Run) -> bool:
    """Was this trace written by a version that did not record what is counted here?"""
    return run.record.get("preloads") is None


def _row(run: Run, drawn: bool) -> dict[str, Any]:
    record = {**run.record, **(_counted(run) if is_older(run) else {})}
    judged = record.get("judged_share")
    return {
        "run": run.name,
        **{name: record.get(name) for name in _RECORDED},
        "judged_share": 1.0 if judged is None else judged,  # earlier versions judged everything
        "k": parameter(run, "matching", "k"),
        "is_ranked": run.has("ranked"),
        "takes_time": _takes_time(run),
        "drawn": drawn,
    }


def _takes_time(run: Run) -> bool:
    service = parameter(run, "broker", "service") or {}
    limited = parameter(run, "links", "bandwidth") is not None
    return (service.get("kind", "none") != "none" or limited) and run.record["finished"] > 0


def _counted(run: Run) -> dict[str, Any]:
    """What this version records (sim/experiment/runner.py), from the tables of an earlier one."""
    return times_and_preloads(run.read("publications"), run.read("operations"))


def times_and_preloads(publications: pa.Table, operations: pa.Table) -> dict[str, Any]:
    """When events were published, and what existed before time 0; of messages then the trace has only the number."""
    published = pc.min_max(publications.column("published")).as_py()
    preloaded = operations.filter(pc.equal(operations.column("kind").cast(pa.string()), "preload"))
    return {
        "first_published": published["min"],
        "last_published": published["max"],
        "preloads": preloaded.num_rows,
        "preload_messages": pc.sum(preloaded.column("messages")).as_py() or 0,
    }
