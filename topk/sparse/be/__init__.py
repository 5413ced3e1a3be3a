"""BE-Tree and BE*-Tree (`tree`, `star`): nodes in flat arrays (`arena`) and one file per operation on them.

- `insert`, `delete`: an expression comes and goes
- `cluster`, `split`: an overflowing bucket is clustered, partitioned, split in three
- `bounds`: boxes and weight bounds, raised and lowered on the way
- `match`: the k best; `layout`: nodes in the order in which it meets them
- `check`: the invariants
"""
