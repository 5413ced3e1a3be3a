"""See README.md and the module docstrings."""
