"""The trace of a run: what each table holds, how it is written, and its hash.

One folder per run, `run=<run id>/`, holds one Parquet file per table below. Spark reads a whole sweep as
`<out>/runs/run=*/<table>.parquet` with the folder as basePath, so every row carries its run.

The folder appears under its name only when it is complete (written beside it, then renamed), so a reader
never sees half a run. The hash covers every table but `run` itself, value by value, so it depends neither
on the Parquet version nor on how long the run took.

Two tables can be sampled (see `broker/trace/sampling.py`): what was left out is added up in `decisions_rest` and
`deliveries_rest`, so that rows and rest together are always everything that happened.

Pages carry checksums and the run record a digest of every file (see `broker/trace/digests.py`), so that a flipped bit
is found and not read as another value.

Times are milliseconds of simulated time. Broker −1 is a client attached to the other broker.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker.trace import digests
from broker.trace.buckets import bucket_of
from broker.trace.disk import replaced_folder

CLIENT = -1  # in place of a neighbour: the message came from, or the entry belongs to, a local client
NOBODY = -1  # in place of a subscription, broker or event: there is none

# Kinds of faults: what fails, what repairs it, when all brokers agree again, and how a copy of an event is lost.
CRASH, CUT = FAILURES = ("crash", "cut")
RESTART, HEAL = REPAIRS = ("restart", "heal")
CONVERGED = "converged"
# Of fail-over: a failure is known, what was down is used again, events follow another version of a tree.
DETECTED, REJOINED, SWITCHED = "detected", "rejoined", "switched"
QUEUE_FULL, LINK_DOWN, CRASHED, PUBLISHER_DOWN = LOST = ("queue-full", "link-down", "crashed", "publisher-down")

_label = pa.dictionary(pa.int8(), pa.string())


def _schema(**fields: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=name in _NULLABLE) for name, kind in fields.items()])


# Null, in this order: when nobody asked what exact covering would have said; where tables are older than the trace;
# until the files are written; while fewer than k are known; where no event was published; where a version of a tree
# never served, or was never retired.
_NULLABLE = {"exact", "strays", digests.COLUMN, "limit", "first_published", "last_published"} | {
    *("serves", "first", "retired"),
}

SCHEMAS: dict[str, pa.Schema] = {
    # Every control message, one row per hop, in the order the brokers processed them.
    "control": _schema(
        step=pa.int64(),  # position in the run's one order of processed messages, both kinds together
        time=pa.float64(),  # when the target began to serve it; its tables change then
        sent=pa.float64(),  # when the source handed it to the link, at the end of a service
        source=pa.int32(),  # broker, or CLIENT where a subscriber speaks to its own broker
        target=pa.int32(),
        # The source whose tree it travels on, −1: the one spanning tree. Fail-over makes versions −2, −3, …, or the
        # source plus once, twice, … the number of brokers; here, the version in which the link's tables began.
        tree=pa.int32(),
        # subscribe, unsubscribe, rerank, advertise, unadvertise; start, summary, differs, done (recovery);
        # switch, retire (fail-over)
        kind=_label,
        subscription=pa.int64(),  # or advertisement; below NOBODY: a merger that a broker invented
        operation=pa.int64(),  # the client request that caused it, directly or through an exposure
        sequence=pa.int64(),  # position on its link, from 0
        hop=pa.int32(),  # 0 at the subscriber's own broker, and in messages of recovery
        waited=pa.float64(),  # time − (sent + latency of the link), at least 0; from a client: time − sent
        service=pa.float64(),  # how long the target served it; what it caused left then, unless a crash ended it
        on_covering=pa.float64(),  # the part of the service spent on searching for covers
    ),
    # Every decision whether to send a subscription over a link.
    "decisions": _schema(
        time=pa.float64(),
        broker=pa.int32(),
        neighbour=pa.int32(),
        tree=pa.int32(),
        subscription=pa.int64(),
        operation=pa.int64(),
        # forwarded | suppressed | exposed (sent, its cover left) | retracted (covered by a later one) |
        # united (beside a suppressed: one more that covers it only together with that witness) |
        # merged (into an invented one) | dormant (nothing advertised behind the link overlaps it)
        outcome=_label,
        witness=pa.int64(),  # the subscription that covers it, or NOBODY
        probes=pa.int64(),  # stored entries or key ranges looked at
        cubes=pa.int64(),  # standard cubes searched (curve methods)
        runs=pa.int64(),  # key ranges after merging neighbouring cubes
        candidates=pa.int64(),  # rows compared inside key ranges; 0 where probes count entries
        bits=pa.int64(),  # of a coordinate on the curve; 0 off the curve
        audited=pa.int64(),  # searches that went on past the stop of an audited ε of the covers, or had none yet
        past_stop=pa.int64(),  # probes that they made there
        volume=pa.float64(),  # fraction of the search region that was searched, 0..1
        capped=pa.bool_(),  # a probe cap or a budget ended the search early
        exact=pa.bool_(),  # would exact covering have found a cover? null when not asked
        at_home=pa.bool_(),  # the subscriber is a client of this broker: the first hop
        pages=pa.int64(),  # of 4 KB that the search for a cover would touch on disk, see covering/stats.py
        round_trips=pa.int64(),  # to another machine that holds the index
        took=pa.float64(),  # time of the search, by the profile; 0 unless broker.service is of kind work
    ),
    # The decisions that sampling left out, added up.
    "decisions_rest": _schema(
        outcome=_label,
        capped=pa.bool_(),
        exact=pa.bool_(),
        at_home=pa.bool_(),
        count=pa.int64(),
        probes=pa.float64(),  # sums; as floats, because emulated searches count by the trillion
        cubes=pa.float64(),
        runs=pa.float64(),
        candidates=pa.float64(),
        bits=pa.float64(),
        audited=pa.float64(),
        past_stop=pa.float64(),
        volume=pa.float64(),
        pages=pa.float64(),
        round_trips=pa.float64(),
        took=pa.float64(),
    ),
    # Routing-table entries per broker and link, sampled over time; `neighbour` CLIENT counts local ones.
    "tables": _schema(
        time=pa.float64(),
        broker=pa.int32(),
        neighbour=pa.int32(),
        entries=pa.int64(),  # that events are compared with
        pruned=pa.int64(),  # known too, but left out because another entry of the same neighbour covers them
        final=pa.bool_(),  # the sample taken when nothing was under way any more
    ),
    # Every event message, one row per hop, in the order the brokers processed them.
    "publications": _schema(
        step=pa.int64(),
        event=pa.int64(),
        time=pa.float64(),  # when the target began to serve it
        sent=pa.float64(),  # at the end of the source's service
        source=pa.int32(),  # CLIENT at the publisher's own broker
        target=pa.int32(),
        hop=pa.int32(),  # 0 at the publisher's own broker
        published=pa.float64(),
        waited=pa.float64(),  # time − (sent + latency of the link), at least 0; at hop 0 time − sent
        waited_bucket=pa.int32(),  # see broker/trace/buckets.py
        served=pa.int32(),  # local subscriptions it was delivered to; 0 if a crash ended its service
        forwarded=pa.int32(),  # neighbours it was sent on to; 0 likewise
        # Work. Of the matcher of the target's own clients: entries compared, and nodes, cells or blocks looked at.
        matcher_entries=pa.int64(),
        matcher_nodes=pa.int64(),
        # Of the neighbours' tables: those that it was compared with (not the empty ones) and entries compared there, as
        # topk/first_matches.py defines it; where tables are ranked (routing.rank), entries and nodes of their matchers.
        tables_asked=pa.int64(),
        sliced=pa.int64(),  # always 0
        compared=pa.int64(),
        blocks=pa.int64(),  # nodes; 0 where tables are not ranked
        service=pa.float64(),  # how long the target served it; copies and deliveries left at time + service
        on_tables=pa.float64(),  # parts of the service: comparing it with the tables of neighbours,
        on_matching=pa.float64(),  # and finding the best of the target's own subscriptions
        useful=pa.bool_(),  # the target, or a broker behind it, delivered it; if not, it was a false-positive forward
    ),
    "deliveries": _schema(
        event=pa.int64(),
        subscription=pa.int64(),
        broker=pa.int32(),
        time=pa.float64(),  # the end of the broker's service
        hops=pa.int32(),
        latency=pa.float64(),
        latency_bucket=pa.int32(),  # see broker/trace/buckets.py
        rank=pa.int32(),  # 1 is best: at this broker, or in the network (matching.scope)
        score=pa.float64(),
    ),
    # The deliveries that sampling left out, added up.
    "deliveries_rest": _schema(
        hops=pa.int32(),
        latency_bucket=pa.int32(),
        count=pa.int64(),
        latency=pa.float64(),  # their sum
    ),
    # One row per client request: when it was made and when its last message had been processed.
    "operations": _schema(
        operation=pa.int64(),
        # what a client asked; before time 0: preload; again after its broker lost its memory: re…; reconnect, restart;
        # a new version of the trees, an old one that is forgotten: switch, retire
        kind=_label,
        subscription=pa.int64(),
        broker=pa.int32(),
        time=pa.float64(),
        finished=pa.float64(),
        lasted_bucket=pa.int32(),  # of finished − time, see broker/trace/buckets.py
        messages=pa.int64(),  # link messages it caused; those of a preload are counted here alone
    ),
    "faults": _schema(
        time=pa.float64(),
        # of FAILURES or REPAIRS, CONVERGED, DETECTED, REJOINED, SWITCHED; for each lost copy of an event, of LOST
        kind=_label,
        broker=pa.int32(),
        neighbour=pa.int32(),
        event=pa.int64(),  # the event that was lost, or NOBODY
    ),
    # The links of the overlay, for pictures.
    "links": _schema(
        broker=pa.int32(),
        neighbour=pa.int32(),
        latency=pa.float64(),
        routed=pa.bool_(),  # False: in the given graph, but in no tree that messages follow
    ),
    "brokers": _schema(
        broker=pa.int32(),
        name=pa.string(),
        x=pa.float64(),
        y=pa.float64(),
    ),
    # One row: what was run, with what, and what the oracle found.
    "run": _schema(
        run_id=pa.string(),
        experiment=pa.string(),
        seed=pa.int64(),
        point=pa.string(),  # JSON object: swept key → value of this run
        parameters=pa.string(),  # JSON: the whole resolved experiment
        inputs=pa.string(),  # JSON object: key of an input file → digest of its content
        may_miss=pa.bool_(),  # the search may overlook covers: because of ε, or of an option that ends it early
        sends_to=pa.string(),  # what the routing strategy and the covering method declare (routing/contract.py)
        searches=pa.bool_(),
        merges=pa.bool_(),
        holds_back=pa.bool_(),
        on_curve=pa.bool_(),  # covering/contract.py
        store=pa.string(),  # of sorted keys, that the search can live in; empty: none
        epsilon_of=pa.string(),  # what its ε is a share of
        cap=pa.int64(),  # probes after which its searches end, whatever their ε; 0: no cap
        charged_as=pa.string(),  # the name under which a profile has the price of its searches; `auto` has several
        versions=pa.string(),  # JSON: package → version
        engine=pa.string(),
        engine_reason=pa.string(),  # why this one
        trace_hash=pa.string(),
        brokers=pa.int64(),
        links=pa.int64(),  # that messages are routed on
        spare_links=pa.int64(),  # of the graph beside them
        geographic=pa.bool_(),  # x and y of the brokers are longitude and latitude in degrees
        subscriptions=pa.int64(),  # made
        active=pa.int64(),  # still subscribed at the end
        events=pa.int64(),
        first_published=pa.float64(),  # when the first and the last event came to their publishers' brokers
        last_published=pa.float64(),
        preloads=pa.int64(),  # subscriptions that existed before time 0; their operations are the first ones
        preload_messages=pa.int64(),  # by which they spread: counted but not traced
        attributes=pa.int64(),  # of an event
        control_messages=pa.int64(),  # over links, client requests not counted
        event_messages=pa.int64(),
        deliveries=pa.int64(),
        simple_entries=pa.int64(),  # that simple routing would keep for its neighbours at the end, in the same trees
        # Of fail-over: failures that were noticed and ms until then, summed; times that events followed other trees, ms
        # from notice to that moment, messages over links for it; heartbeats, which are worked out and not simulated.
        detections=pa.int64(),
        detecting=pa.float64(),
        switchovers=pa.int64(),
        switching=pa.float64(),
        switchover_messages=pa.int64(),
        heartbeats=pa.int64(),
        missed=pa.int64(),  # required deliveries that did not happen: must be 0
        duplicates=pa.int64(),  # must be 0
        spurious=pa.int64(),  # must be 0
        strays=pa.int64(),  # events sent where no table entry matched: must be 0; null: tables older than the trace
        wrong_times=pa.int64(),  # times that are not the sum of links and waits, services that overlap: must be 0
        # must be 0: what is due and not delivered is lost for one of these causes, `missed` included (oracle.py)
        unaccounted=pa.int64(),
        missed_transient=pa.int64(),  # the subscription was still on its way when the event was published
        missed_dropped=pa.int64(),  # a full queue dropped a copy of the event
        missed_fault=pa.int64(),  # under way while something was down or being repaired
        missed_refused=pa.int64(),  # the publisher's own broker had no room for the event
        missed_unpublished=pa.int64(),  # the publisher's own broker was down
        due=pa.int64(),  # deliveries to the k best in force, over all events that clients tried to publish
        due_delivered=pa.int64(),  # of these; due − due_delivered is the sum of all that was missed
        undue=pa.int64(),  # delivered though not due: to another in its place, while requests or repairs spread
        unavoidable=pa.int64(),  # of all that was lost, whatever the cause: flooding over all links loses it too
        due_during=pa.int64(),  # of events published while a broker or link was down: due, delivered, unavoidably lost
        due_delivered_during=pa.int64(),
        unavoidable_during=pa.int64(),
        due_after=pa.int64(),  # of events published when something had been down and all was back: due, delivered
        due_delivered_after=pa.int64(),
        judged_share=pa.float64(),  # share of the events that the oracle judged; its counts above are of these
        finished=pa.float64(),  # simulated time when nothing was under way any more
        wall_seconds=pa.float64(),
        made=pa.string(),  # when it began, UTC: 2026-11-17T03:41:17
        machine=pa.string(),  # where: the processor, cores, system
        file_digests=pa.string(),  # JSON, see broker/trace/digests.py; filled in by `write_run`
    ),
}
# Tables that not every run has: `ranked` where something is ranked, `versions` where fail-over changed a tree,
# `published` from the version on that began it.
SPECIAL: dict[str, pa.Schema] = {
    # Every event that a client tried to publish, in order, also those that its broker never took in.
    "published": _schema(
        event=pa.int64(),
        broker=pa.int32(),  # the publisher's
        time=pa.float64(),
        step=pa.int64(),  # messages that brokers had processed before: those with smaller steps, and no others
    ),
    # Where the k best of the whole network are served: every message about an event, one row per hop, in order.
    "ranked": _schema(
        step=pa.int64(),
        event=pa.int64(),
        time=pa.float64(),  # when the target began to serve it
        sent=pa.float64(),
        source=pa.int32(),  # CLIENT at the publisher's own broker
        target=pa.int32(),
        # query: who matches best behind you? answer: these. award: these have won. A query may bring awards too.
        kind=_label,
        carries=pa.bool_(),  # the event itself; then it is in `publications` too
        results=pa.int32(),  # subscriptions that it names
        limit=pa.float64(),  # of a query: score of the k-th best known so far; null: fewer are known
        bytes=pa.int64(),
        waited=pa.float64(),
        service=pa.float64(),
    ),
    # Where fail-over changed a tree: every link by which a version differs from the one before, in the order in which
    # versions began. The first version of a spanning tree has the links that are `routed`.
    "versions": _schema(
        tree=pa.int32(),  # named as in `control`
        source=pa.int32(),  # whose tree it is; −1: the one spanning tree
        before=pa.int32(),  # the version that it takes over from
        began=pa.float64(),  # its tables begin to be filled
        serves=pa.float64(),  # events that are published from then on follow it; null: never
        first=pa.int64(),  # how many rows of `published` come before the first event that follows it
        retired=pa.float64(),  # no event follows it any more; null: never
        broker=pa.int32(),  # the ends of the link, the smaller one first
        neighbour=pa.int32(),
        joins=pa.bool_(),  # this version has it, and the one before has not; or the other way round
    ),
}
ALL = {**SCHEMAS, **SPECIAL}
# Columns that traces of earlier versions lack.
_SEARCHING = ("candidates", "bits", "audited", "past_stop", "pages", "round_trips", "took")
_WORK = ("matcher_entries", "matcher_nodes", "tables_asked", "sliced", "compared", "blocks")
# Of a run's record.
FACTS = ("sends_to", "searches", "merges", "holds_back", "on_curve", "store", "epsilon_of", "cap", "charged_as")
_RECORDED = (
    *FACTS,
    "inputs",
    "may_miss",
    "geographic",
    "attributes",
    "engine_reason",
    "made",
    "machine",
    "spare_links",
)
_BEFORE = ("first_published", "last_published", "preloads", "preload_messages")
_COUNTED = ("unaccounted", "missed_refused", "missed_unpublished", "due", "due_delivered", "undue", "unavoidable")
BY_TIME = ("due_during", "due_delivered_during", "unavoidable_during", "due_after", "due_delivered_after")
OF_FAILOVER = ("detections", "detecting", "switchovers", "switching", "switchover_messages", "heartbeats")
_JUDGED = ("simple_entries", "strays", "wrong_times", "judged_share", *_COUNTED, *BY_TIME)
_LATER = {
    "run": (digests.COLUMN, *_RECORDED, *_BEFORE, *OF_FAILOVER, *_JUDGED),
    "publications": (*_WORK, "service", "on_tables", "on_matching"),
    "decisions": _SEARCHING,
    "decisions_rest": _SEARCHING,
    "control": ("waited", "service", "on_covering"),
    "tables": ("pruned",),
}
OPTIONAL = {(table, name) for table, names in _LATER.items() for name in names}
# What the oracle counts, in the run record: what must not happen, and what a scenario may cost.
MUST_BE_ZERO = ("missed", "duplicates", "spurious", "strays", "wrong_times", "unaccounted")
LOSSES = ("missed_transient", "missed_dropped", "missed_fault", "missed_refused", "missed_unpublished")

ROW_GROUP = 1 << 20  # rows that are compressed together, and that a reader can skip together
_RISING = {"step", "operation", "sequence", "subscription", "event"}  # whole numbers close to the row before
_SPREAD = {*_RISING, "time", "sent", "finished", "published", "latency", "volume", "x", "y"}  # rarely repeat

MARK = b"coverlay.trace"  # in the metadata of every file: the hash of the trace that it is a part of
CHECKED = b"coverlay.checksums"  # in the metadata of every file whose pages carry checksums
HASHED = tuple(name for name in SCHEMAS if name != "run")
# Columns computed from others of their table: the bucket of one, or of the difference of two.
BUCKETED: dict[tuple[str, str], tuple[str, ...]] = {
    ("deliveries", "latency_bucket"): ("latency",),
    ("publications", "waited_bucket"): ("waited",),
    ("operations", "lasted_bucket"): ("finished", "time"),
}


def to_table(name: str, columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]]) -> pa.Table:
    """An Arrow table with the schema of `name`, from one sequence per column; buckets are computed here."""
    schema = ALL[name]
    arrays = []
    for field in schema:
        sources = BUCKETED.get((name, field.name))
        values: Any = columns[field.name] if sources is None else _buckets([columns[s] for s in sources])
        if pa.types.is_dictionary(field.type) and not isinstance(values, pa.Array | pa.ChunkedArray):
            values = pa.array(values, pa.string())
        if isinstance(values, pa.Array | pa.ChunkedArray):
            arrays.append(values.cast(field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _buckets(sources: list[Any]) -> np.ndarray[Any, Any]:
    first, *others = (np.asarray(source, dtype=np.float64) for source in sources)
    return bucket_of(first - others[0] if others else first)


def empty(name: str) -> pa.Table:
    return ALL[name].empty_table()


def with_column(table: pa.Table, name: str, values: Sequence[Any] | np.ndarray[Any, Any]) -> pa.Table:
    """The table with other values in one column."""
    at = table.schema.get_field_index(name)
    field = table.schema.field(at)
    return table.set_column(at, field, pa.array(values, field.type))


def trace_hash(tables: Mapping[str, pa.Table]) -> str:
    """A digest of every value of every hashed table, in schema order, however the columns are cut into chunks."""
    digest = hashlib.blake2b(digest_size=16)
    for name in (*HASHED, *(name for name in SPECIAL if name in tables)):
        table = tables[name]
        digest.update(f"{name}:{table.num_rows};".encode())
        for field in ALL[name]:
            column = table.column(field.name)
            if pa.types.is_dictionary(field.type):
                column = column.cast(pa.string())
            chunks = column.chunks
            if pa.types.is_string(column.type):
                # Lengths first, then characters: together they say which string is which.
                chunks = (*pc.binary_length(column).chunks, *pc.cast(column, pa.binary()).chunks)
            for chunk in chunks:
                digest.update(_bytes(chunk))
    return digest.hexdigest()


def _bytes(chunk: pa.Array) -> Any:
    """The values of a chunk, one after the other, however Arrow stores them."""
    if pa.types.is_binary(chunk.type):
        return b"".join(chunk.to_pylist())
    if pa.types.is_boolean(chunk.type):
        chunk = chunk.cast(pa.int8()).fill_null(-1)
    return np.ascontiguousarray(chunk.to_numpy(zero_copy_only=False)).data


def write_run(folder: Path, tables: Mapping[str, pa.Table]) -> None:
    """Write a complete run to `folder`, atomically; an earlier run of that name is replaced."""
    mark = tables["run"].column("trace_hash")[0].as_py()
    # Meanwhile the folder has a hidden name, which Spark and run listings ignore.
    with replaced_folder(folder) as unfinished:
        kept: dict[str, Any] = {}
        for name in (*HASHED, *(name for name in SPECIAL if name in tables)):
            path = unfinished / f"{name}.parquet"
            write_table(name, tables[name], path, mark)
            kept[name] = digests.digests_of(path)
        record = tables["run"]
        texts = [json.dumps({**kept, digests.RECORD: digests.record_digest(row)}) for row in record.to_pylist()]
        write_table("run", with_column(record, digests.COLUMN, texts), unfinished / "run.parquet", mark)


def write_table(name: str, table: pa.Table, path: Path, mark: str) -> None:
    """One table as a Parquet file, row group by row group; `mark` says which trace it belongs to."""
    marked = table.replace_schema_metadata({MARK: mark, CHECKED: "pages"})
    pq.write_table(marked, path, row_group_size=ROW_GROUP, **parquet_options(name))


def parquet_options(name: str) -> dict[str, Any]:
    """How the columns of a table are stored."""
    return {
        "write_page_checksum": True,
        "compression": "zstd",
        "use_dictionary": [f.name for f in ALL[name] if f.name not in _SPREAD],
        "column_encoding": dict.fromkeys(_RISING & set(ALL[name].names), "DELTA_BINARY_PACKED"),
    }
