"""Interval predicate indexes of "Efficient Interval Indexing for Content-Based Subscription" (IBM, 2004).

- `contract`: what all share: the integer grid, the rows, ranking on top
- `construct`, `pieces`: virtual construct intervals, and the lists of rows that hang on them
- `bitmap`: SCI, SCI-BC, LCI, LCI-BC; `virtual`: SCI-BV, LCI-BV, without and with the distance table
- `dlist`, `ibs_tree`, `islist` (over a `skip_list`): what they are compared with
"""
