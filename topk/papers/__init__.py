"""What the papers describe: `interval` (VLDB 2008), `predicate` (IBM 2004), and `threshold_merge`, which makes matchers
of several attributes out of indexes of one (`threshold_rounds`: its inner loops).
"""
