"""What one would use instead of covering/: each answers the same question over the dominance points.

- `scalar-scan`: the obvious numba loop with an early exit (`scan`), the yardstick of the targets;
- `numpy`: one vectorised comparison;
- `rtree`: libspatialindex over the points; a query is the box from the query's point upwards;
- `ckdtree`: SciPy's k-d tree; a query is the ball in the maximum norm that has the query's point as its lower
  corner and is large enough to reach past every stored point, which holds exactly the dominating ones.

Both libraries report *all* covers rather than one, which is unfair to them on covered queries; on uncovered
ones, which the targets are about, there is none to report. They know no ±∞, so bounds are clipped far
outside the domain. A peer that is not installed is left out. `single` takes one box, `batch` many.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import covering
from sim.workloads.boxes import Boxes

_FAR = 1e3  # beyond every bound of the unit-domain workloads
Points = NDArray[np.float64]


def _points(boxes: Boxes) -> Points:
    points = np.empty((len(boxes), 2 * boxes.shape[1]))
    points[:, 0::2], points[:, 1::2] = -boxes[:, :, 0], boxes[:, :, 1]
    return np.clip(points, -_FAR, _FAR)


def _clip(bound: float) -> float:
    return min(max(bound, -_FAR), _FAR)


def _point(box: Boxes) -> list[float]:
    """One box, in the way that is fastest for a few numbers."""
    return [bound for low, high in box.tolist() for bound in (_clip(-low), _clip(high))]


class Ours:
    """A method of covering/; it answers with an id instead of True, and None instead of False."""

    def __init__(self, name: str, boxes: Boxes) -> None:
        self.index = covering.create(name, [[0, 1]] * boxes.shape[1])
        self.index.add_many(np.arange(len(boxes)), boxes)
        self.single, self.batch = self.index.find_cover, self.index.find_cover_many

    @property
    def nbytes(self) -> int:
        return self.index.nbytes  # `auto` may have chosen another method since


class NumpyScan:
    def __init__(self, boxes: Boxes) -> None:
        self.points = _points(boxes)
        self.nbytes = self.points.nbytes

    def single(self, box: Boxes) -> bool:
        return bool((self.points >= _point(box)).all(axis=1).any())

    def batch(self, boxes: Boxes) -> list[bool]:
        return [self.single(box) for box in boxes]


class Rtree:
    def __init__(self, boxes: Boxes) -> None:
        from rtree import index

        points = _points(boxes)
        dimension = points.shape[1]
        properties = index.Property(dimension=dimension, variant=index.RT_Star, fill_factor=0.9, leaf_capacity=100)
        self._top = [_FAR] * dimension
        stream = ((i, (*p, *p), None) for i, p in enumerate(points.tolist()))
        self._index: Any = index.Index(stream, properties=properties)
        self.nbytes = 0  # libspatialindex does not tell

    def single(self, box: Boxes) -> bool:
        return next(iter(self._index.intersection((*_point(box), *self._top))), None) is not None

    def batch(self, boxes: Boxes) -> list[bool]:
        low = _points(boxes)
        high = np.full_like(low, _FAR)
        _, counts = self._index.intersection_v(low, high)
        return (counts > 0).tolist()


class CKDTree:
    def __init__(self, boxes: Boxes) -> None:
        from scipy.spatial import cKDTree

        points = _points(boxes)
        self._tree = cKDTree(points)
        self.nbytes = points.nbytes * 2  # its own copy, indices and nodes: a lower bound
        self._radius = float(points.max() - points.min()) + 2.0

    def single(self, box: Boxes) -> bool:
        centre = np.array(_point(box)) + self._radius
        return bool(self._tree.query_ball_point(centre, self._radius, p=np.inf, return_length=True))

    def batch(self, boxes: Boxes) -> list[bool]:
        centres = _points(boxes) + self._radius
        return (self._tree.query_ball_point(centres, self._radius, p=np.inf, return_length=True) > 0).tolist()


PEERS: dict[str, Callable[[Boxes], Any]] = {
    "scalar-scan": partial(Ours, "scan"),
    "numpy": NumpyScan,
    "rtree": Rtree,
    "ckdtree": CKDTree,
}
LIBRARIES = ("rtree", "ckdtree")
