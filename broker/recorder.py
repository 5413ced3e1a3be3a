"""Collects the rows of a run's trace while it happens, column by column at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from broker import trace


def _recorded(table: str) -> list[str]:
    """The columns that a row gives; buckets are worked out later."""
    return [column for column in trace.SCHEMAS[table].names if (table, column) not in trace.BUCKETED]


SERVED = _recorded("publications").index("served")


class Recorder:
    """One list of rows per trace table, in schema order."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in trace.SCHEMAS}
        self.parents: list[int] = []  # per publication row: the row of the message it was forwarded from
        self.steps = 0

    def step(self) -> int:
        """The number of the message that is processed now, in the one order of the whole run."""
        self.steps += 1
        return self.steps - 1

    def tables(self) -> dict[str, pa.Table]:
        """Everything but the run record, as Arrow tables."""
        self._mark_useful()
        tables = {}
        for name, rows in self.rows.items():
            if name == "run":
                continue
            names = _recorded(name)
            columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
            tables[name] = trace.to_table(name, dict(zip(names, columns, strict=True)))
        return tables

    def _mark_useful(self) -> None:
        """Fill the last column of `publications`: did the hop, or one that followed from it, deliver?

        A message is processed after the one that caused it, so one pass backwards sees children first.
        """
        rows = self.rows["publications"]
        useful = np.array([row[SERVED] > 0 for row in rows], dtype=bool)
        for row in range(len(rows) - 1, -1, -1):
            parent = self.parents[row]
            if parent >= 0 and useful[row]:
                useful[parent] = True
        self.rows["publications"] = [(*row[:-1], bool(flag)) for row, flag in zip(rows, useful, strict=True)]
