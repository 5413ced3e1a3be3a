"""From the traces of a sweep to numbers, on Spark.

traces        finding runs on disk and refusing what cannot be trusted; verify: are they still as written?
aggregate     the Spark job and its results; parts: tables cut into parts, each counted wherever Spark sends it
metrics/      what is counted, and the metrics that follow from the counts
statistics    over seeds
session       the one Spark of a process; java: finding one that is new enough; workers: Spark's Python processes
"""
