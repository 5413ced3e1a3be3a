"""One table asked alone, as brokers ask all of theirs."""

from __future__ import annotations

import numpy as np

from broker import link_rows
from broker.tables import LinkTable, Looked
from routing.filter import Floats


def looked_at(table: LinkTable, event: Floats) -> tuple[bool, Looked]:
    """Does any entry match? And the work of finding out."""
    table.bring_up_to_date()
    rows, wanted = link_rows.TreeRows(), np.empty(1, np.int64)
    link_rows.set_tables(rows, np.zeros(1, np.int64), np.array([table.address]), wanted)
    found, *looked, _ = link_rows.ask_all(rows.address, -1, event)
    return found == 1, tuple(looked)


def matches(table: LinkTable, event: Floats) -> bool:
    return looked_at(table, event)[0]
