"""Routing: which subscriptions are sent over a link, and which are held back, by whom. It knows no simulation.

- `overlay/`: the brokers' graph, by kind or from a file, with latencies, maps, and the trees that messages follow
- `filter`: a compiled subscription; `advertisements`: what publishers announce
- `contract`: what a strategy is asked; `strategies/`: one file each, and the registry
- `ledger`: per link, what was sent, and what was held back by whom
- `rank`: who outranks whom, for the k best of a whole network
- `options`: checks of what a user wrote
"""
