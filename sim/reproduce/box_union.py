"""Is a box covered by several stored boxes together, though by none alone?

Ouksel, Jurca, Podnar and Aberer (Middleware 2006, in the slides' related work) sample the box: a sample in no
stored box proves that it is not covered, and N samples without such a witness make it likely that it is.
"Not covered" is always right, "covered" may be wrong: suppressing a subscription because of it can lose events.
So only the reproduction uses this.

What ours changes: samples are taken per *cell*. In each attribute, the bounds of the stored boxes cut the box
into intervals in which membership cannot change; a cell is a product of them, so one value per cell decides
it, unbounded sides and point intervals included. If a share ρ of the cells is uncovered, N samples miss them
all with probability (1 − ρ)^N. The answer states that bound for the share asked for.

The exact test (covering/subtraction.py) is refused beyond `MAX_PIECES`. Both treat float64 values
as they are: [0, 1] and [next float after 1, 2] together cover [0, 2].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from covering.given import Floats
from covering.subtraction import GAVE_UP, left_over
from coverlay import CoverlayError, kernel

MAX_PIECES = 100_000  # left-over pieces the exact test handles, about a second
MAX_SAMPLES = 1_000_000


@dataclass(frozen=True)
class UnionAnswer:
    """Is the box covered, and how far that can be trusted."""

    covered: bool
    exact: bool  # decided without doubt: a witness was found, every cell was looked at, or the exact test ran
    error: float  # P(a box with at least `share` of its cells uncovered is called covered); 0 if exact
    witness: tuple[float, ...] | None  # a value vector in the box that no stored box contains


def covered_by_union(
    box: ArrayLike, boxes: ArrayLike, *, error: float = 1e-3, share: float = 0.01, seed: int = 0
) -> UnionAnswer:
    """The probabilistic test: as many samples as push P(error | ≥ `share` uncovered) to `error` or below."""
    for name, value in (("error", error), ("share", share)):
        if not 0.0 < value < 1.0:
            raise CoverlayError(f"{name} {value!r} must be a number between 0 and 1")
    target, others = _normal(box, boxes)
    starts = _starts(target, others)
    cells = math.prod(len(axis) for axis in starts)
    wanted = min(math.ceil(math.log(error) / math.log1p(-share)), MAX_SAMPLES)
    rng = np.random.default_rng(seed)
    if cells <= wanted:  # cheaper to look at every cell than to sample
        grid = np.stack(np.meshgrid(*starts, indexing="ij"), axis=-1).reshape(-1, len(starts))
        hole = int(_first_uncovered(np.ascontiguousarray(grid), others))
        return _answer(grid, hole, exact=True, error=0.0)
    values = np.stack([axis[rng.integers(0, len(axis), wanted)] for axis in starts], axis=1)
    hole = int(_first_uncovered(np.ascontiguousarray(values), others))
    return _answer(values, hole, exact=hole >= 0, error=(1 - share) ** wanted)


def exactly_covered_by_union(box: ArrayLike, boxes: ArrayLike) -> UnionAnswer:
    """The exact test: subtract the boxes one by one; any point that is left over is a witness."""
    target, others = _normal(box, boxes)
    count, pieces, _ = left_over(target, others, MAX_PIECES)
    if count == GAVE_UP:
        raise CoverlayError(
            f"{len(others)} boxes cut the box into more than {MAX_PIECES} pieces; use the probabilistic test"
        )
    witness = tuple(pieces[0][:, 0].tolist()) if count else None
    return UnionAnswer(not count, True, 0.0, witness)


def _answer(values: Floats, hole: int, *, exact: bool, error: float) -> UnionAnswer:
    if hole >= 0:
        return UnionAnswer(False, True, 0.0, tuple(values[hole].tolist()))
    return UnionAnswer(True, exact, error, None)


def _normal(box: ArrayLike, boxes: ArrayLike) -> tuple[Floats, Floats]:
    target = np.array(box, dtype=np.float64)
    if target.ndim != 2 or target.shape[1] != 2 or np.isnan(target).any() or (target[:, 0] > target[:, 1]).any():
        raise CoverlayError(f"box {box!r} must be a (d, 2) array of closed bounds with lo ≤ hi")
    others = np.array(boxes, dtype=np.float64).reshape(-1, *target.shape)
    meets = ((others[:, :, 0] <= target[:, 1]) & (others[:, :, 1] >= target[:, 0])).all(axis=1)
    kept = others[meets]
    # Large boxes first: the exact test then cuts off large parts early.
    widths = np.minimum(kept[:, :, 1], target[:, 1]) - np.maximum(kept[:, :, 0], target[:, 0])
    with np.errstate(invalid="ignore"):
        order = np.argsort(-np.nan_to_num(widths, nan=0.0, posinf=1e300).sum(axis=1), kind="stable")
    return target, np.ascontiguousarray(kept[order])


def _starts(target: Floats, others: Floats) -> list[Floats]:
    """Per attribute, the first value of each interval in which membership in every box is constant."""
    axes = []
    for j, (low, high) in enumerate(target.tolist()):
        values = {low, *others[:, j, 0].tolist(), *np.nextafter(others[:, j, 1], np.inf).tolist()}
        axes.append(np.array(sorted(v for v in values if low <= v <= high)))
    return axes


@kernel
def _first_uncovered(values: Floats, boxes: Floats) -> int:
    """Index of the first value vector that lies in no box, or −1."""
    for i in range(values.shape[0]):
        inside = False
        for b in range(boxes.shape[0]):
            inside = True
            for j in range(values.shape[1]):
                if not (boxes[b, j, 0] <= values[i, j] <= boxes[b, j, 1]):
                    inside = False
                    break
            if inside:
                break
        if not inside:
            return i
    return -1
