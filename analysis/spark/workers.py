"""The process from which Spark forks its Python workers on this machine, with the modules that they need imported.

Spark's own daemon, `pyspark.daemon`, takes pyspark from an archive at the head of the path, whose modules are compiled
again at every start, and each worker then imports our modules itself. This is the same daemon with the installed
pyspark, and it imports our modules once: .4 s of CPU for the daemon and its first two workers instead of 1.8 s.
"""

from __future__ import annotations

import sys

sys.path[:] = [place for place in sys.path if not place.endswith(".zip")]

from pyspark.daemon import manager  # noqa: E402

import analysis.spark.parts  # noqa: F401, E402

if __name__ == "__main__":
    manager()
