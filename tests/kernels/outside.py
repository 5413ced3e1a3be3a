"""A module that is none of the packages, with a constant that a kernel takes from it."""

TWO = 2
