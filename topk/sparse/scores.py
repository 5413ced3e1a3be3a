"""How the weights of a matching expression become its score: any monotone function, folded over its predicates.

A score starts at `start` and takes the predicates in attribute order: total = f(total, weight, event weight). All that
the matchers ask of f is that it never falls when one of its three arguments rises. Two facts follow by induction,
and every bound in this package is one of them:

1. Replacing weights by larger ones (the largest of a node, a code rounded up) cannot lower the result.
2. total = max(total, f(total, W, e)) over a superset of the attributes bounds the fold over every subset of them.

Named scores: sum (the paper's vector space model), max, min (the weakest predicate counts), product, and noisy-or
(1 − Π(1 − w·e), the chance that one of independent reasons holds; weights from 0 to 1). Any other:

    def saturating(total, weight, event_weight):
        return total + weight * event_weight / (1.0 + weight * event_weight)
    topk.create("pivot", catalogue, score=topk.sparse.monotone(saturating))

The function is compiled to machine code and called by its address, an integer argument of the kernels: they are
compiled (and cached) once for all scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numba.extending import intrinsic

from coverlay import CoverlayError, kernel, unknown_name

SUM, MAX, MIN, PRODUCT, NOISY_OR = range(5)  # codes; anything larger is the address of a function
_SLACK = 1e-9  # relative: the same fold with other operands may round differently
_TINY = 1e-300  # absolute: smaller numbers have few bits left and no relative slack is enough
_UP, _LEAST = 3e-7, 1.5e-45  # what float32 may round away: relative, and absolute for the smallest numbers
LARGEST_USUAL = 1e300  # usual weights are capped here, so that 0 is never multiplied by infinity
MARGIN = 1.25  # event weights up to this times the usual ones have bounds when the score is not linear


class Scoring(NamedTuple):
    """What kernels receive."""

    code: int
    start: float
    linear: bool  # f scales with the event's weights: score(c · weights) = c · score(weights), and is not negative


@intrinsic
def _call(_: Any, address: Any, total: Any, weight: Any, event_weight: Any) -> Any:
    """Call the machine code at `address` with three floats."""
    from llvmlite import ir
    from numba import types

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        double = ir.DoubleType()
        kind = ir.FunctionType(double, [double] * 3)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.float64(types.int64, types.float64, types.float64, types.float64), code


@kernel(inline="always")
def combine(score: Scoring, total: float, weight: float, event_weight: float) -> Any:
    """f: take one more predicate into the score."""
    if score.code == SUM:
        return total + weight * event_weight
    return _combine_other(score.code, total, weight, event_weight)


@kernel(inner=True)
def _combine_other(code: int, total: float, weight: float, event_weight: float) -> float:
    both = weight * event_weight
    if code == MAX:
        return max(total, both)
    if code == MIN:
        return min(total, both)
    if code == PRODUCT:
        return total * both
    if code == NOISY_OR:
        return 1.0 - (1.0 - total) * (1.0 - min(both, 1.0))
    return _call(code, total, weight, event_weight)


@kernel(inline="always")
def at_most(score: Scoring, total: float, weight: float, event_weight: float) -> Any:
    """Fact 2: a bound of the fold, whether or not it has this predicate."""
    taken = combine(score, total, weight, event_weight)
    return taken if taken > total else total


@kernel(inline="always")
def raised(total: float) -> Any:
    """A little above: still an upper bound when the fold was computed in another way."""
    return total + abs(total) * _SLACK + _TINY


@kernel(inline="always")
def lowered(total: float) -> Any:
    """A little below: what a bound must reach, in whatever way it was computed."""
    return total - abs(total) * _SLACK - _TINY


@kernel(inline="always")
def as_bound(total: float) -> Any:
    """As float32, and above `total` even where float32 loses digits (below 1e-38) or underflows (below 1e-45)."""
    return np.float32(total + abs(total) * _UP + _LEAST)


@kernel(inner=True)
def reach(columns: Any, usual: Any, score: Scoring) -> Any:
    """By how much to multiply a usual score to bound the score, for how far the event's weights exceed the usual ones.

    NaN if usual scores are no bound: no comparison with it is true. `usual` are the weights per attribute.
    """
    ratio = 0.0
    for i in range(len(columns[0])):
        weight, common = columns[3][i], usual[columns[0][i]]
        if common > 0.0:
            ratio = max(ratio, weight / common)
        elif weight > 0.0:
            ratio = np.inf
    if score.linear:
        return ratio if 0.0 < ratio < np.inf else np.nan
    return 1.0 if ratio <= MARGIN else np.nan


@dataclass(frozen=True)
class Score:
    """A monotone score; make one with `monotone`, or name one of SCORES."""

    name: str
    scoring: Scoring
    keep: Any = field(default=None, repr=False, compare=False)  # the compiled function, which must outlive the index
    function: Any = field(default=None, repr=False, compare=False)  # what was compiled, for another process

    def __deepcopy__(self, _: Any) -> Score:
        return self

    def __reduce__(self) -> Any:
        if self.function is None:
            return score_of, (self.name,)
        return _compiled_anew, (self.function, self.scoring.start, self.scoring.linear, self.name)


SCORES: dict[str, Score] = {
    score.name: score
    for score in (
        Score("sum", Scoring(SUM, 0.0, True)),
        Score("max", Scoring(MAX, 0.0, True)),
        Score("min", Scoring(MIN, np.inf, False)),
        Score("product", Scoring(PRODUCT, 1.0, False)),
        Score("noisy-or", Scoring(NOISY_OR, 0.0, False)),
    )
}
HELP = f"how weights combine: {', '.join(SCORES)}, or sparse.monotone(function)"


def score_of(score: str | Score) -> Score:
    if isinstance(score, Score):
        return score
    if score not in SCORES:
        raise unknown_name("score", score, SCORES)
    return SCORES[score]


def monotone(
    function: Callable[[float, float, float], float], *, start: float = 0.0, linear: bool = False, name: str = "custom"
) -> Score:
    """A score from f(total, weight, event weight); CoverlayError if it cannot be compiled or is seen to fall.

    `linear` promises f(c·total, weight, c·event_weight) = c·f(total, weight, event_weight) ≥ 0 with start 0, which
    gives tighter bounds for events of any weight.
    """
    if linear and start != 0.0:
        raise CoverlayError(f"a linear score starts at 0, not {start}")
    from numba import cfunc, types
    from numba.core.errors import NumbaError

    try:
        compiled = cfunc(types.float64(types.float64, types.float64, types.float64))(function)
    except NumbaError as problem:
        reason = " ".join(str(problem).split()[:30])
        raise CoverlayError(f"the score {name!r} cannot be compiled: {reason}") from problem
    _check_monotone(compiled.ctypes, start, name)
    return Score(name, Scoring(int(compiled.address), float(start), linear), compiled, function)


def _compiled_anew(function: Any, start: float, linear: bool, name: str) -> Score:
    return monotone(function, start=start, linear=linear, name=name)


def _check_monotone(function: Any, start: float, name: str) -> None:
    """Look for a fall on a small grid; a test, not a proof."""
    steps = (0.0, 0.25, 0.5, 1.0, 3.0)
    totals = sorted({start, 0.0, *(function(start, w, e) for w in steps for e in steps)})
    axes = [totals, list(steps), list(steps)]
    for below in product(*axes):
        for i, axis in enumerate(axes):
            above = list(below)
            above[i] = axis[min(axis.index(below[i]) + 1, len(axis) - 1)]
            before, after = function(*below), function(*above)
            if not before <= after:
                raise CoverlayError(
                    f"the score {name!r} is not monotone: f{below} = {before:g} but f{tuple(above)} = {after:g}"
                )
