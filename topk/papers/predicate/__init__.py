"""Interval predicate indexes of "Efficient Interval Indexing for Content-Based Subscription" (IBM, 2004)."""
