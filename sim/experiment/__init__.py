"""Experiments, from a TOML file to the traces of all its runs.

config    sections and keys, in config_world, config_methods (config_base: what they share); effects, reasons: keys
          without effect; dotted: keys like `covering.epsilon`
keys      every key with its meaning, from the model; reference: how they are shown; start: a commented file
plan      file, `--set` and sweep → list of runs; points: the combinations of a sweep
sweep     all runs of a plan, on cores or a Spark cluster; runner: one run; build: its parts; run_notes: notes about it
engines   SimPy or compiled; faults: what fails when
oracle    what must have been delivered, by brute force; oracle_truth: who is reached; oracle_due: who was due;
          oracle_events: due against delivered; oracle_paths: the path of an event; oracle_network: the k best of the
          whole network; oracle_lives, oracle_versions: when subscriptions came, settled, left and changed rank
predict   how large a run will be, before it starts, also in sentences
"""
