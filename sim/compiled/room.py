"""Is there room for all that processing the next message may write? Asked before anything is changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from covering.memory import WORDS, call, linkable, words_at
from coverlay import kernel
from sim.compiled import counters as c
from sim.compiled.arrays import (
    CONTROL,
    DECISIONS,
    LACKS_ROOM,
    brokers_of,
    counters_of,
    deliveries_of,
    drawn_of,
    draws_of,
    home_child_of,
    learn_first_of,
    learn_of,
    messages_of,
    near_first_of,
    near_wire_of,
    nodes_of,
    numbers_of,
    publications_of,
    routes_of,
    row_node_of,
    service_drawn_of,
    service_draws_of,
)
from sim.compiled.ledger import dependants, room_for
from sim.compiled.matching import room_after
from sim.compiled.records import EXPONENTIAL, PUBLISH, SIMPLE, SUBSCRIBE


@kernel
def dry(w: int, broker: int) -> bool:
    """No service time is left of those drawn in advance."""
    return counters_of(w)[c.SERVICE] == EXPONENTIAL and service_drawn_of(w)[broker] == service_draws_of(w).shape[1]


@kernel
def lacks_room(w: int, kind: int, node: int, wire: int, broker: int) -> bool:
    """Is an array too short for all that processing a message may write? Then the counters say how much that is."""
    n = counters_of(w)
    if n[c.CREDIT] > 0 and kind != PUBLISH:
        fits = True
        if kind == SUBSCRIBE and wire >= 0:
            table = routes_of(w)[nodes_of(w)[node].route]
            fits = table.entries < table.room
        if fits:
            n[c.CREDIT] -= 1
            return False
    return call(w, LACKS_ROOM, kind, node, wire, broker) != 0


@linkable
def lacks_room_linked(w: int, kind: int, node: int, wire: int, broker: int) -> int:
    n = counters_of(w)
    answers, fresh, table, served = 0, 0, 0, 0
    enough = True
    if kind == PUBLISH:
        near_first = near_first_of(w)
        answers = near_first[(broker + 1) * n[c.TREES]] - near_first[broker * n[c.TREES]]
        served = brokers_of(w)[broker].local
    else:
        nodes, routes, learn_first, learn = nodes_of(w), routes_of(w), learn_first_of(w), learn_of(w)
        first, last = learn_first[broker * n[c.TREES]], learn_first[(broker + 1) * n[c.TREES]]
        child, subscription, source = np.int64(-1), np.int64(node), -1
        if wire < 0:
            child = np.int64(home_child_of(w)[node])
        else:
            route = routes[nodes[node].route]
            child, subscription, source = np.int64(nodes[node].child), np.int64(nodes[node].subscription), route.source
            first, last = learn_first[route.plane], learn_first[route.plane + 1]
            if kind == SUBSCRIBE and route.entries == route.room:
                table = room_after(route.room)
        fresh = last - first if child < 0 else 0
        for at in range(first, last):
            onward = routes[learn[at]]
            if onward.target == source:
                continue
            more = 1
            if kind != SUBSCRIBE and child >= 0:
                more += dependants(w, child)
                child += 1
            answers += 2 * more
            if n[c.ACTIVE]:
                answers += onward.held
            enough = room_for(w, learn[at], subscription, more) and enough
    enough = (
        enough
        and n[c.DECISIONS] + answers <= _decision_rows(w)
        and n[c.IN_FLIGHT] + answers + 2 <= len(messages_of(w))
        and n[c.NODES] + fresh <= len(nodes_of(w))
        and n[c.ROWS] + table <= len(row_node_of(w))
        and n[c.CONTROL] < _control_rows(w)
        and n[c.PUBLICATIONS] < len(publications_of(w))
        and n[c.DELIVERIES] + served <= len(deliveries_of(w))
    )
    if enough and numbers_of(w)[c.JITTER] > 0.0:
        near_first, near_wire, drawn = near_first_of(w), near_wire_of(w), drawn_of(w)
        for at in range(near_first[broker * n[c.TREES]], near_first[(broker + 1) * n[c.TREES]]):
            enough = enough and drawn[near_wire[at]] + answers <= draws_of(w).shape[1]
    if not enough:
        n[c.NEED_ANSWERS], n[c.NEED_NODES], n[c.NEED_ROWS] = answers, fresh, table
        n[c.NEED_DELIVERIES] = served
        return 1
    n[c.CREDIT] = _credit(w)
    return 0


@kernel
def _credit(w: int) -> int:
    """For how many messages after this one there is room, whichever they are (table rows and events apart).

    Simple routing answers a message at most once per route that leads on. Elsewhere a departure may expose any number.
    """
    n = counters_of(w)
    if n[c.STRATEGY] != SIMPLE or numbers_of(w)[c.JITTER] > 0.0:
        return 0
    answers = min(
        _decision_rows(w) - n[c.DECISIONS], len(messages_of(w)) - n[c.IN_FLIGHT] - 2, len(nodes_of(w)) - n[c.NODES]
    )
    return min(answers // n[c.WIDEST], _control_rows(w) - n[c.CONTROL]) - 1


@kernel
def _control_rows(w: int) -> Any:
    return words_at(w)[WORDS * CONTROL + 1]


@kernel
def _decision_rows(w: int) -> Any:
    return words_at(w)[WORDS * DECISIONS + 1]
