"""Experiments, from a TOML file to the traces of all its runs.

config (sections and keys), effects and reasons (keys without effect), dotted (`covering.epsilon`)
keys      every key with its meaning, from the model; reference: shown
plan      file, `--set` and sweep → list of runs; points: the combinations of a sweep
sweep     all runs of a plan, on cores or a Spark cluster; runner: one run; build: its parts; run_notes: what to know
engines   SimPy or compiled; faults: what fails when
oracle    what must have been delivered, by brute force; oracle_truth: who is reached; oracle_events: the loop over
          events; oracle_paths: the way of an event
predict   how large a run will be, also in sentences, before a sweep
"""
