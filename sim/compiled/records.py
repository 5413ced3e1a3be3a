"""The records that the compiled engine works on. Messages, links and subscriptions are rows, never objects.

Words used here, beside those of `broker/`:
- a *route* is one direction of a link in one routing tree: what a LinkLedger and a LinkTable belong to;
- a *wire* is one direction of a link, whatever the tree: what a Link of the transport is;
- a *sieve* is a second ledger of a route, at its target, with `routing.mode = "prune"`: it decides, as an active and
  exact one does, which entries of the table are rows (PrunedTable). Sieves are routes too, `run.routes` after theirs;
- a *part* is what a broker does in one tree (broker/tree_part.py);
- a *node* is a subscription on a route: what the ledger knows about it. The nodes that a subscription has on the
  routes leading on from a broker are neighbours, so a message needs only its own node to find them.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from broker.work import Prices, SearchPrice


def _codes(count: int, first: int = 0) -> list[Any]:
    """Numbers for names. Of numpy's type: numba would compile a kernel again for each plain constant it is given."""
    return [np.int64(first + i) for i in range(count)]


SUBSCRIBE, UNSUBSCRIBE, PUBLISH = _codes(3)  # kinds of messages, and of what clients do
KINDS = ("subscribe", "unsubscribe")
SIMPLE, IDENTITY, COVERING = _codes(3)  # how a ledger decides
FORWARDED, SUPPRESSED, EXPOSED, RETRACTED = _codes(4)
OUTCOMES = ("forwarded", "suppressed", "exposed", "retracted")
ABSENT, SENT = _codes(2, -2)  # in place of a coverer
NO_SERVICE, CONSTANT, EXPONENTIAL, LINEAR, WORK = _codes(5)
EVERYTHING, NOTHING = _codes(2, -2)  # in place of a route: the neighbour gets every event, or never says what it wants
SCAN, PACKED, KDTREE, EMULATED = _codes(4)  # methods of covering
BUDGET, KDTREE_EPSILON, EQUAL = _codes(3, 4)  # the last two: further searches that have a price of their own
SEARCHES = ("scan", "packed", "kdtree", "zorder-emulated", "budget", "kdtree-epsilon", "identity")
WAITING, ACTING, WOKEN = _codes(3)  # clients and sampler: for their call, now, now whatever rounding made of the time
(NONE,) = _codes(1, -1)

RUN = np.dtype(
    [
        # Settings. How ledgers decide:
        ("strategy", np.int64),
        ("active", np.bool_),
        ("ask_exact", np.bool_),
        ("gives_up", np.bool_),  # a search may end before all possible covers were seen
        ("probe_cap", np.int64),  # −1: none
        ("node_budget", np.int64),  # −1: none
        ("budget", np.int64),  # boxes that `budget` looks at
        ("auto", np.bool_),  # the covering method is chosen again and again
        ("first_method", np.int64),  # of an empty covering index
        ("bits", np.int64),  # per coordinate, of the curve of `zorder-emulated`
        ("groups", np.int64),  # of subscriptions that can cover each other, as far as their residues go
        ("classes", np.int64),  # of equal subscriptions
        ("routes", np.int64),  # beside sieves
        ("prunes", np.bool_),  # there are sieves
        ("trees", np.int64),
        ("widest", np.int64),  # most routes that lead on from a broker
        # How events are matched:
        ("k", np.int64),  # −1: all
        ("link_least", np.int64),  # changes of a table that are worth a new static part
        ("link_reads", np.int64),  # and entries looked at, per entry
        # Transport:
        ("only_latency", np.bool_),
        ("bandwidth", np.float64),
        ("jitter", np.float64),
        ("service", np.int64),
        ("service_base", np.float64),
        ("service_slope", np.float64),
        ("capacity", np.int64),  # of a broker's queue, −1: any number
        ("samples", np.int64),  # of table sizes, the last one apart
        # Where the run is:
        ("now", np.float64),
        ("order", np.int64),  # calls scheduled so far
        ("step", np.int64),
        ("position", np.int64),  # in the timeline
        ("sampled", np.int64),
        ("clients", np.int64),  # WAITING, ACTING or WOKEN
        ("sampler", np.int64),
        ("loading", np.bool_),
        ("loaded", np.int64),  # halves of routes, see bulk.py
        ("begun", np.int64),  # the broker whose message was processed just now and has no service time yet, −1: none
        ("ended", np.int64),  # the broker whose service ended just now and may begin the next one, −1: none
        ("served_event", np.bool_),  # the message of `begun` is an event
        ("finishing", np.int64),  # its operation, −1: none
        ("searching", np.float64),  # time that the searches for covers take which its message caused
        ("pages", np.int64),  # of the decision in hand: what its search touches, and how long it takes
        ("round_trips", np.int64),
        ("took", np.float64),
        ("held", np.int64),  # an event that waits for tables to be built, −1: none; where, in which part, from whom
        ("held_broker", np.int64),
        ("held_part", np.int64),
        ("held_source", np.int64),
        ("outbox", np.int64),  # messages that a broker has sent and that are not on their wires yet: first, last
        ("outbox_last", np.int64),
        ("unused_message", np.int64),  # the first of a list, −1: none
        ("publications_before", np.int64),  # rows of the trace that were taken away
        # Rows in use:
        ("nodes", np.int64),
        ("operations", np.int64),
        ("messages", np.int64),
        ("calls", np.int64),
        ("entries", np.int64),  # of all tables, with the gaps between them
        ("updates", np.int64),
        ("passed", np.int64),  # while loading
        ("indexes", np.int64),
        ("unused_index", np.int64),  # the first of a list, −1: none
        ("index_rows", np.int64),
        ("index_tops", np.int64),
        ("control", np.int64),
        ("decisions", np.int64),
        ("publications", np.int64),
        ("deliveries", np.int64),
        ("faults", np.int64),
    ]
)
WIRE = np.dtype(
    [
        ("source", np.int64),
        ("target", np.int64),
        ("latency", np.float64),
        ("sent", np.int64),  # sequence number of the next message
        ("head", np.int64),  # messages in flight, first in first out
        ("tail", np.int64),
        ("free_at", np.float64),
        ("last", np.float64),
        ("entries", np.int64),  # in the target's tables for the source, all trees together
        ("known", np.int64),  # and with those that are pruned, where there are sieves
        ("drawn", np.int64),  # random numbers used of its row of `draws`
    ]
)
ROUTE = np.dtype(
    [
        ("source", np.int64),
        ("target", np.int64),
        ("wire", np.int64),
        ("tree", np.int64),  # its name
        ("part", np.int64),  # of the target: who hears of it next
        ("epsilon", np.float64),
        ("numerator", np.int64),  # 1 − ε = numerator / 2^shift
        ("shift", np.int64),
        ("checks", np.int64),  # what FilterIndex.stats counts
        ("hits", np.int64),
        ("volume", np.float64),
        ("row", np.int64),  # the table at the target: first place, capacity, places in use, entries
        ("capacity", np.int64),
        ("used", np.int64),
        ("entries", np.int64),
        ("built", np.int64),  # places of its static part
        ("read", np.int64),  # entries that events have looked at since it was built
    ]
)
NEAR = np.dtype([("neighbour", np.int64), ("wire", np.int64), ("route", np.int64), ("part", np.int64)])
SUBSCRIPTION = np.dtype(
    [
        ("home", np.int64),
        ("node", np.int64),  # the first of its nodes at home
        ("row", np.int64),  # among its home's clients
        ("residue", np.int64),
        ("group", np.int64),
        ("equal", np.int64),  # its class
        ("score", np.float64),
    ]
)
NODE = np.dtype(  # by far the most rows, hence 32 bits
    [
        ("subscription", np.int32),
        ("route", np.int32),
        ("child", np.int32),  # the first of its nodes at the route's target
        ("row", np.int32),  # in the table at the route's target, from the table's first entry
        ("slot", np.int32),  # in the covering index of the route, if it is sent
        ("coverer", np.int32),  # a node of the same route, SENT or ABSENT
        ("first", np.int32),  # what it suppresses, in order of arrival: first, last, next, previous
        ("last", np.int32),
        ("next", np.int32),
        ("previous", np.int32),
    ]
)
UPDATE = np.dtype(  # of the ledgers of the nodes first … last − 1
    [
        ("kind", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("operation", np.int64),
        ("hop", np.int64),
    ]
)
MESSAGE = np.dtype(
    [
        ("next", np.int64),
        ("kind", np.int64),
        ("node", np.int64),  # the event, if it is one; the subscription where a client speaks
        ("operation", np.int64),
        ("hop", np.int64),
        ("wire", np.int64),  # −1: from a client
        ("part", np.int64),  # of the target (events)
        ("parent", np.int64),  # row of `publications` it follows from (events)
        ("sequence", np.int64),
        ("sent", np.float64),
        ("published", np.float64),
        ("time", np.float64),  # its place in the calendar
        ("order", np.int64),
    ]
)
BROKER = np.dtype(
    [
        ("local", np.int64),  # its clients' subscriptions
        ("changed", np.bool_),  # those, since an event asked
        ("entries", np.int64),  # in all its tables
        ("head", np.int64),  # messages waiting for service
        ("tail", np.int64),
        ("present", np.int64),  # messages that wait or are in service
        ("outbox", np.int64),  # what the message in service sends when that ends: first, last
        ("outbox_last", np.int64),
        ("finishing", np.int64),  # the operation of that message, −1: none
        ("drawn", np.int64),  # random numbers used of its row of `service_draws`
    ]
)
OPERATION = np.dtype(
    [
        ("kind", np.int64),
        ("subscription", np.int64),
        ("broker", np.int64),
        ("outstanding", np.int64),
        ("messages", np.int64),
        ("time", np.float64),
        ("finished", np.float64),
    ]
)
# What work costs, by the names of broker/work.py.
PRICES = np.dtype([(field.name, np.float64) for field in fields(Prices) if field.name != "search"])
SEARCH_PRICE = np.dtype(
    [
        *((field.name, np.float64) for field in fields(SearchPrice)),
        ("per_page", np.int64),  # see covering/stats.py
        ("apart", np.bool_),
        ("boxes_per_page", np.int64),
    ]
)
ACT = np.dtype([("time", np.float64), ("kind", np.int64), ("index", np.int64), ("broker", np.int64)])  # of a client
CALL = np.dtype([("time", np.float64), ("order", np.int64), ("what", np.int64)])  # an entry of the calendar
PASSED = np.dtype([("operation", np.int64), ("node", np.int64), ("kind", np.int64)])  # over a route, while loading
CHAIN = np.dtype([("first", np.int64), ("last", np.int64)])  # of indexes, −1: none
INDEX = np.dtype(  # of covering, see covers.py
    [
        ("residue", np.int64),  # of what is in it
        ("next", np.int64),  # in its chain, or unused, −1: none
        ("row", np.int64),  # its region of points, words and owners
        ("capacity", np.int64),
        ("top", np.int64),  # its region of tops
        ("tops", np.int64),
        ("method", np.int64),  # the one at work; `auto` changes it
        ("used", np.int64),
        ("built", np.int64),
        ("dead", np.int64),
        ("held", np.int64),
        ("free", np.int64),  # the free slot to use next, −1: none
        ("fallbacks", np.int64),  # from here on: what `auto` remembers
        ("updates", np.int64),
        ("reviewed_checks", np.int64),
        ("reviewed_hits", np.int64),
        ("next_review", np.int64),
        ("stay", np.int64),
    ]
)

# Rows of the trace; columns of the same names and types are those of broker/trace/schema.py.
CONTROL = np.dtype(
    [
        ("step", np.int64),
        ("time", np.float64),
        ("sent", np.float64),
        ("subscription", np.int64),
        ("operation", np.int64),
        ("sequence", np.int64),
        ("source", np.int32),
        ("target", np.int32),
        ("tree", np.int32),
        ("hop", np.int32),
        ("kind", np.int8),
        ("waited", np.float64),
        ("service", np.float64),
        ("on_covering", np.float64),
    ]
)
DECISION = np.dtype(
    [
        ("time", np.float64),
        ("subscription", np.int64),
        ("operation", np.int64),
        ("broker", np.int32),
        ("neighbour", np.int32),
        ("tree", np.int32),
        ("at_home", np.bool_),
        ("witness", np.int64),
        ("probes", np.int64),
        ("cubes", np.int64),
        ("volume", np.float64),
        ("pages", np.int64),
        ("round_trips", np.int64),
        ("took", np.float64),
        ("outcome", np.int8),
        ("capped", np.bool_),
        ("exact", np.int8),  # −1: nobody asked
    ]
)
PUBLICATION = np.dtype(
    [
        ("step", np.int64),
        ("event", np.int64),
        ("time", np.float64),
        ("sent", np.float64),
        ("source", np.int32),
        ("target", np.int32),
        ("hop", np.int32),
        ("published", np.float64),
        ("waited", np.float64),
        ("served", np.int32),
        ("forwarded", np.int32),
        ("matcher_entries", np.int64),
        ("matcher_nodes", np.int64),
        ("tables_asked", np.int64),
        ("sliced", np.int64),
        ("compared", np.int64),
        ("blocks", np.int64),
        ("service", np.float64),
        ("on_tables", np.float64),
        ("on_matching", np.float64),
        ("parent", np.int64),
    ]
)
DELIVERY = np.dtype(
    [
        ("event", np.int64),
        ("subscription", np.int64),
        ("broker", np.int32),
        ("rank", np.int32),
        ("hops", np.int32),
        ("time", np.float64),
        ("latency", np.float64),
        ("score", np.float64),
    ]
)
FAULT = np.dtype([("time", np.float64), ("broker", np.int32), ("neighbour", np.int32), ("event", np.int64)])
