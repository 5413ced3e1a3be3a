"""What every matcher has to do, as checks of drawn cases: ours and those of plug-ins pass the same ones.

Matchers of boxes are compared with brute force: scores summed and sorted in plain Python. Matchers of predicates and of
places are compared with the scan of their kind, which its own tests compare with brute force.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import topk
from coverlay import Broken, smallest
from topk.contract import sequential_sum
from topk.places import from_located
from topk.predicates import from_predicates

Call = tuple[str, tuple[Any, ...]]
LONGEST = 12  # calls of a drawn program
GRID = 6  # few different bounds and scores, so that much matches and ties are common
EXTREME = (-np.inf, np.inf, -0.0, 0.0, 5e-324, 0.5, np.nextafter(0.5, 0.0), np.nextafter(0.5, 1.0), 1e300)
YARDSTICK = "scan"


# ── boxes, beside brute force ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Program:
    """A matcher over some subscriptions, and what is called on it."""

    method: str
    semantics: str
    subscriptions: tuple[tuple[Any, ...], ...]  # (lo, hi, score)
    calls: tuple[Call, ...]

    def create(self) -> topk.TopKIndex:
        lo, hi, scores = (np.array(column, float) for column in zip(*self.subscriptions, strict=True))
        return topk.create(self.method, topk.Catalogue.from_boxes(lo, hi, scores), semantics=self.semantics)

    def lines(self) -> list[str]:
        lo, hi, scores = ([_text(value) for value in column] for column in zip(*self.subscriptions, strict=True))
        boxes = f"topk.Catalogue.from_boxes([{', '.join(lo)}], [{', '.join(hi)}], [{', '.join(scores)}])"
        made = f'index = topk.create("{self.method}", {boxes}, semantics="{self.semantics}")'
        return [made, *(f"index.{name}({', '.join(map(_text, given))})" for name, given in self.calls)]


def _text(value: Any) -> str:
    """As Python code."""
    plain = value.tolist() if isinstance(value, np.ndarray) else value
    return repr(plain).replace("inf", "float('inf')").replace("nan", "float('nan')")


def _expected(held: dict[int, tuple[Any, ...]], semantics: str, event: Any, k: int) -> list[tuple[int, float]]:
    """The k best, by brute force."""
    found = []
    for id, (lo, hi, score) in held.items():
        mentioned = np.isfinite(lo) | np.isfinite(hi)
        holds = (lo <= event) & (event <= hi) & mentioned  # NaN, a missing value, holds nowhere
        if semantics == "exact" and (holds | ~mentioned).all():
            found.append((id, float(score)))
        elif semantics == "relaxed" and holds.any():
            weights = np.where(mentioned, score / max(mentioned.sum(), 1), 0.0)
            found.append((id, sequential_sum(np.where(holds, weights, 0.0))))
    return sorted(found, key=lambda match: (-match[1], match[0]))[:k]


def _wrong(program: Program) -> tuple[int, str, Exception] | None:
    """The first call with a wrong answer, and what is wrong."""
    at, name = 0, "create"
    held = dict(enumerate(program.subscriptions))
    try:
        index = program.create()
        for place, (name, given) in enumerate(program.calls):
            at = place
            if name == "add":
                if given[0] in held:
                    return None
                held[given[0]] = given[1:]
            elif name == "remove":
                if given[0] not in held:
                    return None
                del held[given[0]]
            answer = getattr(index, name)(*given)
            if name == "top":
                wanted = _expected(held, program.semantics, *given)
                _require(_same(answer, wanted), f"answered {answer}; expected {wanted}")
            _require(len(index) == len(held), f"holds {len(index)} subscriptions, not {len(held)}")
            index.check()
    except Exception as error:
        said = str(error) if isinstance(error, Broken) else f"raised {type(error).__name__}: {error}"
        return at, f"{name} {said}", error
    return None


def _same(found: Sequence[tuple[int, float]], wanted: Sequence[tuple[int, float]]) -> bool:
    """The same subscriptions in the same order; relaxed scores may differ in the last bits of a sum."""
    same = [id for id, _ in found] == [id for id, _ in wanted]
    return same and all(np.isclose(a, b, rtol=1e-12) for (_, a), (_, b) in zip(found, wanted, strict=True))


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


def check_program(program: Program) -> None:
    """Raise Broken with the smallest program that shows what is wrong."""
    found = _wrong(program)
    if found is None:
        return
    calls = smallest(
        program.calls[: found[0] + 1], lambda some: _wrong(replace(program, calls=tuple(some))) is not None
    )
    least = replace(program, calls=tuple(calls))

    def broken(some: Sequence[tuple[Any, ...]]) -> bool:
        return bool(some) and _wrong(replace(least, subscriptions=tuple(some))) is not None

    if not any(name == "remove" for name, _ in calls):  # ids are places in the list
        least = replace(least, subscriptions=tuple(smallest(least.subscriptions, broken)))
    _, what, cause = _wrong(least) or found
    raise Broken(what, least.lines()) from cause


def _boxes(rng: np.random.Generator, count: int, d: int, extreme: bool) -> list[tuple[Any, ...]]:
    if extreme:
        bounds = np.sort(rng.choice(np.array(EXTREME), (count, d, 2)), axis=2)
        bounds[np.isposinf(bounds[..., 0]), 0] = 0.5
        bounds[np.isneginf(bounds[..., 1]), 1] = 0.5
        bounds = np.sort(bounds, axis=2)
    else:
        bounds = np.sort(rng.integers(0, GRID + 1, (count, d, 2)) / GRID, axis=2)
        bounds[rng.random((count, d)) < 0.1] = (-np.inf, np.inf)
    scores = rng.integers(0, GRID, count) / 2.0
    return [(bounds[row, :, 0], bounds[row, :, 1], float(scores[row])) for row in range(count)]


def _program(method: str, rng: np.random.Generator, extreme: bool, changing: bool) -> Program:
    cls = topk.METHODS.get(method)
    answers = topk.SEMANTICS if cls is None else cls.semantics
    most = getattr(cls, "most_attributes", None) or 3
    d, semantics = int(rng.integers(1, most + 1)), answers[int(rng.integers(len(answers)))]
    first = _boxes(rng, int(rng.integers(1, 30)), d, extreme)
    ids, calls = list(range(len(first))), []
    fresh = iter(range(len(first), 10_000))
    for _ in range(int(rng.integers(2, LONGEST))):
        what = rng.choice(["top", "add", "remove"]) if changing else "top"
        if what == "add":
            ids.append(next(fresh))
            calls.append(("add", (ids[-1], *_boxes(rng, 1, d, extreme)[0])))
        elif what == "remove" and ids:
            calls.append(("remove", (ids.pop(int(rng.integers(len(ids)))),)))
        else:
            event = rng.choice(np.array(EXTREME[2:]), d) if extreme else rng.integers(0, GRID + 1, d) / GRID
            calls.append(("top", (np.where(rng.random(d) < 0.1, np.nan, event), int(rng.integers(1, 6)))))
    return Program(method, semantics, tuple(first), tuple(calls))


def contract(method: str, case: int) -> None:
    """Drawn subscriptions and events, ties and missing values included."""
    check_program(_program(method, np.random.default_rng(case), False, False))


def extremes(method: str, case: int) -> None:
    """±inf, −0.0, equal bounds, neighbouring floats."""
    check_program(_program(method, np.random.default_rng(case), True, False))


def stateful(method: str, case: int) -> None:
    """Subscriptions come and leave between events, `check()` after each."""
    check_program(_program(method, np.random.default_rng(case), False, True))


def library(method: str, case: int) -> None:
    """Copies, pickling, two threads that ask, no random numbers but its own."""
    program = _program(method, np.random.default_rng(case), False, False)
    events = [given for name, given in program.calls if name == "top"]
    python, numpy = random.getstate(), np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    index = program.create()
    answers = [index.top(*given) for given in events]
    same_numpy = (np.random.get_state()[1] == numpy).all()  # type: ignore[index]  # noqa: NPY002
    _require(random.getstate() == python and bool(same_numpy), "draws from the global random numbers")
    for how, other in (("copied", copy.copy(index)), ("pickled", pickle.loads(pickle.dumps(index)))):
        _require([other.top(*given) for given in events] == answers, f"a {how} matcher answers differently")
        other.clear()
        _require(len(index) == len(program.subscriptions), f"a {how} matcher shares what it stores with the original")
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: [index.top(*given) for given in events], range(2)))
    _require(both == [answers, answers], "two threads that ask at the same time get other answers")


# ── predicates and places, beside the scan of their kind ───────────────────────────────────────────────────


def _expression(rng: np.random.Generator, d: int) -> list[tuple[Any, ...]]:
    rows = []
    for attribute in sorted(rng.choice(d, int(rng.integers(1, 4)), replace=False).tolist()):
        operator = str(rng.choice(["=", "<", ">=", "between", "!=", "in"]))
        value: Any = int(rng.integers(0, GRID))
        if operator == "between":
            value = (value, value + int(rng.integers(0, 3)))
        elif operator == "in":
            value = (value, value + 2)
        rows.append((attribute, operator, value, float(rng.integers(1, GRID)) / GRID))
    return rows


def _others(kind: str, method: str, case: int) -> None:
    """Compare with the scan: built at once, then with some added and removed."""
    rng, d = np.random.default_rng(case), 5
    expressions = [_expression(rng, d) for _ in range(int(rng.integers(1, 25)))]
    later = [_expression(rng, d) for _ in range(3)]
    spots = [tuple(spot) for spot in rng.integers(0, 5, (len(expressions) + 3, 2)).astype(float).tolist()]
    events = [{a: float(rng.integers(0, GRID)) for a in range(d) if rng.random() < 0.7} for _ in range(6)]
    both = []
    for name in (YARDSTICK, method):
        if kind == "predicates":
            index: Any = topk.create(name, from_predicates(expressions, dimensions=d))
        else:
            located = [(e, spot, 0.5) for e, spot in zip(expressions, spots, strict=False)]
            index = topk.create(name, from_located(located, dimensions=d, max_distance=10.0))
        answers = [_asked(kind, index, event, spots) for event in events]
        for number, expression in enumerate(later):
            where = {} if kind == "predicates" else {"place": spots[-1 - number], "alpha": 0.5}
            index.add(1000 + number, expression, **where)
        index.remove(0)
        index.check()
        both.append(answers + [_asked(kind, index, event, spots) for event in events])
    for number, (wanted, found) in enumerate(zip(*both, strict=True)):
        event = events[number % len(events)]
        given = f"expressions = {expressions}", f"event = {event}"
        _require_same(_same(found, wanted), f"answered {found}; the scan answers {wanted}", given)


def _require_same(holds: bool, what: str, example: Sequence[str]) -> None:
    if not holds:
        raise Broken(what, example)


def _asked(kind: str, index: Any, event: dict[int, float], spots: Sequence[Any]) -> Any:
    return index.top(event, 4) if kind == "predicates" else index.top(event, spots[0], 4)


Checks = dict[str, tuple[int, Callable[[str, int], None]]]
CHECKS: dict[str, Checks] = {  # kind of catalogue → name → (cases, what is called with the method and a case)
    "boxes": {
        "contract": (500, contract),
        "extremes": (500, extremes),
        "stateful": (300, stateful),
        "library": (10, library),
    },
    "predicates": {"contract": (300, lambda method, case: _others("predicates", method, case))},
    "places": {"contract": (300, lambda method, case: _others("places", method, case))},
}
