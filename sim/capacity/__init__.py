"""How many events per second a network holds: a search over runs, see find.py."""
