"""Canopy, our index of one attribute: `index` (the matcher), `relevant` and `lists` (its build), `query`."""
