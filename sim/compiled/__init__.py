"""The compiled engine: the same runs as `broker.network`, in numba, on flat arrays. Same trace, same hash.

`support.py` says what it can run, `records.py` what the arrays hold, `advance.py` is the run itself, `bulk.py` loads
subscriptions that exist before time 0.
"""
