"""Compiled functions that several matchers share: `heaps`, `bits`, `rows` (growing arrays), `hashing`, `segments` (the
implicit tree), `value_codes` (values to cells), `structures` (what kernels borrow from Python), `threads`."""
