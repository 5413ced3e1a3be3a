"""How many events per second a network holds: a search over runs, see find.py.

- `find`: all points of an experiment at once, each round of runs as one sweep
- `search`: which rates to try; `load`: what a run says about its rate
- `sentences`: what was found, in words and as rows
"""
