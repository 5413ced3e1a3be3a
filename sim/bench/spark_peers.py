"""The metrics of the catalogue by DuckDB, what one machine can do: the same SQL on the same files.

DuckDB understands the queries of analysis/spark/metrics as they are, once a few functions have Spark's names; only the
one that draws load over time has others. `coverlay bench spark` checks every number against Spark's before it reports a
time, and the tests compute the metrics of traces written by hand this way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from analysis.spark.frames import SHARED
from analysis.spark.metrics import QUERIES, all_metrics
from analysis.spark.records import records
from analysis.spark.traces import Sweep
from broker.trace.schema import SCHEMAS, SPECIAL

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MACROS = ("rint(x) as round_even(x, 0)", "shiftright(x, bits) as x >> bits", "struct(a, b) as row(a, b)")
_SPARK_ONLY = ("drawn_times",)


def duckdb(sweep: Sweep, cores: int, memory: str) -> pd.DataFrame:
    """Every metric of every run; runs without tables of SPECIAL."""
    connection = connected(cores, memory)
    for name in SCHEMAS:
        files = f"{sweep.base}/run=*/{name}.parquet"
        connection.execute(f"create view {name} as from read_parquet('{files}', hive_types={{'run': varchar}})")
    for name, schema in SPECIAL.items():
        connection.register(name, schema.append(pa.field("run", pa.string())).empty_table())
    connection.register("runs", records(sweep.runs, ()))
    define(connection)
    found: pd.DataFrame = connection.execute(all_metrics().sql).df()
    connection.close()
    return found.set_index("run")


def connected(cores: int, memory: str) -> DuckDBPyConnection:
    import duckdb as library

    connection = library.connect(config={"threads": cores, "memory_limit": memory})
    for macro in _MACROS:
        connection.execute(f"create macro {macro}")
    return connection


def define(connection: DuckDBPyConnection) -> None:
    """Make our queries views of this connection, which has the tables of a trace and `runs`."""
    for name, query in QUERIES.items():
        if name not in _SPARK_ONLY:
            kind = "temp table" if name in SHARED else "view"
            connection.execute(f"create {kind} {name} as {query.sql}")
