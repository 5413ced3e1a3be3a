"""`coverlay reproduce icdcs07`: every worked example and claim of the slides, with a verdict.

Zhenhui Shen and Srikanta Tirthapura, "Approximate Covering Detection Among Content-Based Subscriptions Using
Space Filling Curves", ICDCS 2007 (slides). Counts come from the index at work wherever it can finish, from
the closed forms (tested equal to it) beyond. Here are the examples; icdcs07_bounds.py has the theorems,
icdcs07_worth.py what approximation is worth, icdcs07_searches.py what it takes.
"""

from __future__ import annotations

from functools import partial

import numpy as np

import covering
from broker.language import compile_subscription, parse_event, parse_subscription
from broker.language.schema import Schema, categorical, continuous
from covering.curve import theory
from covering.curve.zorder import ZorderIndex
from sim.reproduce import icdcs07_bounds, icdcs07_searches, icdcs07_worth
from sim.reproduce import icdcs07_figures as figures
from sim.reproduce.icdcs07_measure import key_of
from sim.reproduce.sheet import Cause, Sheet, Steps

ONCE = "as on the slides"


def steps(sheet: Sheet) -> Steps:
    return {
        "examples": partial(examples, sheet),
        "bounds": partial(icdcs07_bounds.run, sheet),
        "covers": partial(icdcs07_worth.covers, sheet),
        "network": partial(icdcs07_worth.network, sheet),
        "searches": partial(icdcs07_searches.searches, sheet),
        "questions": partial(icdcs07_worth.questions, sheet),
    }


def answer(sheet: Sheet, id: str, right: bool, detail: str, size: str = ONCE, figure: str = "") -> None:
    """A worked example: what came out is what was published, or our program is wrong."""
    wrong = Cause("our program no longer gives the published answer", {"right answers": float(right)})
    sheet.judge(id, [float(right)], wrong, size=size, detail=detail, figure=figure)


def examples(sheet: Sheet) -> None:
    sheet.progress("worked examples")
    _subscriptions(sheet)
    _dominance(sheet)
    _keys(sheet)
    _cubes(sheet, _searches(sheet))


_STOCKS = Schema(
    (
        categorical("stock", ["Google", "Microsoft", "IBM"]),
        continuous("price", 0.0, 1000.0),
        continuous("shares", 0.0, 10_000.0),
        continuous("change", -100.0, 100.0),
    )
)


def _matching(event: str, *subscriptions: str) -> list[bool]:
    point = parse_event(event).encode(_STOCKS)
    return [compile_subscription(_STOCKS, parse_subscription(text)).matches(point) for text in subscriptions]


def _subscriptions(sheet: Sheet) -> None:
    found = _matching(
        'stock = "Microsoft", price = 27, shares = 1000',
        'stock = "Microsoft" and price > 25 and price < 30 and shares > 500',
    )
    answer(sheet, "event-example", found == [True], "matches" if found[0] else "does not match")
    found = _matching(
        'stock = "Google", change = 4.5, shares = 2000, price = 468.12',
        'stock = "Google" and shares > 1000 and price < 500',
        'stock = "Google" and shares < 100 and price < 350',
        'stock = "Microsoft" and shares = 3000 and price between 20 and 30',
        'stock = "IBM" and shares < 4000 and price < 35',
    )
    answer(sheet, "filtering-example", found == [True, False, False, False], f"matches {sum(found)} of {len(found)}")
    for id, wide, narrow in (
        ("covering-example", [[0, 50], [1990, 2004]], [[0, 30], [1998, 2000]]),
        ("covering-example-2", [[10, 50], [1990, 2004]], [[20, 30], [1998, 2000]]),
    ):
        answers = set()
        for name in covering.methods():
            index = covering.create(name, [[0, 100], [1980, 2010]])
            index.add("s1", wide)
            answers.add(index.find_cover(narrow))
        said = "covered, by every method" if answers == {"s1"} else f"answers {answers}"
        answer(sheet, id, answers == {"s1"}, said)


def _dominance(sheet: Sheet) -> None:
    rng = np.random.default_rng(0)
    first, second = (np.sort(rng.integers(0, 6, (20_000, 3, 2)), axis=2) for _ in range(2))
    contains = ((first[..., 0] <= second[..., 0]) & (second[..., 1] <= first[..., 1])).all(axis=1)
    sign = np.array([-1, 1])
    dominates = (first * sign >= second * sign).all(axis=(1, 2))
    differing, size = int((contains != dominates).sum()), f"{len(first):,} random pairs"
    answer(sheet, "dominance", differing == 0, f"{differing} differ ({int(contains.sum())} contained)", size)
    # A point becomes a box that is as long to either side as its coordinates say; a cover is then a dominating point.
    points = rng.integers(0, 6, (2, 2_000, 4)).astype(float)
    boxes = np.stack([-points[..., ::2], points[..., 1::2]], axis=-1)
    differing = 0
    for p, q, box, asked in zip(*points, *boxes, strict=True):
        index = covering.create("scan", [[-6, 6]] * 2)
        index.add(0, box)
        differing += (index.find_cover(asked) is not None) != bool((p >= q).all())
    answer(sheet, "dominance-both-ways", differing == 0, f"{differing} differ", f"{len(boxes[0]):,} random pairs")


# The slides' drawings, from the lowest row to the highest.
_GRID_2 = (("00", "10"), ("01", "11"))
_GRID_4 = (
    ("0000", "0010", "1000", "1010"),
    ("0001", "0011", "1001", "1011"),
    ("0100", "0110", "1100", "1110"),
    ("0101", "0111", "1101", "1111"),
)


def _keys(sheet: Sheet) -> None:
    wrong = sum(
        f"{key_of((x, y), bits):0{2 * bits}b}" != drawn
        for grid, bits in ((_GRID_2, 1), (_GRID_4, 2))
        for y, row in enumerate(grid)
        for x, drawn in enumerate(row)
    )
    answer(sheet, "cube-keys", wrong == 0, f"{20 - wrong} of 20 keys are those of the drawings")
    broken = cubes = 0
    for bits in (2, 3, 4):
        for level in range(bits + 1):
            side = 1 << level
            for x in range(0, 1 << bits, side):
                for y in range(0, 1 << bits, side):
                    keys = sorted(key_of((x + i, y + j), bits) for i in range(side) for j in range(side))
                    broken += keys != list(range(keys[0], keys[0] + len(keys)))
                    cubes += 1
    answer(sheet, "cube-is-a-run", broken == 0, f"{broken} of {cubes} cubes have a gap", "grids of 4 × 4 to 16 × 16")


def probes_257(epsilon: float) -> int:
    """Runs looked up by the index for the query whose search region is 257 × 257 cells."""
    index = covering.create("zorder", [[0.0, 1024.0]], epsilon, bits=10, merge_runs=True)
    index.find_cover([[256.5, 767.5]])
    return index.stats.runs


RUNS = 385, 1  # the slides' numbers for 257 × 257: exact search, and 99 % of its volume
GAMMAS = {1: 45.7, 2: 57.1, 3: 68.6, 11: 91.4}  # and for 5 × 7, ε = 10 %: cubes looked up → γ, per cent


def _searches(sheet: Sheet) -> str:
    """Judge the two examples that the slides draw; the name of their picture."""
    exact, near = (probes_257(epsilon) for epsilon in (0.0, 0.01))
    closed = theory.runs([257, 257], 9)
    plan = theory.plan([5, 7], 3, 0.1)
    gammas = [round(100 * plan.fraction(n), 1) for n in range(1, plan.quota + 1)]
    picture = figures.slides_beside_ours(RUNS, (exact, near), GAMMAS, gammas, sheet.out)
    said = f"{exact} and {near} (index at work); closed form {closed}"
    answer(sheet, "385-runs", ((exact, near), closed) == (RUNS, RUNS[0]), said, figure=picture)
    share = 100.0 * theory.plan([257, 257], 9).fraction(1)
    none = Cause("the largest cube is smaller than published", {"cubes": 1.0})
    sheet.judge("first-run-share", [share], none, size=ONCE, figure=picture)
    shares = {n: gammas[n - 1] for n in (1, 2, 3, plan.quota)}
    said = ", ".join(f"{share:.1f}" for share in shares.values()) + f" % (after 1, 2, 3 and {plan.quota} cubes)"
    answer(sheet, "gamma-sequence", shares == GAMMAS, said, figure=picture)
    lucky, unlucky = theory.runs([256, 256], 9), theory.runs([257, 257], 9)
    sheet.judge(
        "lucky-unlucky",
        [unlucky / lucky],
        Cause("both take as many", {"runs": lucky}),
        size=ONCE,
        detail=f"{lucky} run for 256 × 256, {unlucky} for 257 × 257",
    )
    rng, wrong = np.random.default_rng(3), 0
    for low, high in np.sort(rng.integers(0, 63, (200, 2)), axis=1).tolist():
        index = covering.create("zorder", [[0.0, 63.0]], 0.0, bits=6, merge_runs=True)
        assert isinstance(index, ZorderIndex)
        index.find_cover([[low + 0.5, high + 0.5]])
        lengths = index.lengths_of(np.array([-low - 0.5, high + 0.5]))
        wrong += index.stats.runs != theory.runs(lengths.tolist(), 6)
    answer(
        sheet, "worst-case-cost", wrong == 0, f"{200 - wrong} of 200 empty searches look up the least number of runs"
    )
    return picture


def _cubes(sheet: Sheet, picture: str) -> None:
    sides = [side for side, _ in figures.cubes_of([0b1101, 0b0110], 4)]
    counts = [sides.count(side) for side in (8, 4, 2)]
    said = ", ".join(map(str, counts)) + f"; and {sides.count(1)} unit cubes"
    answer(sheet, "cubes-1101-0110", counts == [0, 3, 6], said)
    filled = [
        max(corner[axis] + side for side, corner in figures.cubes_of([7, 5], 3) if side >= s)
        for s in (4, 2)
        for axis in (0, 1)
    ]
    said = f"{filled[0]} × {filled[1]}, then {filled[2]} × {filled[3]}"
    answer(sheet, "rounded-sides", filled == [4, 4, 6, 4], said)
    rng, wrong, rising = np.random.default_rng(6), 0, 0
    for _ in range(300):
        lengths = rng.integers(1, 17, rng.integers(2, 4)).tolist()
        walked = [side for side, _ in figures.cubes_of(lengths, 4)]
        rising += walked != sorted(walked, reverse=True)
        wrong += [walked.count(1 << i) for i in range(5)] != theory.cubes_per_level(lengths, 4)
    size = "300 random rectangles, D = 2 and 3"
    answer(sheet, "decreasing-size", rising == 0, f"{rising} walks meet a larger cube later", size, picture)
    answer(sheet, "cubes-per-level", wrong == 0, f"{300 - wrong} of 300 rectangles", size)
