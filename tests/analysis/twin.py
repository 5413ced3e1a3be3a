"""The SQL of all metrics in DuckDB: the slow setting up of Spark is not needed to compare numbers with a pencil's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pandas as pd
import pyarrow as pa

from analysis.spark.metrics import all_metrics
from analysis.spark.records import records
from analysis.spark.runs import Run
from broker.trace.schema import ALL
from sim.bench.spark_peers import connected, define


class Twin:
    """Some runs, all of them drawn."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self._connection = connected(1, "1GB")
        for name in ALL:
            self._connection.register(name, pa.concat_tables([_rows(run, name) for run in runs]))
        self._connection.register("runs", records(runs, {run.name for run in runs}))
        define(self._connection)

    @cached_property
    def values(self) -> pd.DataFrame:
        """A row per run, a column per metric."""
        found: pd.DataFrame = self._connection.execute(all_metrics().sql).df()
        return found.set_index("run")

    def __getitem__(self, metric: str) -> float | None:
        """The value of the first run; None if it is unknown."""
        value = float(self.values[metric][self.runs[0].name])
        return None if value != value else value

    def frame(self, query: str, *by: str) -> pd.DataFrame:
        found: pd.DataFrame = self._connection.execute(f"from {query}").df()
        return found.sort_values(list(by), ignore_index=True)

    def rows(self, query: str, *by: str) -> list[tuple[float, ...]]:
        """Row by row, without the run."""
        return list(self.frame(query, *by).drop(columns="run").itertuples(index=False, name=None))


def _rows(run: Run, table: str) -> pa.Table:
    """With every column of the schema, as Spark reads it; dictionaries as text."""
    found = run.read(table)
    columns = {
        column.name: found.column(column.name)
        if column.name in found.column_names
        else pa.nulls(len(found), column.type)
        for column in ALL[table]
    }
    texts = {name: c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for name, c in columns.items()}
    return pa.table({**texts, "run": pa.repeat(run.name, len(found))})
