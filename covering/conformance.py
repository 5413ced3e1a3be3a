"""What every covering method has to do, as checks of drawn cases: ours and those of plug-ins pass the same ones.

A case is a program: an empty index and calls, compared one by one with a list of boxes that is searched by brute
force, and followed by `check()`. Which statements hold depends on the facts that a class declares, never on its name: a
method that may miss covers never invents one, and with an ε of the volume it searches a share of at least 1 − ε.
"""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import covering
from coverlay import Broken, CoverlayError, smallest

Boxes = NDArray[np.float64]
Call = tuple[str, tuple[Any, ...]]  # a method of an index and its arguments

EPSILONS = (0.0, 0.1, 0.3)
DOMAINS = ([0.0, 1.0], [-4.0, 4.0], [1990.0, 2030.0])
LONGEST = 14  # calls of a drawn program
GRID = 8  # few different bounds, so that boxes contain each other
# Relative to a side of the domain; ±inf is for the outer bounds.
EXTREME = (-math.inf, math.inf, -0.0, 0.0, 5e-324, 0.5, math.nextafter(0.5, 0.0), math.nextafter(0.5, 1.0), 1.0, 1e300)


@dataclass(frozen=True)
class Program:
    """An empty index, and what is called on it."""

    method: str
    domain: list[list[float]]
    epsilon: float
    calls: tuple[Call, ...]

    def create(self) -> covering.CoveringIndex:
        return covering.create(self.method, self.domain, self.epsilon)

    def lines(self) -> list[str]:
        epsilon = f", epsilon={self.epsilon}" if self.epsilon else ""
        made = f'index = covering.create("{self.method}", {_text(self.domain)}{epsilon})'
        return [made, *(f"index.{name}({', '.join(map(_text, given))})" for name, given in self.calls)]


def _text(value: Any) -> str:
    """As Python code."""
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    return repr(plain).replace("inf", "float('inf')").replace("-float", "-float")


# ── running a program beside brute force ───────────────────────────────────────────────────────────────────


class _Beside:
    """An index, and what it should hold."""

    def __init__(self, program: Program) -> None:
        self.index = program.create()
        self.held: dict[Any, Boxes] = {}
        self.exact = not covering.may_miss(program.method, program.epsilon, {})
        self.of_volume = covering.METHODS[program.method].epsilon_of == "volume"
        self.least = 1.0 - program.epsilon

    def step(self, call: Call) -> None:
        """Make the call; raises Broken if the answer is wrong."""
        name, given = call
        before = self.index.stats.copy()
        answer = getattr(self.index, name)(*given)
        getattr(self, f"_{name}")(answer, *given)
        done = self.index.stats.since(before)
        if name == "find_cover" and not self.exact and self.of_volume and answer is None and not done.capped:
            _require(done.volume >= self.least - 1e-9, f"searched a share of {done.volume:g}; ε allows {self.least:g}")
        _require(len(self.index) == len(self.held), f"holds {len(self.index)} boxes, not {len(self.held)}")
        try:
            self.index.check()
        except AssertionError as error:
            raise Broken(f"check() after it fails: {error}") from error

    def _covers(self, box: Boxes) -> list[Any]:
        return [id for id, b in self.held.items() if (b[:, 0] <= box[:, 0]).all() and (b[:, 1] >= box[:, 1]).all()]

    def _add(self, answer: Any, id: Any, box: Boxes) -> None:
        self.held[id] = box

    def _add_many(self, answer: Any, ids: Sequence[Any], boxes: Boxes) -> None:
        self.held.update(zip(ids, boxes, strict=True))

    def _update(self, answer: Any, id: Any, box: Boxes) -> None:
        self.held[id] = box

    def _remove(self, answer: Any, id: Any) -> None:
        del self.held[id]

    def _remove_many(self, answer: Any, ids: Sequence[Any]) -> None:
        for id in ids:
            del self.held[id]

    def _clear(self, answer: Any) -> None:
        self.held.clear()

    def _find_cover(self, answer: Any, box: Boxes) -> None:
        covers = self._covers(box)
        if answer is not None:
            whose = "whose box does not contain the query" if answer in self.held else "which is not stored"
            expected = f"expected {' or '.join(map(str, covers))}" if covers and self.exact else "expected None"
            _require(answer in covers, f"answered {answer}, {whose}; {expected}")
        elif self.exact:
            _require(not covers, f"answered None; expected {' or '.join(map(str, covers))}")

    def _find_cover_many(self, answers: Any, boxes: Boxes) -> None:
        _require(len(answers) == len(boxes), f"gave {len(answers)} answers to {len(boxes)} queries")
        for answer, box in zip(answers, boxes, strict=True):
            self._find_cover(answer, box)

    def _find_covered(self, answer: Any, box: Boxes) -> None:
        inside = [id for id, b in self.held.items() if (b[:, 0] >= box[:, 0]).all() and (b[:, 1] <= box[:, 1]).all()]
        _require(list(answer) == sorted(inside), f"answered {list(answer)}; expected {sorted(inside)}")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


def _wrong(program: Program) -> tuple[int, str, Exception] | None:
    """The first call with a wrong answer, and what is wrong; None if all are right."""
    beside = _Beside(program)
    for at, call in enumerate(program.calls):
        try:
            beside.step(call)
        except Broken as error:
            return at, f"{call[0]} {error.what}", error
        except Exception as error:
            if _is_possible(program.calls[: at + 1]):
                return at, f"{call[0]} raised {type(error).__name__}: {error}", error
            return None
    return None


def _is_possible(calls: Sequence[Call]) -> bool:
    """Does the last call name only ids that are there, and add only ids that are not?"""
    held: set[Any] = set()
    for name, given in calls:
        ids = {"add": lambda g: [g[0]], "update": lambda g: [g[0]], "remove": lambda g: [g[0]]}.get(name)
        some = ids(given) if ids else list(given[0]) if name in ("add_many", "remove_many") else []
        if name in ("add", "add_many") and held & set(some):
            return False
        if name in ("remove", "remove_many", "update") and not set(some) <= held:
            return False
        if name == "clear":
            held.clear()
        held = held - set(some) if name.startswith("remove") else held | set(some)
    return True


def check_program(program: Program) -> None:
    """Raise Broken with the smallest program that shows what is wrong."""
    found = _wrong(program)
    if found is None:
        return

    def broken(calls: Sequence[Call]) -> bool:
        wrong = _wrong(replace(program, calls=tuple(calls))) if _is_possible_throughout(calls) else None
        return wrong is not None

    least = replace(program, calls=tuple(smallest(program.calls[: found[0] + 1], broken)))
    _, what, cause = _wrong(least) or found
    raise Broken(what, least.lines()) from cause


def _is_possible_throughout(calls: Sequence[Call]) -> bool:
    return all(_is_possible(calls[: at + 1]) for at in range(len(calls)))


# ── drawing programs ───────────────────────────────────────────────────────────────────────────────────────


def _program(method: str, rng: np.random.Generator, bounds: Callable[[int], Boxes], calls: Sequence[str]) -> Program:
    """`bounds` draws so many boxes, relative to the unit cube."""
    d, side = int(rng.integers(1, 5)), DOMAINS[int(rng.integers(len(DOMAINS)))]
    takes = covering.METHODS[method].takes_epsilon
    made: list[Call] = []
    held: list[int] = []
    fresh = iter(range(10_000))
    low, width = side[0], side[1] - side[0]

    def boxes(count: int) -> Boxes:
        drawn = bounds(count * d)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray((low + drawn * width).reshape(count, d, 2))

    def several() -> int:
        return int(rng.integers(1, 5))

    for _ in range(int(rng.integers(3, LONGEST))):
        name = calls[int(rng.integers(len(calls)))]
        given: tuple[Any, ...] = ()
        if name == "add":
            held.append(next(fresh))
            given = held[-1], boxes(1)[0]
        elif name == "add_many":
            count = several()
            new = [next(fresh) for _ in range(count)]
            held += new
            given = new, boxes(count)
        elif name in ("find_cover", "find_covered"):
            given = (boxes(1)[0],)
        elif name == "find_cover_many":
            given = (boxes(several()),)
        elif name == "clear":
            held.clear()
        elif not held:
            continue
        elif name == "update":
            given = held[int(rng.integers(len(held)))], boxes(1)[0]
        elif name == "remove":
            given = (held.pop(int(rng.integers(len(held)))),)
        else:
            given = ([held.pop() for _ in range(min(several(), len(held)))],)
        made.append((name, given))
    epsilon = EPSILONS[int(rng.integers(len(EPSILONS)))] if takes else 0.0
    return Program(method, [list(side)] * d, epsilon, tuple(made))


def _plain(rng: np.random.Generator) -> Callable[[int], Boxes]:
    """Bounds on a grid or anywhere: boxes contain each other often."""

    def draw(count: int) -> Boxes:
        if rng.random() < 0.5:
            return np.sort(rng.integers(0, GRID + 1, (count, 2)) / GRID, axis=1)
        return np.sort(rng.random((count, 2)), axis=1)

    return draw


def _extreme(rng: np.random.Generator) -> Callable[[int], Boxes]:
    """Bounds that are infinite, equal, signed zeros, or neighbouring floats."""

    def draw(count: int) -> Boxes:
        drawn = np.sort(rng.choice(np.array(EXTREME), (count, 2)), axis=1)
        drawn[np.isposinf(drawn[:, 0]), 0] = 0.5
        drawn[np.isneginf(drawn[:, 1]), 1] = 0.5
        return np.sort(drawn, axis=1)

    return draw


ADDING = ("add", "add", "add_many", "find_cover", "find_cover_many", "find_covered")
CHANGING = (*ADDING, "remove", "remove_many", "update", "find_cover", "clear")


def _rng(method: str, case: int) -> np.random.Generator:
    return np.random.default_rng(case)


def contract(method: str, case: int) -> None:
    """Drawn sets of boxes, one by one and in batches."""
    rng = _rng(method, case)
    check_program(_program(method, rng, _plain(rng), ADDING))


def extremes(method: str, case: int) -> None:
    """±inf, −0.0, equal bounds, neighbouring floats."""
    rng = _rng(method, case)
    check_program(_program(method, rng, _extreme(rng), ADDING))


def stateful(method: str, case: int) -> None:
    """Calls in any order, `check()` after each."""
    rng = _rng(method, case)
    check_program(_program(method, rng, _plain(rng), CHANGING))


def facts(method: str, case: int) -> None:
    """What the class says of itself fits together."""
    cls = covering.METHODS[method]
    options = covering.options_of(method)
    for option in cls.gives_up_with:
        _require(option in options, f"gives_up_with names {option!r}, which is no option; there are: {options}")
    like = cls.priced_like
    _require(like is None or like in covering.METHODS, f"priced_like = {like!r} is no covering method")
    if not cls.takes_epsilon:
        try:
            covering.create(method, [[0, 1]], 0.1)
        except CoverlayError:
            return
        raise Broken("takes an ε although takes_epsilon is False")


def library(method: str, case: int) -> None:
    """Copies, pickling, two threads that ask, no random numbers but its own."""
    rng = _rng(method, case)
    boxes = _plain(rng)(60).reshape(30, 2, 2)
    asked = _plain(rng)(120).reshape(60, 2, 2)
    python, numpy = random.getstate(), np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    index = covering.create(method, [[0, 1]] * 2)
    index.add_many(range(30), boxes)
    answers = [index.find_cover(box) for box in asked]
    same_numpy = (np.random.get_state()[1] == numpy).all()  # type: ignore[index]  # noqa: NPY002
    _require(random.getstate() == python and bool(same_numpy), "draws from the global random numbers")
    for how, other in (("copied", copy.copy(index)), ("pickled", pickle.loads(pickle.dumps(index)))):
        _require([other.find_cover(box) for box in asked] == answers, f"a {how} index answers differently")
        other.clear()
        _require(len(index) == 30, f"a {how} index shares what it stores with the original")
    index.find_cover_many(asked)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: [index.find_cover(box) for box in asked], range(2)))
    exact = not covering.may_miss(method, 0.0, {})
    _require(not exact or both == [answers, answers] or _all_cover(both, boxes, asked, answers), "two threads differ")


def _all_cover(both: list[list[Any]], boxes: Boxes, asked: Boxes, answers: list[Any]) -> bool:
    """A method that reorganises itself may name another cover, but one there must be."""
    for found in both:
        for answer, box, first in zip(found, asked, answers, strict=True):
            if (answer is None) != (first is None):
                return False
            if answer is not None and not (boxes[answer, :, 0] <= box[:, 0]).all():
                return False
    return True


# name → (cases, what is called with the method's name and the number of a case)
CHECKS: dict[str, tuple[int, Callable[[str, int], None]]] = {
    "facts": (1, facts),
    "contract": (500, contract),
    "extremes": (2000, extremes),
    "stateful": (500, stateful),
    "library": (5, library),
}
