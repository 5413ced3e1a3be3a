"""Where the arrays of a run stand in its table (covering/memory.py), and the views that kernels take of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from covering.memory import WORDS, matrix_of, rows_of, words_at
from coverlay import kernel
from sim.compiled import records as r

(
    NODES, STANDINGS, ROUTES, OPERATIONS, WIRES, MESSAGES, HEAP, BROKERS, COUNTERS, NUMBERS,
    CONTROL, DECISIONS, SEARCHES, PUBLICATIONS, DELIVERIES, FAULTS,
    POINTS, GROUPS, LO, HI, MENTIONED, WEIGHTS, SCORES, HOME, HOME_CHILD, PLACES,  # by subscription
    NAMED, NAMED_LO, NAMED_HI,  # by subscription, only what it mentions
    LOCAL_LO, LOCAL_HI, LOCAL_MENTIONED, LOCAL_WEIGHTS, LOCAL_SCORES, LOCAL_IDS,  # by row of a broker's clients
    ROW_NAMED, ROW_LO, ROW_HI, ROW_NODE,  # by row of a table
    LEARN_FIRST, LEARN, NEAR_FIRST, NEIGHBOUR, NEAR_WIRE, NEAR_ROUTE, NEAR_PLANE,
    EQUAL, KEYS, CLASSES, CURVE_OFFSET, CURVE_SCALE, NUMERATORS, SHIFTS, BANK,
    EVENTS, TIMES, KINDS, INDEX, HOMES, TREE_OF,
    DRAWS, DRAWN, SERVICE_DRAWS, SERVICE_DRAWN, SAMPLES, SAMPLED_AT, DUE,
    OUT_OPERATION, OUT_MESSAGE, OUT_FIRST, HOMED, HOMED_FIRST,  # while loading, see bulk.py
    COUNT,
) = range(73)  # fmt: skip

# Words after those of the arrays: addresses of kernels that others call (memory.linkable).
DECIDE, CONTROL_MESSAGE, PUBLICATION, LACKS_ROOM = (WORDS * COUNT + i for i in range(4))
LINKS = 4

nodes_of, routes_of = rows_of(NODES, r.NODE), rows_of(ROUTES, r.ROUTE)
standings_of = rows_of(STANDINGS, r.STANDING)
operations_of, wires_of = rows_of(OPERATIONS, r.OPERATION), rows_of(WIRES, r.WIRE)
messages_of, heap_of, brokers_of = rows_of(MESSAGES, r.MESSAGE), rows_of(HEAP, r.CALL), rows_of(BROKERS, r.BROKER)
counters_of, numbers_of = rows_of(COUNTERS, np.int64), rows_of(NUMBERS, np.float64)
publications_of = rows_of(PUBLICATIONS, r.PUBLICATION_ROW)
deliveries_of, faults_of = rows_of(DELIVERIES, r.DELIVERY_ROW), rows_of(FAULTS, r.FAULT_ROW)
points_of, groups_of = matrix_of(POINTS, np.float64), rows_of(GROUPS, np.int64)
lo_of, hi_of, weights_of = matrix_of(LO, np.float64), matrix_of(HI, np.float64), matrix_of(WEIGHTS, np.float64)
mentioned_of, scores_of = matrix_of(MENTIONED, np.bool_), rows_of(SCORES, np.float64)
home_child_of, places_of = rows_of(HOME_CHILD, np.int32), rows_of(PLACES, np.int64)
home_of = rows_of(HOME, np.int32)
named_of, named_lo_of = matrix_of(NAMED, np.int32), matrix_of(NAMED_LO, np.float64)
named_hi_of = matrix_of(NAMED_HI, np.float64)
local_lo_of, local_hi_of = matrix_of(LOCAL_LO, np.float64), matrix_of(LOCAL_HI, np.float64)
local_mentioned_of, local_weights_of = matrix_of(LOCAL_MENTIONED, np.uint8), matrix_of(LOCAL_WEIGHTS, np.float64)
local_scores_of, local_ids_of = rows_of(LOCAL_SCORES, np.float64), rows_of(LOCAL_IDS, np.int64)
row_named_of, row_lo_of = matrix_of(ROW_NAMED, np.int32), matrix_of(ROW_LO, np.float64)
row_hi_of, row_node_of = matrix_of(ROW_HI, np.float64), rows_of(ROW_NODE, np.int32)
learn_first_of, learn_of = rows_of(LEARN_FIRST, np.int64), rows_of(LEARN, np.int64)
near_first_of, neighbour_of = rows_of(NEAR_FIRST, np.int64), rows_of(NEIGHBOUR, np.int64)
near_wire_of, near_route_of = rows_of(NEAR_WIRE, np.int64), rows_of(NEAR_ROUTE, np.int64)
near_plane_of = rows_of(NEAR_PLANE, np.int64)
equal_of, keys_of, classes_of = rows_of(EQUAL, np.int32), rows_of(KEYS, np.int64), rows_of(CLASSES, np.int64)
curve_offset_of, curve_scale_of = rows_of(CURVE_OFFSET, np.float64), rows_of(CURVE_SCALE, np.float64)
numerators_of, shifts_of = rows_of(NUMERATORS, np.int64), rows_of(SHIFTS, np.int64)
events_of, times_of = matrix_of(EVENTS, np.float64), rows_of(TIMES, np.float64)
kinds_of, index_of, homes_of = rows_of(KINDS, np.int64), rows_of(INDEX, np.int64), rows_of(HOMES, np.int64)
tree_of_of = rows_of(TREE_OF, np.int64)
draws_of, drawn_of = matrix_of(DRAWS, np.float64), rows_of(DRAWN, np.int64)
service_draws_of, service_drawn_of = matrix_of(SERVICE_DRAWS, np.float64), rows_of(SERVICE_DRAWN, np.int64)
samples_of, due_of = matrix_of(SAMPLES, np.int64), rows_of(DUE, np.float64)
sampled_at_of = rows_of(SAMPLED_AT, np.float64)

out_operation_of, out_message_of = rows_of(OUT_OPERATION, np.int32), rows_of(OUT_MESSAGE, np.int64)
out_first_of, homed_of = rows_of(OUT_FIRST, np.int64), rows_of(HOMED, np.int64)
homed_first_of = rows_of(HOMED_FIRST, np.int64)


@kernel
def bank_of(w: int) -> Any:
    """The table of the bank of covering indexes."""
    return words_at(w)[WORDS * BANK]
