"""The compiled engine: the same runs as `broker.network`, in numba, on arrays of records. Same trace, same hash.

support.py       what it can run
records.py       the records: messages, links, nodes, rows of the trace
state.py         the structure that holds them all and that every kernel takes
engine.py        builds it from settings and workload, and drives the kernels; topology.py: the overlay's part of it
advance.py       the run itself; calendar.py, transport.py, processing.py: what happens to a message
tables.py        whom an event is compared with; filters.py: in which order; residues.py: what boxes cannot say
link_ledgers.py, link_strategies.py   what is sent over a route; covers*.py: the covering indexes that it asks
bulk.py          loads subscriptions that exist before time 0
trace.py         what was written, as Arrow tables
"""
