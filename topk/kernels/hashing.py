"""A hash table from (owner, attribute) to a number, in two arrays that kernels read: open addressing, linear probing.

A dropped key leaves a tombstone. The owner of the table counts the slots ever used and makes a new table, at least
three times as large as its entries, before more than half is used. Owners fit 39 bits, attributes 24.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel

EMPTY, DEAD = -1, -2  # instead of a key


def emptied(size: int, dtype: Any = np.int64) -> tuple[NDArray[np.int64], Any]:
    """Keys and values of an empty table; the size is a power of two."""
    return np.full(size, EMPTY, np.int64), np.zeros(size, dtype)


@kernel(inline="always")
def _key(owner: int, attribute: int) -> Any:
    return (np.int64(owner) << 24) | attribute


@kernel(inline="always")
def _slot(key: int, size: int) -> Any:
    return np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (size - 1)


@kernel
def lookup(keys: Any, values: Any, owner: int, attribute: int) -> int:
    """What is filed under the owner and attribute, −1 if nothing is."""
    key = _key(owner, attribute)
    at = _slot(key, len(keys))
    while keys[at] != EMPTY:
        if keys[at] == key:
            return values[at]
        at = (at + 1) & (len(keys) - 1)
    return -1


@kernel(inner=True)
def put(keys: Any, values: Any, owner: int, attribute: int, value: int) -> int:
    """File a value under a new key; returns how many more slots are used, 0 or 1."""
    key = _key(owner, attribute)
    at = _slot(key, len(keys))
    while keys[at] >= 0:
        at = (at + 1) & (len(keys) - 1)
    fresh = 1 if keys[at] == EMPTY else 0
    keys[at], values[at] = key, value
    return fresh


@kernel(inner=True)
def drop(keys: Any, owner: int, attribute: int) -> None:
    """Remove a key, which must be there."""
    key = _key(owner, attribute)
    at = _slot(key, len(keys))
    while keys[at] != key:
        at = (at + 1) & (len(keys) - 1)
    keys[at] = DEAD


@kernel
def _refill(keys: Any, values: Any, old_keys: Any, old_values: Any) -> int:
    """File all entries of another table; returns how many there are."""
    count = 0
    for i in range(len(old_keys)):
        if old_keys[i] >= 0:
            count += put(keys, values, old_keys[i] >> 24, old_keys[i] & 0xFFFFFF, old_values[i])
    return count


def numbered(owners: Any, attributes: Any, size: int) -> tuple[Any, Any, int]:
    """A table that numbers these (owner, attribute) keys 0, 1, …; also returns how many slots are used."""
    fresh = emptied(size)
    keys = (owners.astype(np.int64) << 24) | attributes
    return *fresh, _refill(*fresh, keys, np.arange(len(keys)))


def with_slots(keys: Any, values: Any, used: int, entries: int, extra: int) -> tuple[Any, Any, int]:
    """The table, or a new one with its entries, with slots for `extra` more; also returns how many slots are used."""
    if 2 * (used + extra) <= len(keys):
        return keys, values, used
    size = 256
    while size < 3 * (entries + extra):
        size *= 2
    fresh = emptied(size, values.dtype)
    return *fresh, _refill(*fresh, keys, values)
