"""Scored one-dimensional interval indexes (VLDB 2008).

- `contract`: what each offers: the intervals that a value stabs, best score first
- `interval_tree`, `scored_interval_tree`: over one `skeleton`; `segment_tree`; `lanes`: how lists are merged by score
- `rtree`, `scored_rtree`, `aggregate_rtree`: over one `packed` tree
- `ir_tree`: R-trees in the nodes of an interval tree: `score_forest`, which keeps its nodes in a `slot_pool`
- `sopt_rtree`: the score-optimal R-tree, whose intervals lie as `arrangement` says
"""
