"""What users give: boxes, domains and limits, checked; and boxes as dominance points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coverlay import CoverlayError, kernel, quoted

Floats = NDArray[np.float64]

FINE, _NAN, _INVERTED = 0, 1, 2


@kernel
def to_point(box: Floats, point: Floats) -> int:
    """Write the dominance point of `box`; report what is wrong with the box, if anything."""
    for j in range(box.shape[0]):
        lo, hi = box[j, 0], box[j, 1]
        if np.isnan(lo) or np.isnan(hi):
            return _NAN
        if lo > hi:
            return _INVERTED
        point[2 * j] = -lo
        point[2 * j + 1] = hi
    return FINE


@kernel
def to_points(boxes: Floats, points: Floats) -> tuple[int, int]:
    """Write the dominance points of all boxes; (what is wrong, which box) of the first bad one."""
    for i in range(boxes.shape[0]):
        wrong = to_point(boxes[i], points[i])
        if wrong != FINE:
            return wrong, i
    return FINE, 0


def _numbers(given: ArrayLike) -> Floats:
    """An array of floats; TypeError, ValueError or OverflowError if the values are no numbers."""
    array = np.asarray(given)
    texts = array.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in array.flat)
    if texts or array.dtype.kind not in "biufO":  # neither text that looks like a number nor a date is one
        raise TypeError
    return np.asarray(array, dtype=np.float64)


def checked_domain(domain: ArrayLike) -> Floats:
    """A domain as a (d, 2) array; CoverlayError if it is not one."""
    try:
        bounds = _numbers(domain).copy()
    except (TypeError, ValueError, OverflowError):
        raise CoverlayError(f"domain {quoted(domain)} must be a (d, 2) array of numbers") from None
    if bounds.shape == (2,):  # one attribute
        bounds = bounds.reshape(1, 2)
    if bounds.ndim != 2 or bounds.shape[1] != 2 or bounds.shape[0] == 0:
        raise CoverlayError(f"domain of shape {bounds.shape} must be (d, 2): one [lo, hi] per attribute")
    for j, (lo, hi) in enumerate(bounds.tolist()):
        if not (np.isfinite(lo) and np.isfinite(hi) and lo <= hi):
            raise CoverlayError(f"domain bounds [{lo}, {hi}] of attribute {j} must be finite with lo ≤ hi")
    return bounds


def check_limit(option: str, value: object) -> None:
    """CoverlayError unless the value can limit the work of a search."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise CoverlayError(f"{option} {value!r} must be a whole number of at least 1")


def coerced(box: ArrayLike, shape: tuple[int, ...], meaning: str) -> Floats:
    """A box or boxes as a contiguous array of this shape, whose last two lengths are d and 2."""
    try:
        array = _numbers(box)
    except (TypeError, ValueError, OverflowError):
        raise CoverlayError(f"box {quoted(box)} must be a {meaning} array of numbers") from None
    if shape[-2] == 1:
        array = _with_brackets(array, len(shape))
    if array.shape != shape:
        raise CoverlayError(
            f"box of shape {array.shape} must have shape {meaning} with d = {shape[-2]}: "
            "one closed [lo, hi] per attribute"
        )
    return np.ascontiguousarray(array)


def _with_brackets(array: Floats, dimensions: int) -> Floats:
    """Boxes of one attribute, given as pairs of bounds or as single values, with all their brackets."""
    if array.ndim == dimensions - 2:
        array = np.stack([array, array], axis=-1)
    return array[..., None, :] if array.ndim == dimensions - 1 else array


def complaint(wrong: int, box: Floats) -> str:
    rule = "NaN is not a bound" if wrong == _NAN else "lo must not exceed hi"
    return f"box {box.tolist()} is not valid: {rule}"
