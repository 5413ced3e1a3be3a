"""What the reproductions share: sweeps, line plots, CSV files, claims, and how a factor becomes a verdict."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.report.claims import FAILS, HOLDS, OTHER_FACTOR, Claim
from sim.bench import Progress
from sim.bench.timing import mean_least
from sim.reproduce import POINTS

_NEAR = 0.75  # a published factor counts as met from this share of it on
NOISE = 0.15  # times of two runs differ by up to this share: a smaller difference shows nothing

_WIDE = 30.0  # an axis that spans this factor is logarithmic

Asks = Mapping[str, Callable[[Any], Any]]


def leads(over_best: Iterable[float], over_any: Iterable[float], published: float) -> str:
    """One method "is always the best, by up to `published`×": it may never lose, beyond noise, to the best other.

    Both are times of others over its own: of the best other, and of any other.
    """
    if min(over_best) * (1.0 + NOISE) < 1.0:
        return FAILS
    return HOLDS if max(over_any) >= _NEAR * published else OTHER_FACTOR


def faster(ratio: float, published: float) -> str:
    """Something takes `ratio` times as long as what is said to be faster, by about `published` times."""
    if ratio < 1.0 + NOISE:
        return FAILS
    return HOLDS if ratio >= _NEAR * published else OTHER_FACTOR


class Sheet:
    """The measurements of one document: rows, figures, and the time they took."""

    def __init__(self, document: str, out: Path, progress: Progress, smaller: str = "") -> None:
        """`smaller` says how the sizes differ from the document's; it precedes every reason."""
        self.document = document
        self.smaller = smaller
        self.out = out
        out.mkdir(parents=True, exist_ok=True)
        self.progress = progress
        self.claims: list[Claim] = []
        self._started = time.perf_counter()

    def sweep(
        self,
        figure: str,
        title: str,
        x: str,
        points: Sequence[tuple[float, Callable[[], tuple[Asks, Sequence[Any]]]]],
        rounds: int = 3,
    ) -> dict[str, dict[float, float]]:
        """Milliseconds per event of every method at every point; written as CSV and drawn."""
        series: dict[str, dict[float, float]] = {}
        for value, make in points:
            self.progress(f"{self.document} {figure}: {x} = {value:g}")

            def measured(make: Callable[[], tuple[Asks, Sequence[Any]]] = make) -> dict[str, float]:
                return mean_least(*make(), rounds)

            for name, seconds in self.kept(f"{figure}-{value:g}", measured).items():
                series.setdefault(name, {})[value] = 1e3 * seconds
        self.draw(figure, title, x, series)
        return series

    def kept(self, name: str, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
        """What was measured under this name, measuring it unless a run that is being resumed already has."""
        file = self.out / POINTS / f"{name}.json"
        if file.exists():
            found: dict[str, float] = json.loads(file.read_text())
            return found
        file.parent.mkdir(exist_ok=True)
        result = measure()
        file.write_text(json.dumps(result))
        return result

    def table(self, name: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Write rows as CSV."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        with (self.out / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)

    def plot(
        self,
        name: str,
        series: Mapping[str, Mapping[float, float]],
        *,
        title: str,
        x: str,
        y: str,
        log_x: bool = False,
        ticks: Mapping[float, str] | None = None,
    ) -> None:
        """One line per name, from x to y; `ticks` names the values of x that are no numbers."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(7, 4.5))
        for label, points in series.items():
            at = sorted(points)
            axes.plot(at, [points[p] for p in at], marker="o", label=label)
        axes.set(title=title, xlabel=x, ylabel=y, yscale="log")
        if log_x:
            axes.set_xscale("log", base=2)
        if ticks is not None:
            axes.set_xticks(list(ticks), list(ticks.values()))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        figure.tight_layout()
        figure.savefig(self.out / f"{name}.png", dpi=120)
        pyplot.close(figure)

    def draw(
        self,
        figure: str,
        title: str,
        x: str,
        series: Mapping[str, Mapping[float, float]],
        ticks: Mapping[float, str] | None = None,
    ) -> None:
        """Write milliseconds per event by method and x as CSV, and draw them."""
        values = list(dict.fromkeys(value for times in series.values() for value in times))
        rows = [{x: value, "method": name, "ms_per_event": series[name][value]} for value in values for name in series]
        self.table(figure, rows)
        wide = min(values) > 0.0 and max(values) >= _WIDE * min(values)
        self.plot(figure, series, title=title, x=x, y="ms per event", log_x=wide, ticks=ticks)

    def factor(self, id: str, claim: str, published: float, measured: float, why: str, figure: str = "") -> None:
        """A claim that something is `published` times better (1 is no better)."""
        self.differs(id, claim, f"{published:.3g}×", f"{measured:.3g}×", faster(measured, published), why, figure)

    def gain(self, id: str, claim: str, published: float, measured: float, why: str, figure: str = "") -> None:
        """A claim that time falls by a share; both in per cent."""
        worse = OTHER_FACTOR if measured > 100.0 * NOISE else FAILS
        verdict = HOLDS if measured >= _NEAR * published else worse
        self.differs(id, claim, f"{published:.3g} %", f"{measured:.3g} %", verdict, why, figure)

    def statement(
        self, id: str, claim: str, published: str, measured: str, true: bool, why: str = "", figure: str = ""
    ) -> None:
        why = why or "our program no longer gives the published answer"
        self.differs(id, claim, published, measured, HOLDS if true else FAILS, why, figure)

    def differs(
        self, id: str, claim: str, published: str, measured: str, verdict: str, why: str, figure: str = ""
    ) -> None:
        """A claim whose `why` says what differs; it is left out where the claim holds."""
        reason = "" if verdict == HOLDS else f"{self.smaller}; {why}" if self.smaller else why
        self.add(id, claim, published, measured, verdict, reason, figure)

    def add(self, id: str, claim: str, published: str, measured: str, verdict: str, why: str, figure: str = "") -> None:
        """A claim, timed from the previous one on; `figure` names a picture of ours."""
        now, picture = time.perf_counter(), f"{figure}.png" if figure else None
        seconds, self._started = now - self._started, now
        self.claims.append(Claim(id, self.document, claim, published, measured, verdict, why, seconds, picture))


def saved(series: Mapping[str, Mapping[float, float]], slow: str, fast: str) -> float:
    """By how many per cent `fast` takes less time than `slow`, mean over the points."""
    shares = [1.0 - series[fast][x] / series[slow][x] for x in series[slow]]
    return 100.0 * sum(shares) / len(shares)


def most_saved(series: Mapping[str, Mapping[float, float]], slow: str, fast: str) -> float:
    return 100.0 * max(1.0 - series[fast][x] / series[slow][x] for x in series[slow])


def next_best(series: Mapping[str, Mapping[float, float]], ours: str) -> float:
    """Mean over the points of the best other time over ours."""
    ratios = [min(t[x] for name, t in series.items() if name != ours) / series[ours][x] for x in series[ours]]
    return sum(ratios) / len(ratios)
