"""Collects the rows of a run's trace while it happens, in columns and in bounded memory.

Brokers append tuples to `rows[table]`. Most rows belong to event messages: these are packed at once, and whom they
served stays in the arrays that matchers return. Every CHECK_STEPS messages, tables with more than BATCH_ROWS rows are
turned into an Arrow batch: a tuple of Python numbers takes some 400 bytes, its row in a batch 60. Beyond SPILL_BYTES,
all batches are moved to unnamed temporary files, which the finished tables map into memory: the system can drop such
pages and read them again, so memory does not grow with the run.
"""

from __future__ import annotations

import mmap
import struct
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from broker import trace
from broker.trace.disk import CURE, writing

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = Sequence[tuple[Any, ...]]

BATCH_ROWS = 1 << 16  # large enough to vectorise, a few MB as tuples
CHECK_STEPS = 1 << 12  # so rarely that looking at the lengths costs nothing
SPILL_BYTES = 256 << 20
_SPENT = ("service", "on_covering", "on_tables", "on_matching")


class Recorder:
    """One list of fresh rows per trace table, in schema order without buckets; older rows are in columns."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in trace.ALL}
        self._columns = {name: _Columns(name) for name in trace.ALL}
        self._served: list[tuple[Ints, Floats, Ints]] = []  # by event message: subscriptions, scores, ranks
        self._delivered: list[bytes] = []  # these messages
        self._deliveries = 0  # subscriptions that they served
        self._publications: list[bytes] = []
        self._parents: list[NDArray[np.int64]] = []  # of the publications in columns
        self.next_publication = 0  # the number that the next event message gets
        self.steps = 0
        self._followed: list[tuple[int, int, int]] = []  # event message; how many it served and was sent to later
        # Called with subscriptions, scores, ranks, then event, broker, time, hops and latency.
        self.on_delivery: Callable[..., None] | None = None
        self.cut_off: list[int] = []  # event messages whose service a crash ended: nothing was sent or served

    def step(self) -> int:
        """Number the message that is processed now; there is one order for the whole run."""
        self.steps += 1
        if not self.steps % CHECK_STEPS:
            self._compact(BATCH_ROWS)
        return self.steps - 1

    def publication(self, parent: int, *row: Any) -> int:
        """Record an event message, all but `useful`; `parent` is the one it was forwarded from, or −1."""
        self._publications.append(_PUBLICATION.pack(parent, *row))
        self.next_publication += 1
        return self.next_publication - 1

    def delivered(self, ids: Ints, scores: Floats, *message: Any, ranks: Ints | None = None) -> None:
        """Record whom a message served, best first; `message`: event, broker, time, hops and latency."""
        self._served.append((ids, scores, np.arange(1, len(ids) + 1) if ranks is None else ranks))
        self._delivered.append(_DELIVERED.pack(len(ids), *message))
        self._deliveries += len(ids)
        if self.on_delivery is not None:
            self.on_delivery(self._served[-1], *message)

    def awarded(self, message: tuple[Any, ...], winners: list[tuple[int, tuple[float, int]]]) -> None:
        """Record deliveries whose ranks are those of the whole network; `winners`: rank, −score and subscription."""
        ranks, keys = zip(*winners, strict=True)
        ids, scores = [id for _, id in keys], [-key for key, _ in keys]
        self.delivered(np.array(ids), np.array(scores), *message, ranks=np.array(ranks))

    def follow_up(self, row: int, served: int, forwarded: int) -> None:
        """Record that an event message served, or was sent on, after its own service."""
        if served or forwarded:
            self._followed.append((row, served, forwarded))

    def tables(self, last: Mapping[str, Rows] = MappingProxyType({})) -> dict[str, pa.Table]:
        """Everything but the run record, as Arrow tables that end in the `last` rows, which are not recorded."""
        self._compact(0)
        tables = {name: columns.table(last.get(name, ())) for name, columns in self._columns.items() if name != "run"}
        for name in ("ranked", "versions"):
            if not tables[name].num_rows:
                del tables[name]
        if self._followed:
            tables["publications"] = _followed_up(tables["publications"], self._followed)
        if self.cut_off:
            tables.update(_undone(tables["publications"], tables["deliveries"], self.cut_off))
        crashes = tables["faults"].filter(pc.equal(tables["faults"].column("kind").cast(pa.string()), trace.CRASH))
        for name in ("control", "publications", "ranked") if crashes.num_rows else ():
            if name in tables:
                tables[name] = _ended(tables[name], crashes)
        publications = tables["publications"]
        tables["publications"] = trace.with_column(publications, "useful", self._useful(publications))
        return tables

    def _compact(self, more_than: int) -> None:
        for name, rows in self.rows.items():
            if len(rows) > more_than:
                self._columns[name].add(rows)
                rows.clear()  # the same list: brokers hold on to it
        if len(self._publications) > more_than:
            hops = _PUBLICATION.columns(self._publications)
            self._parents.append(hops.pop("parent"))
            self._columns["publications"].add_columns({**hops, "useful": hops["served"] > 0})
            self._publications.clear()
        if self._deliveries > more_than:
            told = _DELIVERED.columns(self._delivered)
            counts, served = told.pop("count"), (np.concatenate(parts) for parts in zip(*self._served, strict=True))
            repeated = {name: np.repeat(column, counts) for name, column in told.items()}
            named = zip(("subscription", "score", "rank"), served, strict=True)
            self._columns["deliveries"].add_columns({**repeated, **dict(named)})
            self._served.clear()
            self._delivered.clear()
            self._deliveries = 0
        if sum(columns.nbytes for columns in self._columns.values()) > SPILL_BYTES:
            for columns in self._columns.values():
                columns.spill()

    def _useful(self, publications: pa.Table) -> np.ndarray[Any, Any]:
        """Did the hop, or one that followed from it, deliver? Computed from the last hops back to the first."""
        hop, parents = publications.column("hop").to_numpy(), np.concatenate([np.empty(0, np.int64), *self._parents])
        useful: np.ndarray[Any, Any] = publications.column("served").to_numpy() > 0
        order = np.argsort(hop, kind="stable")
        starts = np.searchsorted(hop[order], np.arange(1, hop.max(initial=0) + 2))
        for first, last in zip(starts[-2::-1], starts[:0:-1], strict=True):
            rows = order[first:last]
            useful[parents[rows[useful[rows]]]] = True
        return useful


def _followed_up(publications: pa.Table, later: list[tuple[int, int, int]]) -> pa.Table:
    """Add to event messages what they led to after their own service."""
    rows, *added = (np.array(column) for column in zip(*later, strict=True))
    for name, more in zip(("served", "forwarded"), added, strict=True):
        values = publications.column(name).to_numpy().copy()
        np.add.at(values, rows, more)
        publications = trace.with_column(publications, name, values)
    return publications


def _undone(publications: pa.Table, deliveries: pa.Table, cut_off: list[int]) -> dict[str, pa.Table]:
    """Rows are written when a service begins; take back what a crash before its end undid."""
    for name in ("served", "forwarded"):
        values = publications.column(name).to_numpy().copy()
        values[cut_off] = 0
        publications = trace.with_column(publications, name, values)
    event, broker = (publications.column(name).to_numpy()[cut_off] for name in ("event", "target"))
    undone = set(zip(event.tolist(), broker.tolist(), strict=True))
    pairs = zip(deliveries.column("event").to_pylist(), deliveries.column("broker").to_pylist(), strict=True)
    kept = pa.array([pair not in undone for pair in pairs], pa.bool_())
    return {"publications": publications, "deliveries": deliveries.filter(kept)}


def _ended(messages: pa.Table, crashes: pa.Table) -> pa.Table:
    """Shorten services that a crash ended; the parts they were spent on shrink in proportion."""
    target, time, service = (messages.column(name).to_numpy() for name in ("target", "time", "service"))
    lasted = service.copy()
    for broker, when in zip(crashes.column("broker").to_pylist(), crashes.column("time").to_pylist(), strict=True):
        rows = (target == broker) & (time <= when) & (time + lasted > when)
        lasted[rows] = when - time[rows]
    share = np.divide(lasted, service, out=np.ones(len(service)), where=service > 0)
    for name in _SPENT:
        if name in messages.column_names:
            values = lasted if name == "service" else messages.column(name).to_numpy() * share
            messages = trace.with_column(messages, name, values)
    return messages


class _Packed:
    """Rows of numbers as bytes: made as quickly as tuples, and many become an array in one step."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._kind = np.dtype(list(fields.items()))
        codes = {"int64": "q", "int32": "i", "float64": "d"}
        self.pack = struct.Struct("=" + "".join(codes[np.dtype(kind).name] for kind in fields.values())).pack

    def columns(self, rows: list[bytes]) -> dict[str, NDArray[Any]]:
        together = np.frombuffer(b"".join(rows), self._kind)
        return {name: np.ascontiguousarray(together[name]) for name in self._kind.names or ()}


def _types(table: str, columns: Iterable[str]) -> dict[str, Any]:
    return {name: trace.ALL[table].field(name).type.to_pandas_dtype() for name in columns}


def _written(table: str) -> list[str]:
    """The columns that are recorded, in order; buckets are computed from them."""
    return [column for column in trace.ALL[table].names if (table, column) not in trace.BUCKETED]


_PUBLICATION = _Packed({"parent": np.int64, **_types("publications", _written("publications")[:-1])})  # no `useful`
_DELIVERED = _Packed({"count": np.int64, **_types("deliveries", ("event", "broker", "time", "hops", "latency"))})


class _Columns:
    """The older rows of one table: batches in memory, and before them batches in a file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._recorded = _written(name)
        self._batches: list[pa.RecordBatch] = []
        self.nbytes = 0
        self._file: IO[bytes] | None = None
        self._writer: pa.RecordBatchStreamWriter | None = None
        self._mapped: list[pa.RecordBatch] = []  # batches of files that are complete

    def add(self, rows: Rows) -> None:
        self.add_columns(self._by_column(rows))

    def add_columns(self, columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> None:
        for batch in trace.to_table(self._name, columns).to_batches():
            self._batches.append(batch)
            self.nbytes += batch.nbytes

    def _by_column(self, rows: Rows) -> dict[str, Sequence[Any]]:
        return dict(zip(self._recorded, zip(*rows, strict=True), strict=True))

    def spill(self) -> None:
        if not self._batches:
            return
        with writing(f"temporary files in {tempfile.gettempdir()}", f"{CURE}, or set TMPDIR to another place"):
            if self._writer is None:
                # Without a name: it disappears with the process, however that ends.
                self._file = tempfile.TemporaryFile()  # noqa: SIM115
                self._writer = pa.ipc.new_stream(self._file, trace.ALL[self._name])
            for batch in self._batches:
                self._writer.write_batch(batch)
        self._batches, self.nbytes = [], 0

    def table(self, last: Rows = ()) -> pa.Table:
        """All rows so far, and the `last` ones."""
        batches = [*self._spilled(), *self._batches]
        if last:
            batches += trace.to_table(self._name, self._by_column(last)).to_batches()
        # Labels are numbered per batch; one numbering for all is what files and readers expect.
        return pa.Table.from_batches(batches, trace.ALL[self._name]).unify_dictionaries()

    def _spilled(self) -> list[pa.RecordBatch]:
        if self._writer is not None and self._file is not None:
            self._writer.close()
            self._file.flush()
            mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            self._mapped += pa.ipc.open_stream(pa.py_buffer(mapped))
            self._file = self._writer = None  # what follows goes into another file
        return self._mapped
