"""What work costs on this machine: measures the coefficients of a profile (broker/work.py) by least squares.

- measure.py: does every kind of work at several sizes and dimensions, and measures the time
- fit.py: coefficients from counts and times, and how well they fit
- profile.py: what to measure, and the profile as a file and in words

A sample is what was counted, on average per operation, and the least time that it took. The coefficients are 0 or more
and have the smallest relative errors. Then another workload, of a size and seed that were not fitted, is predicted and
measured: `held_out`, as predicted ÷ measured.
"""

from sim.calibrate.profile import calibrate, in_words, refuse_unusable, to_profile, write_profile

__all__ = ["calibrate", "in_words", "refuse_unusable", "to_profile", "write_profile"]
