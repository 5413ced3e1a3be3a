"""Top-k matching on BE-Tree and BE*-Tree (ICDE 2012, §VI, Algorithms 6 and 7).

p-nodes wait in one max-heap by an upper bound of their scores; the best is searched next. Two prunings: an l-node
whose bound is below the k-th score is not scanned, and when the best p-node's is, the whole search ends. Ours adds a
third: a bucket whose largest usual score (see `scores.reach`) is too low is skipped with all its descendants.
Without `prune` (BE-Tree has no top-k of its own) everything relevant is visited and the k best are kept. Without usual
scores (`arena.USUAL`) it is the paper's search.

The usual score is one number per node; the bound by weights (`upper_score`) takes a look per attribute of the event. A
p-node is queued by the first and tested by the second when its turn comes; an l-node is tested by the second only if
it is long. Both descendants of a bucket are judged when the bucket is: their cache lines (`arena.NODE`) are fetched at
once, and what is ruled out is never stacked. The expressions of an l-node are compared in packed copies (`blocks`) that
lie in the order of the l-nodes; most need an attribute that the event lacks, as 64 bits per entry (`Tree.needs`) tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.hashing import lookup
from topk.kernels.heaps import in_order, offer, pop, push
from topk.kernels.rows import floats, ints, longer
from topk.sparse.be.arena import BLOCK, RECURSIVE, RIGID, USUAL, Tree, attribute_bit, slot_of
from topk.sparse.blocks import MAY_MATCH, Packed, compare, pack_codes
from topk.sparse.contract import Workspace
from topk.sparse.rows import Rows, clear, holds, row_score, spread
from topk.sparse.scores import Scoring, at_most, lowered, raised, reach
from topk.sparse.upkeep import COMPARISONS, ENTRIES, NODES, QUEUED

_FEW = 16  # expressions that are compared as quickly as the weight bound of their l-node


@kernel(inner=True)
def upper_score(top: Any, columns: Any, score: Scoring) -> float:
    """uscore: the score that the event's weights and the largest weights of the attributes can give."""
    total = score.start
    for i in range(len(columns[0])):
        weight = top[slot_of(top, columns[0][i])]
        if weight == np.inf:  # beyond float32: no bound
            return np.inf
        total = at_most(score, total, weight, columns[3][i])
    return raised(total)


@kernel(inline="always")
def worth(here: Any, low: float, high: float, rigid: bool, least_usual: float) -> Any:
    """Whether a bucket of a c-directory, or what is below it, can hold a result; 0 or 1."""
    meets = here.own_lo <= high and low <= here.own_hi if rigid else here.all_lo <= high and low <= here.all_hi
    return 1 if meets and not here.all_score < least_usual else 0


@kernel
def match(
    t: Tree, rows: Rows, packed: Packed, columns: Any, extra: Any, space: Workspace, k: int, prune: bool, learn: bool
) -> int:
    event, codes, best, ids, counts = space
    spread(event, *columns)
    pack_codes(packed, columns, codes)
    # Arrays by name: taking them out of the tuples in a loop would count references at every access.
    node, bucket_top, pnode, pnode_top = t.node, t.bucket_top, t.pnode, t.pnode_top
    entries, keys_of, pnode_of, score = t.entries, t.keys, t.values, t.scoring
    blocks, step = packed.blocks, packed.step[0]
    attributes, low_event, high_event = columns[0], event[0], event[1]
    present, needs = np.uint64(0), t.needs
    for a in attributes:
        present |= attribute_bit(a)
    missing = ~present
    scores, found = best[:k], ids[:k]
    keys, items, waiting = floats(np.int64(64)), ints(np.int64(64)), np.int64(0)  # keys are negated bounds
    stack, depth = ints(np.int64(256)), 1
    size, nodes, ranges, discarded, evaluations, queued = np.int64(0), 0, 0, 0, 0, 0
    lookups, weights = 0, 0  # p-nodes sought in directories, and weights read for bounds
    rigid, recursive = t.knobs[RIGID] != 0.0, t.knobs[RECURSIVE] != 0.0
    # As published: NaN, so that no usual score ever prunes, and the bound by weights of every l-node.
    usual, few = (reach(columns, t.reference, score), _FEW) if t.knobs[USUAL] else (np.nan, 0)
    least, least_usual = -np.inf, -np.inf  # the k-th score, and the usual score that can reach it
    stack[0], p, low, high = 0, -1, 0.0, 0.0
    while True:
        while depth:
            depth -= 1
            b = stack[depth]
            here = node[b]
            nodes += 1
            if p >= 0:
                if here.all_score < least_usual:  # which has risen since
                    continue
                if here.left >= 0:
                    if depth + 2 > len(stack):
                        stack = longer(stack, depth + 2)
                    left, right = node[here.left], node[here.right]
                    ranges, discarded = ranges + 2, discarded + 2 + depth
                    stack[depth] = here.left
                    depth += worth(left, low, high, rigid, least_usual)
                    stack[depth] = here.right
                    depth += worth(right, low, high, rigid, least_usual)
                    discarded -= depth
                ranges += 1
                if not (here.own_lo <= high and low <= here.own_hi):
                    discarded += 1
                    continue
            hopeless = here.leaf_score < least_usual
            if here.count > few and not hopeless and least > -np.inf:
                weights += len(attributes)
                hopeless = upper_score(bucket_top[b], columns, score) < least
            if here.count and not hopeless:
                wasted = 0
                counts[ENTRIES] += here.count
                for i in range(here.start, here.start + here.count):
                    if needs[i] & missing:
                        wasted += 1
                        evaluations += 1
                        continue
                    block = entries[i, BLOCK]
                    verdict = compare(blocks, step, block, codes, event, score, least)
                    evaluations += verdict if verdict > 0 else blocks[block, 1]
                    if verdict != MAY_MATCH:
                        wasted += max(verdict, 0)
                        continue
                    row = blocks[block, 0]
                    if holds(rows, row, event, extra):
                        queued += 1
                        size = offer(scores, found, size, row_score(rows, row, event, score), rows.ids[row])
                        if prune and size == k:
                            least = scores[0]
                            least_usual = lowered(least) / usual
                if learn and p >= 0:
                    pnode[p].loss += np.float32(wasted)
            if here.first < 0:
                continue
            needed = waiting + max(len(attributes), here.pcount)
            if needed > len(keys):
                keys, items = longer(keys, needed), longer(items, needed)
            # A short directory is walked, a long one is looked up.
            walked = here.pcount <= len(attributes)
            following = here.first
            lookups += here.pcount if walked else len(attributes)
            for i in range(here.pcount if walked else len(attributes)):
                q = following if walked else lookup(keys_of, pnode_of, b, attributes[i])
                if walked:
                    following = pnode[q].next
                if q < 0 or np.isnan(low_event[pnode[q].attr]) or pnode[q].score < least_usual:
                    continue
                bound = 0.0
                if prune:  # NaN: usual scores are no bound
                    bound = raised(pnode[q].score * usual)
                    if np.isnan(usual):
                        weights += len(attributes)
                        bound = upper_score(pnode_top[q], columns, score)
                if not bound < least:
                    queued += 1
                    waiting = push(keys, items, waiting, -bound, q)
        if learn and recursive and p >= 0:
            pnode[p].loss += np.float32(discarded)
        discarded = 0
        if waiting == 0 or (prune and -keys[0] < least):
            break
        p = items[0]
        waiting, queued = pop(keys, items, waiting), queued + 1
        if learn:
            pnode[p].seen += np.float32(1.0)
        # Where usual scores are no bound, it was queued by this one already.
        if prune and least > -np.inf and not np.isnan(usual):
            weights += len(attributes)
            if upper_score(pnode_top[p], columns, score) < least:
                continue
        low, high = low_event[pnode[p].attr], high_event[pnode[p].attr]
        stack[0], depth = pnode[p].root, 1
    clear(event, columns[0])
    counts[NODES] += nodes
    counts[COMPARISONS] += ranges + evaluations + lookups + weights
    counts[QUEUED] += queued
    return in_order(scores, found, size)
