"""What a comparison shows: a row per setting and metric that changed, ties together, and how runs were paired."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from analysis.report.effects import CHANCE, EQUAL, Paired
from analysis.report.numbers import UNKNOWN, and_all
from analysis.report.table import short_title
from analysis.report.words import change_text, with_unit

COLUMNS = ("setting", "of", "metric", "a", "b", "n", "difference", "low", "high", "verdict", "paired")
ONE_SIDED = "unknown"  # a verdict
FEW = 3  # settings that are named where nothing differs; more are counted
VERSION, MACHINE = "version of coverlay", "machine"  # said of each of the results
NO_NEWS = ("=", "≈")
TOGETHER = (*NO_NEWS, UNKNOWN)  # metrics that share a line
LEGEND = (
    "=: equal with every seed; ≈: alike in all digits shown; ~: the 95 % interval of the differences contains 0; "
    "–: unknown on one side"
)


@dataclass(frozen=True)
class Change:
    """One metric in one setting: results beside the first (`of`) against these."""

    setting: str
    of: str
    metric: str
    values: Paired  # n = 0: only one side knows it
    paired: bool
    seeds: int  # with which either side knows it

    @property
    def ends(self) -> list[str]:
        return [with_unit(mean, self.metric) for mean in (self.values.base, self.values.value)]

    @property
    def verdict(self) -> str:
        return self.values.verdict if self.values.n else ONE_SIDED

    @property
    def sign(self) -> str:
        signs = {EQUAL: "=", ONE_SIDED: UNKNOWN}
        alike = "≈" if len({*self.ends}) == 1 else "~" if self.verdict == CHANCE else ""
        return signs.get(self.verdict, alike)

    def cells(self) -> list[str]:
        """Metric, 9,048 → 7,187, −20.6 % ± 3.1."""
        from_to = f"{self.sign} {' → '.join(self.ends)}".strip()
        return [short_title(self.metric), from_to, change_text(self.values, self.metric)]

    def row(self) -> tuple[Any, ...]:
        part = self.values
        interval = part.difference, part.difference - part.half, part.difference + part.half
        return self.setting, self.of, self.metric, part.base, part.value, part.n, *interval, self.verdict, self.paired


@dataclass(frozen=True, repr=False)
class Comparison:
    """What differs."""

    names: tuple[str, ...]
    changes: tuple[Change, ...]
    settings: pd.DataFrame  # key, and its value in each of the results, where they differ throughout
    about: tuple[str, ...]  # the results, and how many of their runs are pairs
    only: tuple[str, ...]  # settings that are not compared, in words
    first_difference: Mapping[str, str]  # by `traces` and `metrics`: the first run that differs; absent if none does
    metrics: tuple[str, ...]  # those to show
    by: str = ""  # the swept key whose values are compared

    @property
    def title(self) -> str:
        return f"{f'{self.by}: ' if self.by else ''}{and_all(self.names)}"

    @property
    def equal(self) -> bool:
        """Whether every run has its equal: the same trace."""
        return "traces" not in self.first_difference

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per setting, results beside the first, and metric."""
        return pd.DataFrame([change.row() for change in self.changes], columns=list(COLUMNS))

    @cached_property
    def _shown(self) -> dict[tuple[str, str], list[Change]]:
        """By setting and results: the metrics to show."""
        every = {(change.setting, change.of, change.metric): change for change in self.changes}
        places = dict.fromkeys(place[:2] for place in every)
        return {place: [every[*place, name] for name in self.metrics if (*place, name) in every] for place in places}

    def rows(self) -> list[list[str]]:
        """A line per setting and metric that changed, then its ties; settings where nothing did share a line."""
        found, quiet = [], defaultdict[tuple[str, str], list[str]](list)
        for (setting, of), changes in self._shown.items():
            names = {sign: [short_title(one.metric) for one in changes if one.sign == sign] for sign in TOGETHER}
            cells = [change.cells() for change in changes if change.sign not in TOGETHER]
            if not cells and not names[UNKNOWN]:
                quiet[of, " or ".join(sign for sign in NO_NEWS if names[sign]) or UNKNOWN].append(setting)
                continue
            cells += [[", ".join(some), sign, ""] for sign, some in names.items() if some]
            first = self._of(setting, of)
            found += [[*(first if number == 0 else [""] * len(first)), *row] for number, row in enumerate(cells)]
        other = "other " * bool(found)
        for (of, sign), settings in quiet.items():
            which = "; ".join(settings) if len(settings) <= FEW else f"{len(settings)} {other}settings"
            found.append([*self._of(which, of), "all", sign, ""])
        return found

    def _of(self, setting: str, of: str) -> list[str]:
        """Which results are compared with the first; needless if there are but two."""
        return [setting, of] if len(self.names) > 2 else [setting]

    def headers(self) -> list[str]:
        return [*self._of("setting", "of"), "metric", "from → to", "change"]

    def lines(self) -> list[str]:
        """What differs beside the numbers, and how to read them."""
        rows = [row for row in self.settings.to_dict("records") if row["key"] not in (VERSION, MACHINE)]
        differ = "; ".join(f"{row['key']}: {' → '.join(str(row[name]) for name in self.names)}" for row in rows)
        low = min((change.values.n for part in self._shown.values() for change in part if change.values.n), default=0)
        least = {0: "", 1: "; one seed has no interval"}.get(low, f"; n = {low} or more")
        return [*self.about, *([f"differ: {differ}"] if differ else []), *self.only, *self._pairing(), LEGEND + least]

    def _pairing(self) -> list[str]:
        """Where some or all seeds are only on one side."""
        where = defaultdict[str, list[str]](list)
        for (setting, of), changes in self._shown.items():
            partly = defaultdict[str, list[str]](list)
            for change in changes:
                n = change.values.n
                if n and not change.paired:
                    partly["no common seeds: intervals are not paired, and wider"].append(short_title(change.metric))
                elif 0 < n < change.seeds:
                    partly[f"{count(n, 'pair')} of {change.seeds} seeds"].append(short_title(change.metric))
            for text, metrics in partly.items():
                name = ": ".join(reversed(self._of(setting, of)))
                where[text].append(name if len(metrics) == len(changes) else f"{name} ({', '.join(metrics)})")
        return [
            f"{text}, in {'all settings' if len(names) == len(self._shown) > 1 else '; '.join(names)}"
            for text, names in where.items()
        ]

    def __repr__(self) -> str:
        differ = sum(not {change.sign for change in changes} <= {*NO_NEWS, "~"} for changes in self._shown.values())
        return f"Comparison: {self.title}; {count(len(self._shown), 'setting')}, {differ} differ; {self.about[-1]}"

    def _repr_html_(self) -> str:
        return str(pd.DataFrame(self.rows(), columns=self.headers()).to_html(index=False))


def count(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' * (number != 1)}"
