"""Runs in words: what happened to an event, and why.

explain   why an event did or did not reach a subscriber (`coverlay explain`); walk: hop by hop
knowledge what a broker knew at a step; truth: who should be served, by brute force
tables    which subscription is held where and why (`coverlay tables`); tables_in_words: for people and files
story     a few events of a run, told after `coverlay run`
run_trace one run on disk
as_text   subscriptions and events of a workload in the language that clients write
keep      what a sweep writes beside its traces, for its page; study_bounds: what theory and profiles say about a study
"""
