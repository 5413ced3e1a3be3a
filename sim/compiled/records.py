"""The rows that the compiled engine works on. Messages, links and subscriptions are rows, never objects.

Words used here, beside those of `broker/`:
- a *route* is one direction of a link in one routing tree: what a LinkLedger and a LinkTable belong to;
- a *wire* is one direction of a link, whatever the tree: what a Link of the transport is;
- a *node* is a subscription on a route: what the ledger knows about it. The nodes that a subscription has on the
  routes leading on from a broker lie side by side, so a message needs only its own node to find them.
"""

from __future__ import annotations

import numpy as np

SUBSCRIBE, UNSUBSCRIBE, PUBLISH = 0, 1, 2  # kinds of messages, and of what clients do
SIMPLE, IDENTITY, COVERING = 0, 1, 2  # how a ledger decides
FORWARDED, SUPPRESSED, EXPOSED, RETRACTED = 0, 1, 2, 3
OUTCOMES = ("forwarded", "suppressed", "exposed", "retracted")
KINDS = ("subscribe", "unsubscribe")
SENT, ABSENT = -1, -2  # in place of a coverer
NO_SERVICE, CONSTANT, EXPONENTIAL, LINEAR = 0, 1, 2, 3

WIRE = np.dtype(
    [
        ("source", np.int32),
        ("target", np.int32),
        ("latency", np.float64),
        ("sent", np.int64),  # sequence number of the next message
        ("head", np.int32),  # messages in flight, first in first out
        ("tail", np.int32),
        ("free_at", np.float64),
        ("last", np.float64),
        ("entries", np.int64),  # in the target's tables for the source, all trees together
    ]
)
ROUTE = np.dtype(
    [
        ("source", np.int32),
        ("target", np.int32),
        ("wire", np.int32),
        ("tree", np.int32),  # its name
        ("plane", np.int32),  # of the target: who hears of it next
        ("curve", np.int32),  # which ε, see Search.curves
        ("epsilon", np.float64),
        ("checks", np.int64),  # what FilterIndex.stats counts
        ("hits", np.int64),
        ("volume", np.float64),
        ("held", np.int64),  # entries of the ledger that are sent
        ("row", np.int64),  # the table at the target: first row, room, entries
        ("room", np.int64),
        ("entries", np.int64),
        ("filled", np.int64),  # entries whose bounds stand in the rows: those that an event has looked at
    ]
)
NODE = np.dtype(
    [
        ("subscription", np.int32),
        ("route", np.int32),
        ("child", np.int32),  # the first of its nodes at the route's target
        ("row", np.int32),  # in the table at the route's target, from the table's first row
    ]
)
# What the ledger knows of a node; none where everything is sent (SIMPLE).
STANDING = np.dtype(
    [
        ("coverer", np.int32),  # a node of the same route, SENT or ABSENT
        ("first", np.int32),  # what it suppresses, in order of arrival: first, last, next, previous
        ("last", np.int32),
        ("next", np.int32),
        ("previous", np.int32),
        ("count", np.int32),  # how many it suppresses
    ]
)
MESSAGE = np.dtype(
    [
        ("next", np.int32),
        ("kind", np.int32),
        ("node", np.int32),  # the event, if it is one; the subscription where a client speaks
        ("operation", np.int32),
        ("hop", np.int32),
        ("wire", np.int32),  # −1: from a client
        ("plane", np.int32),  # of the target (events)
        ("parent", np.int32),  # row of `publications` it follows from (events)
        ("sequence", np.int64),
        ("sent", np.float64),
        ("published", np.float64),
        ("time", np.float64),  # its place in the calendar
        ("order", np.int64),
    ]
)
BROKER = np.dtype(
    [
        ("first", np.int64),  # its clients' subscriptions: first row, entries
        ("local", np.int64),
        ("entries", np.int64),  # in all its tables
        ("head", np.int32),  # messages waiting for service
        ("tail", np.int32),
        ("waiting", np.int64),
        ("busy_until", np.float64),
    ]
)
OPERATION = np.dtype(
    [
        ("kind", np.int32),
        ("subscription", np.int32),
        ("broker", np.int32),
        ("outstanding", np.int32),
        ("messages", np.int64),
        ("time", np.float64),
        ("finished", np.float64),
    ]
)
CALL = np.dtype([("time", np.float64), ("order", np.int64), ("what", np.int64)])  # an entry of the calendar

# Rows of the trace. The two long tables are kept column by column, each of the type that it has in broker/trace.py:
# Arrow takes them as they are, and touching fresh pages, most of the time of a large run, is done once.
CONTROL_ROW = np.dtype(
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
    ]
)
DECISION_ROW = np.dtype(
    [
        ("time", np.float64),
        ("subscription", np.int64),
        ("operation", np.int64),
        ("broker", np.int32),
        ("neighbour", np.int32),
        ("tree", np.int32),
        ("at_home", np.int8),
    ]
)
# The rest of a decision: what a search found, and so what became of the subscription.
SEARCH_ROW = np.dtype(
    [
        ("witness", np.int64),
        ("probes", np.int64),
        ("cubes", np.int64),
        ("volume", np.float64),
        ("outcome", np.int8),
        ("capped", np.int8),
        ("exact", np.int8),  # −1: nobody asked
    ]
)
NO_SEARCH = np.array((-1, 0, 0, 1.0, FORWARDED, 0, 0), SEARCH_ROW)  # in simple routing: the same each time, not kept
PUBLICATION_ROW = np.dtype(
    [
        ("step", np.int64),
        ("event", np.int32),
        ("time", np.float64),
        ("sent", np.float64),
        ("source", np.int32),
        ("target", np.int32),
        ("hop", np.int32),
        ("published", np.float64),
        ("waited", np.float64),
        ("served", np.int32),
        ("forwarded", np.int32),
        ("parent", np.int32),
    ]
)
DELIVERY_ROW = np.dtype(
    [
        ("event", np.int32),
        ("subscription", np.int32),
        ("broker", np.int32),
        ("rank", np.int32),
        ("hops", np.int32),
        ("time", np.float64),
        ("latency", np.float64),
        ("score", np.float64),
    ]
)
FAULT_ROW = np.dtype(
    [("time", np.float64), ("broker", np.int32), ("neighbour", np.int32), ("event", np.int32)]
)
