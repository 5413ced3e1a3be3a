"""The oracle's inner loop: one event after the other, broker by broker, against what was delivered.

A broker must have served the k best subscriptions in force that the event reaches, best first. Where scores do not
depend on the event, rows are sorted once by home and rank, and the search ends at the k-th; elsewhere the reached ones
are ranked per event. Events are independent of each other: threads judge parts of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from broker.trace.schema import CLIENT
from coverlay import kernel
from sim.experiment.oracle_truth import Floats, Ints, reached, score_of

# What is counted, in the order of the array of counts.
COUNTED = ("missed", "duplicates", "spurious", "strays", "missed_transient", "missed_dropped", "missed_fault")
MISSED, DUPLICATES, SPURIOUS, STRAYS, TRANSIENT, DROPPED, FAULT = range(len(COUNTED))
EXPLAINED = -2  # in place of a link: this hop needs no entry
SAME_SCORE = 1e-9  # relative to 1 + score: weights added up in another order differ in their last bits
A_COPY_DROPPED, A_COPY_LOST = 1, 2  # bits: what happened to copies of an event


class Lives(NamedTuple):
    """Per row: its number, and when it came, settled and left. Sorted by home, then as `terms` are ranked."""

    first: Ints  # (brokers + 1,) where the rows of a home begin; after the last home: rows that never came
    number: Ints
    came: Ints  # step at which its broker accepted it
    left: Ints  # step at which its broker removed it, or NEVER
    asked: Floats  # when its client subscribed
    settled: Floats
    asked_to_leave: Floats


class Entries(NamedTuple):
    """Which row was in which table, from `step` until `left`; sorted by link."""

    first: Ints  # (links + 1,)
    row: Ints  # of `terms`
    step: Ints
    left: Ints
    tree: Ints


class Hops(NamedTuple):
    """The messages of some events, event by event."""

    first: Ints  # (events + 1,)
    source: Ints
    target: Ints
    step: Ints
    link: Ints  # number of the link whose table must explain it, −1 if it has none, or EXPLAINED
    time: Floats
    published: Floats


class Served(NamedTuple):
    """The deliveries of some events, event by event."""

    first: Ints  # (events + 1,)
    broker: Ints
    subscription: Ints
    rank: Ints
    score: Floats


@kernel
def judge_events(
    terms: Any,
    lives: Any,
    entries: Any,
    hops: Any,
    served: Any,
    numbers: Any,
    values: Any,
    weights: Any,
    happened: Any,
    broken: Any,
    k: int,
) -> Any:
    """Counts as in COUNTED of events `numbers`; `values`, `weights`, `happened`: by event; `broken`: times, (n, 2).

    `weights` is None where scores do not depend on the event.
    """
    counts = np.zeros(len(COUNTED), np.int64)
    brokers = len(lives.first) - 1
    first_step, last_step = np.empty(brokers, np.int64), np.empty(brokers, np.int64)
    starts, ends = np.empty(brokers, np.int64), np.empty(brokers, np.int64)
    order, most = np.empty(_longest(served.first), np.int64), _longest(lives.first)
    best, scores = np.empty(most, np.int64), np.empty(most)
    for place in range(len(numbers)):
        begin, end = hops.first[place], hops.first[place + 1]
        if begin == end:
            continue  # never published in this run
        event = values[numbers[place]]
        weight = None if weights is None else weights[min(numbers[place], len(weights) - 1)]
        published, ended = hops.published[begin], hops.time[begin]
        first_step[:], last_step[:] = -1, -1
        for hop in range(begin, end):
            target, ended = hops.target[hop], max(ended, hops.time[hop])
            counts[DUPLICATES] += last_step[target] >= 0  # a broker saw the event twice
            last_step[target] = hops.step[hop]
            if first_step[target] < 0:
                first_step[target] = hops.step[hop]
        cause = MISSED
        if happened[numbers[place]] & A_COPY_DROPPED:
            cause = DROPPED
        faulty = happened[numbers[place]] & A_COPY_LOST != 0
        for start, stop in broken:
            faulty |= start <= ended and published <= stop
        if faulty:
            cause = FAULT
        _by_broker(served, place, starts, ends, order)
        for broker in range(brokers):
            rows = lives.first[broker], lives.first[broker + 1]
            if last_step[broker] >= 0:
                found = _ranked(terms, lives, rows, last_step[broker], event, weight, k, best, scores)
                got = order[starts[broker] : ends[broker]]
                _compare(best[:found], scores[:found], served, got, faulty, counts)
            else:
                _unreached(terms, lives, rows, published, ended, event, k, cause, counts)
        counts[STRAYS] += _strays(terms, entries, hops, begin, end, first_step, event)
    return counts


@kernel(inner=True)
def _longest(first: Any) -> int:
    longest = 0
    for place in range(len(first) - 1):
        longest = max(longest, first[place + 1] - first[place])
    return longest


@kernel(inner=True)
def _by_broker(served: Any, place: int, starts: Any, ends: Any, order: Any) -> None:
    """The deliveries of an event sorted by broker, then rank, then as recorded: order[starts[b] : ends[b]]."""
    ends[:] = 0
    begin, end = served.first[place], served.first[place + 1]
    for row in range(begin, end):
        ends[served.broker[row]] += 1
    total = 0
    for broker in range(len(ends)):
        starts[broker] = total
        total += ends[broker]
        ends[broker] = starts[broker]
    for row in range(begin, end):
        broker = served.broker[row]
        at = ends[broker]
        # Ranks are recorded in order, so this rarely moves anything.
        while at > starts[broker] and served.rank[order[at - 1]] > served.rank[row]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = row
        ends[broker] += 1


@kernel(inner=True)
def _ranked(
    terms: Any, lives: Any, rows: Any, step: int, event: Any, weight: Any, k: int, best: Any, scores: Any
) -> int:
    """How many a broker must serve; their numbers are written to `best`, −score to `scores`.

    `weight` is None where rows are sorted by rank.
    """
    found = 0
    first, predicates, lists, listed, relaxed = terms.first, terms.predicates, terms.lists, terms.listed, terms.relaxed
    came, left, number = lives.came, lives.left, lives.number
    for row in range(rows[0], rows[1]):
        if (came[row] < step) & (step < left[row]) & reached(first, predicates, lists, listed, relaxed, row, event):
            best[found] = number[row]
            if weight is not None:
                scores[found] = -score_of(terms, row, event, weight)
            else:
                scores[found] = -terms.score[row]
            found += 1
            if weight is None and found == k:
                break
    if weight is not None:
        _sort(scores[:found], best[:found])
    return min(found, k)


@kernel(inner=True)
def _sort(keys: Any, numbers: Any) -> None:
    """Sort in place by key, then number: a heap sort, which compiles in a tenth of the time of numpy's."""
    begin, end = len(keys) // 2, len(keys)
    while end > 1:
        if begin > 0:
            begin -= 1
        else:
            end -= 1
            keys[0], keys[end] = keys[end], keys[0]
            numbers[0], numbers[end] = numbers[end], numbers[0]
        parent = begin
        while 2 * parent + 1 < end:
            child = 2 * parent + 1
            if child + 1 < end and _before(keys, numbers, child, child + 1):
                child += 1
            if not _before(keys, numbers, parent, child):
                break
            keys[parent], keys[child] = keys[child], keys[parent]
            numbers[parent], numbers[child] = numbers[child], numbers[parent]
            parent = child


@kernel(inner=True)
def _before(keys: Any, numbers: Any, one: int, other: int) -> bool:
    if keys[one] != keys[other]:
        return bool(keys[one] < keys[other])
    return bool(numbers[one] < numbers[other])


@kernel(inner=True)
def _compare(best: Any, scores: Any, served: Any, got: Any, faulty: bool, counts: Any) -> None:
    """`got`: the rows of what a broker served, in its order; `scores`: −score of the best."""
    equal = len(best) == len(got)
    for at in range(min(len(best), len(got))):
        row = got[at]
        equal &= (best[at] == served.subscription[row]) & (served.rank[row] == at + 1)
        equal &= abs(served.score[row] + scores[at]) <= SAME_SCORE * (1.0 + abs(scores[at]))
    if equal:
        return
    found = served.subscription[got]
    _sort(np.zeros(len(best)), best)
    _sort(np.zeros(len(found)), found)
    repeated, kept, extra, place = 0, 0, 0, 0
    for at in range(len(found)):
        if at and found[at] == found[at - 1]:
            repeated += 1
            continue
        while place < len(best) and best[place] < found[at]:
            place += 1
        if place < len(best) and best[place] == found[at]:
            kept += 1
        else:
            extra += 1
    missing = len(best) - kept
    counts[DUPLICATES] += repeated
    # A broker that lost its memory serves others until its clients are back.
    counts[FAULT if faulty else MISSED] += missing
    counts[SPURIOUS] += 0 if faulty else extra
    if missing + extra + repeated == 0:
        counts[SPURIOUS] += 1  # the right ones, but in the wrong order or with a wrong rank or score


@kernel(inner=True)
def _unreached(
    terms: Any, lives: Any, rows: Any, published: float, ended: float, event: Any, k: int, cause: int, counts: Any
) -> None:
    """The event did not reach this broker: count who missed it."""
    required = 0
    first, predicates, lists, listed, relaxed = terms.first, terms.predicates, terms.lists, terms.listed, terms.relaxed
    asked, settled, leaves = lives.asked, lives.settled, lives.asked_to_leave
    for row in range(rows[0], rows[1]):
        if asked[row] > published or leaves[row] <= published:
            continue
        if not reached(first, predicates, lists, listed, relaxed, row, event):
            continue
        if settled[row] <= published and leaves[row] > ended:
            required += 1
        else:
            counts[TRANSIENT] += 1
    counts[cause] += min(required, k)


@kernel(inner=True)
def _strays(terms: Any, entries: Any, hops: Any, begin: int, end: int, first_step: Any, event: Any) -> int:
    """Hops that no entry of the sender's table for that link explains."""
    publisher = len(first_step)  # which names the tree, where each publisher has its own
    for hop in range(begin, end):
        if hops.source[hop] == CLIENT:
            publisher = min(publisher, hops.target[hop])
    strays = 0
    first, predicates, lists, listed, relaxed = terms.first, terms.predicates, terms.lists, terms.listed, terms.relaxed
    steps, left, tree = entries.step, entries.left, entries.tree
    for hop in range(begin, end):
        link = hops.link[hop]
        if link == EXPLAINED:
            continue
        explained = False
        if link >= 0:
            here = first_step[hops.source[hop]]
            for entry in range(entries.first[link], entries.first[link + 1]):
                there = steps[entry] < here < left[entry]
                right = tree[entry] < 0 or tree[entry] == publisher
                if there and right and reached(first, predicates, lists, listed, relaxed, entries.row[entry], event):
                    explained = True
                    break
        strays += not explained
    return strays


@kernel
def order_by_event(event: Any, events: int) -> Any:
    """Where the rows of each event begin, and the rows stably sorted by event; rows of other events are left out."""
    first = np.zeros(events + 2, np.int64)
    for number in event:
        if 0 <= number < events:
            first[number + 2] += 1
    for number in range(1, events + 2):
        first[number] += first[number - 1]
    order = np.empty(first[events + 1], np.int64)
    for row in range(len(event)):
        if 0 <= event[row] < events:
            place = event[row] + 1
            order[first[place]] = row
            first[place] += 1
    return first[:-1], order
