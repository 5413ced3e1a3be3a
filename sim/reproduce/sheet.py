"""What the reproductions share: measured points that are kept, sweeps over seeds, and verdicts."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from analysis.report.claims import FAILS, SMALLER, UNTESTABLE, Claim, Reading, numeral
from coverlay import CoverlayError, unknown_name
from sim.bench import Progress
from sim.reproduce.measure import Bout, measure, net
from sim.reproduce.pictures import Drawing, Pictures
from sim.reproduce.points import Point, Points, machine, point_name, points_file
from sim.reproduce.rules import COUNTS, NOISE, TIME, Told, Yes
from sim.reproduce.series import Swept
from sim.reproduce.tables import declared

SEEDS, QUICK_SEEDS, FIRST_SEED = 3, 1, 1
CUT = 1  # the sizes of --quick are divided by this: more than 1 in tests, which run every figure
FEWEST = 3  # of anything, however much is cut
EXPLAINED = (FAILS, SMALLER)  # verdicts whose cause is looked for
Steps = Mapping[str, Callable[[], None]]  # what measures and judges one figure, or a few that belong together, by name


@dataclass(frozen=True)
class Cause:
    """Why a claim does not hold as published, and what was measured to find out: counters, or an ablation."""

    text: str
    measured: Mapping[str, float]

    def __post_init__(self) -> None:
        if not self.measured:
            raise CoverlayError(f"the reason {self.text!r} names nothing that was measured")


class NotMeasured(Exception):
    """A point that judging needs and that was not measured."""


class Sheet(Pictures):
    """The measurements and verdicts of one document."""

    def __init__(
        self,
        document: str,
        out: Path,
        progress: Progress,
        quick: bool = False,
        seeds: int | None = None,
        first_seed: int = FIRST_SEED,
        most_load: float | None = None,
        again: bool = False,
        shipped: Path | None = None,
        only_judge: bool = False,
        share: float = 1.0,
    ) -> None:
        """Points of earlier runs, and those of the file `shipped`, are not measured again, unless they hold times taken
        on another machine or under more load than `most_load`; with `again`, all are. With `only_judge` nothing is
        measured or drawn: a point that is missing raises NotMeasured. `share`: of the document's subscriptions and
        events."""
        self.document, self.told = document, declared(document)
        self.quick, self.out, self.progress = quick, out, progress
        self.seeds = tuple(range(first_seed, first_seed + (seeds or (QUICK_SEEDS if quick else SEEDS))))
        self.drawing = not only_judge
        self._only_judge, self._share = only_judge, share
        self.claims: list[Claim] = []
        self.drawn: dict[str, Drawing] = {}
        self.size = ""  # of what is measured, for claims that name none
        self._most_load = most_load
        out.mkdir(parents=True, exist_ok=True)
        file = points_file(out, quick)
        self._kept = Points(file, None if quick or again else shipped)
        self._old: set[str] = self._kept.names() if again else set()  # to be measured again
        self._points: list[Point] = []  # that the next claims rest on
        self._used: dict[str, Point] = {}  # figures share points
        self._judged = False

    def sized(self, quick: int, full: int) -> int:
        """How many to measure, with --quick and without."""
        return max(quick // CUT, min(quick, FEWEST)) if self.quick else full

    def many(self, quick: int, full: int) -> int:
        """How many subscriptions or events: all that the document has, or the share that this run measures."""
        return self.sized(quick, max(round(self._share * full), FEWEST))

    @property
    def used(self) -> list[Point]:
        """All points that were asked for, including those of earlier runs."""
        return list(self._used.values())

    @property
    def seconds(self) -> float:
        return float(sum(point["seconds"] for point in self.used))

    @property
    def until(self) -> str:
        """When the last point was measured, which may be long before a resumed run judges it again."""
        return max((point["date"] for point in self._used.values()), default=_now())

    # ---- measuring --------------------------------------------------------------------------------------

    def kept(self, name: str, measure: Callable[[], Any], *, timed: bool = True, aside: bool = False) -> Any:
        """What was measured under this name; measured now, unless the run that is being resumed has done so.

        The value must be one that JSON can hold. Load and date are kept with it. Not `timed`: it holds no times, so
        neither the machine nor its load matters. `aside`: no verdict rests on it, so its load says nothing about any.
        """
        name = point_name(name, self._share)
        point = self._kept.get(name)
        if point is None and self._only_judge:
            raise NotMeasured(name)
        if point is None or name in self._old or (timed and self._unfit(point)):
            self.progress(f"{self.document}: {name}")
            gc.collect()  # indexes contain reference cycles: nine points once took 19 GB before Python freed any
            load, started = os.getloadavg()[0], time.perf_counter()
            value = measure()
            point = {
                "name": name,
                "value": json.loads(json.dumps(value)),  # as it is read back: keys are strings
                "date": _now(),
                "load": max(load, os.getloadavg()[0]),
                "seconds": time.perf_counter() - started,
                "machine": machine(),
            }
            self._kept.add(point)
            self._old.discard(name)
        if self._judged:
            self._points, self._judged = [], False
        if not aside:
            self._points.append(point)
        self._used[name] = point
        return point["value"]

    def _unfit(self, point: Point) -> bool:
        """Whether times were taken elsewhere, or under more load than allowed, so that they must be taken again."""
        if self._only_judge:
            return False
        busy = self._most_load is not None and point["load"] > self._most_load
        return busy or bool(point["machine"] != machine())

    def sweep(
        self,
        figure: str,
        title: str,
        x: str,
        points: Sequence[tuple[float, Callable[[int], Bout]]],
        ticks: Mapping[float, str] | None = None,
        only: Sequence[int] = (),
    ) -> Swept:
        """Time and operations per event of every method at every point, for every seed or `only` some; drawn."""
        by: dict[str, list[dict[str, dict[float, float]]]] = {}
        overheads: dict[str, list[float]] = {}
        for number, seed in enumerate(only or self.seeds):
            for value, make in points:
                found = self.kept(
                    f"{figure}-{value:g}-{seed}", partial(_measured, make, seed, self._share), aside=bool(only)
                )
                for name, seconds in found["overhead"].items():
                    overheads.setdefault(name, []).append(1e6 * seconds)
                amounts = {TIME: net(found)} | ({COUNTS: found[COUNTS]} if COUNTS in found else {})
                for basis, methods in amounts.items():
                    seeds = by.setdefault(basis, [])
                    if len(seeds) == number:
                        seeds.append({})
                    for name, amount in methods.items():
                        seeds[number].setdefault(name, {})[value] = 1e3 * amount if basis == TIME else amount
        swept = Swept(by, {name: sum(micros) / len(micros) for name, micros in overheads.items()})
        self.draw(figure, title, x, swept, ticks)
        return swept

    # ---- judging ----------------------------------------------------------------------------------------

    def judge(
        self,
        id: str,
        ours: Mapping[str, Sequence[float]] | Sequence[float],
        cause: Cause | Callable[[], Cause],
        *,
        size: str = "",
        detail: str = "",
        figure: str = "",
        overhead: Mapping[str, float] | None = None,
        untestable: str = "",
        swept: Mapping[str, Mapping[str, Sequence[float]]] | None = None,
    ) -> Claim:
        """The verdict on a declared claim, from a value per seed and way of measuring.

        It rests on what the document measured; other ways of measuring are shown beside it. `cause` is looked for only
        where the claim does not hold as published. `figure` names a picture of ours. `untestable` says why a run of
        this size cannot tell; then that is the verdict. `swept`: the values where an unpublished constant has another
        value, by that value and way of measuring.
        """
        told = self._declared(id)
        values = ours if isinstance(ours, Mapping) else {told.basis: ours}
        if not values.get(told.basis):
            raise CoverlayError(f"claim {self.document}/{id} rests on {told.basis}, which was not measured")
        readings = {basis: self._reading(told, basis, seeds) for basis, seeds in values.items() if seeds}
        own = readings.pop(told.basis)
        because = _because(own.verdict, cause)
        if untestable:
            return self.untestable(id, size or self.size, untestable)
        claim = Claim(
            **told.said(self.document),
            **self._measured(),
            verdict=own.verdict,
            ours=detail if isinstance(told.rule, Yes) and detail else "; ".join(filter(None, (own.ours, detail))),
            seeds=len(values[told.basis]),
            size=size or self.size,
            beside=readings,
            swept={
                f"{value}, {basis}": self._reading(told, basis, seeds)
                for value, by in (swept or {}).items()
                for basis, seeds in by.items()
            },
            overhead=_overhead(overhead) if TIME in values and overhead else "",
            figure=f"{figure}.png" if figure else None,
            **because,
        )
        return self._add(claim)

    @staticmethod
    def _reading(told: Told, basis: str, seeds: Sequence[float]) -> Reading:
        """`basis`: a way of measuring, and behind a comma what is different about it."""
        return Reading(_shown(told, seeds), told.rule.judge(seeds, NOISE.get(basis.split(",")[0], 0.0)))

    def untestable(self, id: str, size: str, why: str) -> Claim:
        """A claim about what lies beyond the sizes of this run."""
        said = self._declared(id).said(self.document)
        return self._add(Claim(**said, **self._measured(), verdict=UNTESTABLE, size=size, reason=why))

    def finish(self) -> list[Claim]:
        """All claims, in the order of their table; every declared one must have been judged."""
        found = {claim.id: claim for claim in self.claims}
        missing = [id for id in self.told if id not in found]
        if missing:
            raise CoverlayError(f"the reproduction of {self.document} gave no verdict on {', '.join(missing)}")
        return [found[id] for id in self.told]

    def _declared(self, id: str) -> Told:
        if id not in self.told:
            raise unknown_name(f"claim of {self.document}", id, self.told)
        return self.told[id]

    def _measured(self) -> dict[str, Any]:
        """Date, load and seconds of a claim's points. A claim without points is computed now; load does not matter."""
        self._judged = True
        if not self._points:
            return {"date": _now()}
        return {
            "date": max(point["date"] for point in self._points),
            "load": round(max(point["load"] for point in self._points), 1),
            "seconds": round(sum(point["seconds"] for point in self._points), 1),
        }

    def _add(self, claim: Claim) -> Claim:
        if any(claim.id == other.id for other in self.claims):
            raise CoverlayError(f"claim {self.document}/{claim.id} was judged twice")
        self.claims.append(claim)
        return claim


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="minutes")


def _measured(make: Callable[[int], Bout], seed: int, share: float) -> dict[str, dict[str, float]]:
    return measure(make(seed), share)


def _because(verdict: str, cause: Cause | Callable[[], Cause]) -> dict[str, Any]:
    if verdict not in EXPLAINED:
        return {}
    found = cause if isinstance(cause, Cause) else cause()
    return {"reason": found.text, "evidence": {name: float(value) for name, value in found.measured.items()}}


def _shown(told: Told, seeds: Sequence[float]) -> str:
    middle, low, high = (told.rule.show(value) for value in (median(seeds), min(seeds), max(seeds)))
    return middle if low == high else f"{middle} ({low} to {high})"


def _overhead(micros: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {numeral(value, 2)} µs" for name, value in micros.items())
