"""Traces of runs: `schema` (tables, columns, hash), `recorder` (what a run writes), `sampling`, `buckets` (percentiles
from counts), `digests` (a flipped bit is noticed), `disk` (files appear whole or not at all).

`from broker import trace` gives the names of the schema.
"""

from broker.trace.schema import *  # noqa: F403
