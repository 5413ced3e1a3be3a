"""Types of arrays, and checks of what users give that catalogues, matchers and events share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coverlay import CoverlayError, quoted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_INT64 = np.iinfo(np.int64)


def numbers(what: str, values: Any) -> Floats:
    """The user's values as an array; CoverlayError if they are not numbers."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    try:
        given = np.asarray(values)
        texts = given.dtype.kind == "O" and any(isinstance(value, (str, bytes)) for value in given.flat)
        if given.dtype.kind in "biufO" and not texts:  # neither text, nor dates, nor complex numbers
            return given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):  # not convertible, or rows of different lengths
        pass
    raise CoverlayError(f"{what} must be numbers, not {quoted(values)}")


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or numpy; True and False are not."""
    return type(value) is int or (isinstance(value, (int, np.integer)) and not isinstance(value, bool))


def checked_id(id: Any) -> int:
    if is_whole(id) and _INT64.min <= id <= _INT64.max:
        return int(id)
    raise CoverlayError(f"an id must be a whole number from −2^63 to 2^63 − 1, not {quoted(id)}")


def checked_ids(ids: Any, n: int) -> Ints:
    """The ids of n subscriptions, 0 to n − 1 unless given."""
    if ids is None:
        return np.arange(n, dtype=np.int64)
    try:
        array = np.array(ids)
        if array.dtype.kind != "i":  # no ids at all, or one is not a 64-bit integer: name that one
            array = np.array([checked_id(id) for id in ids], dtype=np.int64)
    except (TypeError, ValueError) as problem:
        if isinstance(problem, CoverlayError):
            raise
        raise CoverlayError(f"ids must be a list or an array of whole numbers, not {quoted(ids)}") from None
    array = array.astype(np.int64)
    if array.shape != (n,):
        raise CoverlayError(f"ids must have the shape ({n},), not {array.shape}")
    values, counts = np.unique(array, return_counts=True)
    if len(values) != n:
        raise CoverlayError(f"ids must be distinct; {values[counts > 1][0]} occurs more than once")
    return array
