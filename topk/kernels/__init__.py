"""Compiled functions that several matchers share: `heaps`, `bits`, `rows` (growing arrays), `hashing`, `segments` (the
implicit tree), `value_codes` (values to cells), `threads`."""
