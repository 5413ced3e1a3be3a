"""Scored one-dimensional interval indexes (VLDB 2008)."""
