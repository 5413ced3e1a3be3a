"""From the traces of a sweep to numbers, on Spark.

runs          one run's folder, which is refused where it cannot be trusted; verify: is all still as written?
traces        the runs of a sweep, and their tables as DataFrames; compaction: many small runs in few files, a cache
metrics/      every metric, and the queries that it is computed with, as SQL; records: what queries know of a run
frames        these queries as lazy DataFrames; jobs: progress while they are computed
statistics    over seeds
jobs          waiting for Spark's jobs, which an interrupt cancels
session       the one Spark of a process; cluster: has a cluster room for us? java: finds a Java that is new enough
"""
