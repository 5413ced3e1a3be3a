"""BE-Tree and BE*-Tree (`tree`, `star`): nodes in flat arrays (`arena`) and one file per operation on them."""
