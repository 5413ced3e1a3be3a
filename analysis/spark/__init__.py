"""From the traces of a sweep to numbers, on Spark.

traces        finds runs on disk and refuses those that cannot be trusted; verify: are they still as written?
aggregate     the Spark job and its results; parts: tables cut into parts, each counted where Spark sends it
metrics/      what is counted, and the metrics computed from the counts
statistics    over seeds
session       the one Spark of a process; java: finds a Java that is new enough; workers: Spark's Python processes
"""
