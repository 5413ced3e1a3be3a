"""Slices, our index of several attributes: `index` (the matcher and its build), `query`."""
