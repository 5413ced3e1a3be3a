"""Where the counters and settings of a run stand in its two arrays of numbers, and what a kernel says when it stops."""

from __future__ import annotations

(
    NODES, CONTROL, DECISIONS, PUBLICATIONS, DELIVERIES, FAULTS, OPERATIONS, ROWS,  # rows in use, by array
    HEAP, IN_FLIGHT, FREE, POOL,  # calls; messages under way, first free one, messages ever allocated
    ORDER, STEP, POSITION, SAMPLE, CLIENTS_ACT, SAMPLER_ACTS,
    CREDIT,  # messages for which there certainly is room, see room.py
    # What the next message may take, when there is no room for it:
    NEED_ANSWERS, NEED_NODES, NEED_ROWS, NEED_DELIVERIES, NEED_SLOTS,
    # Settings:
    STRATEGY, ACTIVE, GIVES_UP, ASK_EXACT, AUTO, PROBE_CAP, GROUPS, CLASSES, BITS, TREES, ATTRIBUTES, K, RELAXED,
    SERVICE, CAPACITY, ONLY_LATENCY, WANTED_SAMPLES, LOADING, OUT, WIDEST,
    COUNT,
) = range(45)  # fmt: skip

NOW, BANDWIDTH, JITTER, SERVICE_BASE, SERVICE_SLOPE, NUMBERS = range(6)

DONE, ROOM = 0, 1  # nothing is under way any more; some array is too short for the next message
SLACK = 16  # rows that every message may take beyond what the needs count
