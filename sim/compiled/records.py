"""The records that the compiled engine works on. Messages, links and subscriptions are rows, never objects.

Words used here, besides those of `broker/`:
- a *route* is one direction of a link in one routing tree: what a LinkLedger and a LinkTable belong to;
- a *wire* is one direction of a link, whatever the tree: what a Link of the transport is;
- a *sieve* is a second ledger of a route, at its target, with `routing.mode = "prune"`: like an active, exact ledger it
  decides which entries of the table are rows (PrunedTable). Sieves are routes too, `run.routes` rows after their own;
- a *part* is what a broker does in one tree (broker/tree_part.py);
- a *node* is a subscription on a route: what the ledger knows about it. The nodes that a subscription has on the
  routes leading on from a broker are adjacent, so a message needs only its own node to find them.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa

from broker.trace.schema import ALL, BUCKETED
from broker.work import Prices, SearchPrice
from covering.budget import BudgetIndex
from covering.curve.emulated import EmulatedIndex
from covering.kdtree import KdTreeIndex
from covering.packed import PackedIndex
from covering.scan import ScanIndex
from routing.strategies import strategy
from routing.strategies.basic import Identity


def _codes(count: int, first: int = 0) -> list[Any]:
    """Numbers for names. Of numpy's type: numba would compile a kernel again for each plain constant it is given."""
    return [np.int64(first + i) for i in range(count)]


SUBSCRIBE, UNSUBSCRIBE, PUBLISH = _codes(3)  # kinds of messages, and of what clients do
KINDS = ("subscribe", "unsubscribe")
SIMPLE, IDENTITY, COVERING = _codes(3)  # how a ledger decides
DECIDES = ("simple", "identity", "covering")
FORWARDED, SUPPRESSED, EXPOSED, RETRACTED = _codes(4)
OUTCOMES = ("forwarded", "suppressed", "exposed", "retracted")
ABSENT, SENT = _codes(2, -2)  # in place of a coverer
NO_SERVICE, CONSTANT, EXPONENTIAL, LINEAR, WORK = _codes(5)
SERVICES = ("none", "constant", "exponential", "linear", "work")
EVERYTHING, NOTHING = _codes(2, -2)  # in place of a route: the neighbour gets every event, or never says what it wants
SCAN, PACKED, KDTREE, EMULATED = _codes(4)  # methods of covering
BUDGET, KDTREE_EPSILON, EQUAL = _codes(3, 4)  # the last two: further searches that have a price of their own
SEARCHES = (
    ScanIndex.name, PackedIndex.name, KdTreeIndex.name, EmulatedIndex.name,
    BudgetIndex.name, KdTreeIndex.charged_as()[1], *Identity.charged_as,
)  # fmt: skip
REQUEST, SAMPLE = _codes(2)  # what the agenda has: a client's line of the timeline, or sizes of tables
(NONE,) = _codes(1, -1)


def compiled_as(name: str) -> str | None:
    """How the engine decides for a strategy, as the class itself says; None if it cannot."""
    return vars(strategy(name)).get("compiled_as")


def _record(*ints: str, floats: str = "", flags: str = "", whole: Any = np.int64) -> np.dtype[Any]:
    """A record, from the names of its fields."""
    kinds = {whole: " ".join(ints), np.float64: floats, np.bool_: flags}
    return np.dtype([(name, kind) for kind, names in kinds.items() for name in names.split()])


def _row_of(table: str, *without: str, **other: Any) -> np.dtype[Any]:
    """A row of a table of the trace as kernels write it: columns and types of the schema, labels as codes."""
    fields: dict[str, Any] = {
        field.name: np.int8 if pa.types.is_dictionary(field.type) else field.type.to_pandas_dtype()
        for field in ALL[table]
        if (table, field.name) not in BUCKETED and field.name not in without
    }
    return np.dtype(list((fields | other).items()))


RUN = _record(
    # Settings. How ledgers decide:
    "strategy",
    "probe_cap node_budget",  # −1: none
    "budget",  # boxes that `budget` looks at
    "first_method",  # of an empty covering index
    "bits",  # per coordinate, of the curve of `zorder-emulated`; 0: as the entries of an index ask for
    "groups",  # of subscriptions that can cover each other, as far as their residues go
    "classes",  # of equal subscriptions
    "routes",  # without sieves
    "trees",
    "widest",  # most routes that lead on from a broker
    # How events are matched:
    "k",  # −1: all
    # Transport:
    "service",
    "capacity",  # of a broker's queue, −1: any number
    "samples",  # of table sizes, without the final one
    # Where the run is:
    "order",  # calls scheduled so far
    "step",
    "position",  # in the timeline
    "sampled",
    "loaded",  # halves of routes, see bulk.py
    "begun",  # the broker whose message was processed just now and has no service time yet, −1: none
    "ended",  # the broker whose service ended just now and may begin the next one, −1: none
    "finishing",  # the operation of the message of `begun`, −1: none
    "pages round_trips",  # of the search for the current decision
    "outbox outbox_last",  # messages that a broker has sent and that are not on their wires yet
    "unused_message unused_index",  # the first of a list, −1: none
    "publications_before",  # rows of the trace that were taken away
    # Rows in use:
    "nodes operations messages calls",
    "entries",  # of all tables, with the gaps between them
    "updates passed",
    "indexes index_rows index_tops",
    "control decisions publications deliveries faults published",
    # `searching`: time of the searches for covers that the message of `begun` caused; `took`: of the current decision.
    floats="bandwidth jitter service_base service_slope now searching took",
    # `gives_up`: a search may end before all possible covers were seen; `auto`: the covering method is chosen again and
    # again; `prunes`: there are sieves; `served_event`: the message of `begun` is an event; `relaxed`: matching is.
    flags="active ask_exact gives_up auto prunes only_latency loading served_event relaxed",
)
WIRE = _record(
    "source target",
    "sent",  # sequence number of the next message
    "head tail",  # messages in flight, first in first out
    "entries",  # in the target's tables for the source, all trees together
    "known",  # and with those that are pruned, where there are sieves
    "drawn",  # random numbers used of its row of `draws`
    floats="latency free_at last",
)
ROUTE = _record(
    "source target wire",
    "tree",  # its name
    "part",  # of the target: who hears of it next
    "numerator shift",  # 1 − ε = numerator / 2^shift
    "checks hits",  # what FilterIndex.stats counts, with `volume`
    floats="epsilon volume",
)
TABLE = _record("first capacity used")  # its run of `entries`
FILTER = _record("subscription residue", floats="score")
NEAR = _record("neighbour wire route part")
SUBSCRIPTION = _record(
    "home",
    "node",  # the first of its nodes at home
    "by_width by_score",  # its places in the two orders of filters
    "residue group",
    "equal",  # its class
    "place",  # among all, widest first; equal ones share it (covering/widest_first.py)
    floats="score",
)
NODE = _record(  # by far the most rows, hence 32 bits
    "subscription route",
    "child",  # the first of its nodes at the route's target
    "slot",  # in the covering index of the route, if it is sent
    "coverer",  # a node of the same route, SENT or ABSENT
    "first last next previous",  # what it suppresses, in order of arrival
    whole=np.int32,
)
UPDATE = _record("kind first last operation hop")  # of the ledgers of the nodes first … last − 1
MESSAGE = _record(
    "next kind",
    "node",  # the event, if it is one; the subscription where a client speaks
    "operation hop",
    "wire",  # −1: from a client
    "part",  # of the target (events)
    "parent",  # row of `publications` it follows from (events)
    "sequence",
    "order",  # its place in the calendar, with `time`
    floats="sent published time",
)
BROKER = _record(
    "local",  # its clients' subscriptions
    "entries",  # in all its tables
    "head tail",  # messages waiting for service
    "present",  # messages that wait or are in service
    "outbox outbox_last",  # what the message in service sends when its service ends
    "finishing",  # the operation of that message, −1: none
    "drawn",  # random numbers used of its row of `service_draws`
)
# What work costs, by the names of broker/work.py; for the other three see covering/stats.py.
PRICES = _record(floats=" ".join(field.name for field in fields(Prices) if field.name != "search"))
SEARCH_PRICE = _record(
    "per_page boxes_per_page", floats=" ".join(field.name for field in fields(SearchPrice)), flags="apart"
)
ACT = _record("kind index broker", floats="time")  # of a client
CALL = _record("order what", floats="time")  # an entry of the calendar
PASSED = _record("operation node kind")  # over a route, while loading
CHAIN = _record("first last")  # of indexes, −1: none
INDEX = _record(  # of covering, see covers.py
    "residue",  # of what is in it
    "next",  # in its chain, or unused, −1: none
    "row capacity",  # its region of points, words and owners
    "top tops",  # its region of tops
    "method",  # the one at work; `auto` changes it
    "used built dead held",
    "free",  # the free slot to use next, −1: none
    "divided",  # entries when it was last divided, see covering/curve/resolution.py
    "fallbacks updates reviewed_checks reviewed_hits next_review stay",  # what `auto` remembers
)

# Rows of the trace.
CONTROL = _row_of("control")
DECISION = _row_of("decisions", "runs", "audited", "past_stop", exact=np.int8)  # −1: not asked
PUBLICATION = _row_of("publications", "useful", parent=np.int64)
DELIVERY = _row_of("deliveries")
FAULT = _row_of("faults", "kind")
PUBLISHED = _row_of("published")
OPERATION = _row_of("operations", "operation", outstanding=np.int64)
