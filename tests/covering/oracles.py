"""Obvious, slow twins of what covering/ does fast."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np


def contains(outer: np.ndarray, inner: np.ndarray) -> bool:
    """Every bound of `inner` lies within `outer`, both closed."""
    return all(o[0] <= i[0] and i[1] <= o[1] for o, i in zip(outer, inner, strict=True))


def covers(stored: dict[int, np.ndarray], box: np.ndarray) -> set[int]:
    return {id for id, other in stored.items() if contains(other, box)}


def covered(stored: dict[int, np.ndarray], box: np.ndarray) -> list[int]:
    return sorted(id for id, other in stored.items() if contains(box, other))


def z_key(cell: Sequence[int], bits: int) -> int:
    key = 0
    for b in range(bits - 1, -1, -1):
        for c in cell:
            key = key << 1 | (c >> b & 1)
    return key


def greedy_cubes(lengths: Sequence[int], bits: int) -> list[tuple[int, tuple[int, ...]]]:
    """(level, corner) of the standard cubes of [0, l_1) × …, by decreasing size, then by key: by recursion."""
    cubes: list[tuple[int, tuple[int, ...]]] = []

    def visit(level: int, corner: tuple[int, ...]) -> None:
        if all(c + (1 << level) <= length for c, length in zip(corner, lengths, strict=True)):
            cubes.append((level, corner))
        elif level and all(c < length for c, length in zip(corner, lengths, strict=True)):
            half = 1 << (level - 1)
            for steps in itertools.product((0, half), repeat=len(corner)):
                visit(level - 1, tuple(c + s for c, s in zip(corner, steps, strict=True)))

    visit(bits, (0,) * len(lengths))
    return sorted(cubes, key=lambda cube: (-cube[0], z_key(cube[1], bits)))


def count_runs(keys: Iterable[int]) -> int:
    """Maximal stretches of consecutive integers."""
    held = set(keys)
    return sum(key + 1 not in held for key in held)


def cells(lengths: Sequence[int]) -> Iterable[tuple[int, ...]]:
    return itertools.product(*(range(length) for length in lengths))
