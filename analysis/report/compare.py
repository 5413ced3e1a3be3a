"""Two or more results, or the values of one swept key, by the same effects as a page: the first is the baseline.

Settings are matched by their swept keys (two results of one setting each are matched as they are), runs by their seeds.
Where there are no common seeds the interval is not paired, and this is said. What only some results have is listed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.report.answer import asked
from analysis.report.effects import CHANCE, EQUAL, Effects, Paired
from analysis.report.factors import against_first, said
from analysis.report.numbers import and_all, value_text
from analysis.report.summary import Summary
from analysis.report.table import short_title
from analysis.report.told import read_experiment
from analysis.report.words import change_text, with_unit
from analysis.spark.metrics import CATALOGUE, metric
from analysis.spark.traces import open_run, run_folders
from coverlay import CoverlayError, quoted, unknown_name

WHERE = "results"  # the key that says which results a run is of
CLOCK = {"wall_seconds"}  # differs between equal runs
COLUMNS = ("setting", "of", "metric", "a", "b", "n", "difference", "low", "high", "verdict", "paired")


@dataclass(frozen=True)
class Comparison:
    """What differs. `table` has a row per setting, results beside the first, and metric."""

    names: tuple[str, ...]
    table: pd.DataFrame  # COLUMNS
    settings: pd.DataFrame  # key, and its value in each of the results, where they differ
    only: tuple[str, ...]  # settings that some lack, in words
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

    def rows(self) -> list[list[str]]:
        """A line per setting and metric that changed, then its ties; equal settings are counted in one line."""
        found, alike = [], 0
        shown = self.table[self.table["metric"].isin(self.metrics)]
        for (setting, of), some in shown.groupby(["setting", "of"], sort=False):
            rows = {row["metric"]: row for row in some.to_dict("records")}
            ties = [short_title(name) for name in self.metrics if name in rows and rows[name]["verdict"] == EQUAL]
            unknown = [short_title(name) for name in self.metrics if name not in rows]
            if len(ties) + len(unknown) == len(self.metrics):
                alike += 1
                continue
            cells = [_cells(rows[name]) for name in self.metrics if name in rows and rows[name]["verdict"] != EQUAL]
            cells += [[", ".join(names), sign, ""] for names, sign in ((ties, "="), (unknown, "–")) if names]
            first = self._of(str(setting), str(of))
            found += [[*(first if number == 0 else [""] * len(first)), *row] for number, row in enumerate(cells)]
        if alike:
            which = f"{alike} {'other ' if found else ''}setting{'s' * (alike != 1)}"
            found.append([*self._of(which, ""), "all", "=", ""])
        return found

    def _of(self, setting: str, of: str) -> list[str]:
        """Which results are compared with the first; needless if there are but two."""
        return [setting, of] if len(self.names) > 2 else [setting]

    def headers(self) -> list[str]:
        return [*self._of("setting", "of"), "metric", "from → to", "change"]

    def lines(self) -> list[str]:
        """What differs beside the numbers, and how to read them."""
        differ = [
            f"{row['key']}: {' → '.join(str(row[name]) for name in self.names)}"
            for row in self.settings.to_dict("records")
        ]
        low = self.table["n"].min() if len(self.table) else 0
        return [
            *([f"differ: {'; '.join(differ)}"] if differ else []),
            *self.only,
            *([] if self.table["paired"].all() else ["no common seeds: intervals are not paired, and wider"]),
            f"=: equal with every seed; ~: the 95 % interval of the differences contains 0 (n = {low} or more); "
            f"–: unknown on one side{'' if low > 1 else '; one seed has no interval'}",
        ]

    def _repr_html_(self) -> str:
        return str(pd.DataFrame(self.rows(), columns=self.headers()).to_html(index=False))


def compare_results(results: Mapping[str, Summary], metrics: Sequence[str] = ()) -> Comparison:
    """The results by name, at least two; the first is the baseline."""
    if len(results) < 2:
        raise CoverlayError("there is nothing to compare: give two or more results, or one and a swept key (by)")
    names = list(results)
    alone = all(len(summary.order) == 1 for summary in results.values())
    keyed = {name: {"": of.order[0]} if alone else {point: point for point in of.order} for name, of in results.items()}
    common = [setting for setting in keyed[names[0]] if all(setting in of for of in keyed.values())]
    if not common:
        raise CoverlayError(
            f"{' and '.join(names)} have no setting in common; settings of one result are compared with by = KEY"
        )
    titles = Effects(results[names[0]])
    marked = [
        _marked(summary, {keyed[name][setting]: json.dumps([name, setting]) for setting in common})
        for name, summary in results.items()
    ]
    merged = _together(marked)
    of = {point: json.loads(point)[0] for point in merged.order}
    setting_of = {point: json.loads(point)[1] for point in merged.order}
    words = {setting: titles.title(keyed[names[0]][setting]) for setting in common}
    only = tuple(
        f"only in {name}: {Effects(summary).title(point)}"
        for name, summary in results.items()
        for setting, point in keyed[name].items()
        if setting not in common
    )
    table = _table(merged, names, of, setting_of, words, WHERE)
    differ = _settings(results)
    first = _first_differences(results, keyed)
    return Comparison(tuple(names), table, differ, only, first, _shown(titles, metrics))


def compare_by(summary: Summary, key: str, metrics: Sequence[str] = ()) -> Comparison:
    """The values of one swept key, all else equal."""
    if key not in summary.swept:
        raise unknown_name("swept key", key, summary.swept)
    effects = Effects(summary)
    base = next(level for f in effects.factors if key in f.keys for level in f.levels if level not in f.base)
    order = sorted(
        summary.order, key=lambda point: not any(of == base for of in (f.of[point] for f in effects.factors))
    )
    texts = {point: _text_of(summary, point, key) for point in order}
    merged = _marked(summary, {point: json.dumps([text, _without(point, key)]) for point, text in texts.items()})
    of, setting_of = ({point: json.loads(point)[part] for point in merged.order} for part in (0, 1))
    words = {
        setting: ", ".join(said(name, value, True) for name, value in json.loads(setting).items()) or "all else equal"
        for setting in setting_of.values()
    }
    names = list(dict.fromkeys(texts.values()))
    table = _table(merged, names, of, setting_of, words, key)
    if table.empty:
        raise CoverlayError(f"no two settings of {summary.out} differ in {quoted(key)} alone")
    nothing = pd.DataFrame(columns=["key", *names])
    return Comparison(tuple(names), table, nothing, (), {}, _shown(effects, metrics), key)


def _text_of(summary: Summary, point: str, key: str) -> str:
    """The value of a swept key; where a case does not set it, that of the experiment."""
    values = {**summary.settings(point), **json.loads(point)}
    return value_text(values[key]) if key in values else "not set"


def _without(point: str, key: str) -> str:
    return json.dumps({name: value for name, value in json.loads(point).items() if name != key}, sort_keys=True)


def _shown(effects: Effects, wanted: Sequence[str]) -> tuple[str, ...]:
    """Those wanted, else what the experiment of the baseline asks about, else the usual ones."""
    asks = read_experiment(effects.summary.out)[1].get("asks", ())
    return tuple(metric(name).name for name in wanted) or asked(effects, asks)


class _Marked(Summary):
    """Results whose points are named anew; their order is that of the runs."""

    @property
    def order(self) -> list[str]:
        return list(dict.fromkeys(self.runs["point"]))


def _marked(summary: Summary, names: Mapping[str, str]) -> _Marked:
    runs, points = (
        frame[frame["point"].isin(names.keys())].assign(point=lambda some: some["point"].map(names))
        for frame in (summary.runs, summary.points)
    )
    order = {name: number for number, name in enumerate(names.values())}
    runs = runs.sort_values("point", key=lambda column: column.map(order), kind="stable")
    empty = pd.DataFrame()
    return _Marked(summary.out, runs, points, empty, empty, empty, empty)


def _together(parts: Sequence[Summary]) -> _Marked:
    runs, points = (
        pd.concat([getattr(part, name) for part in parts], ignore_index=True) for name in ("runs", "points")
    )
    empty = pd.DataFrame()
    return _Marked(parts[0].out, runs, points, empty, empty, empty, empty)


def _table(
    merged: Summary,
    names: Sequence[str],
    of: Mapping[str, str],
    setting_of: Mapping[str, str],
    words: Mapping[str, str],
    title: str,
) -> pd.DataFrame:
    compared = against_first(
        title, dict(sorted(of.items(), key=lambda item: names.index(item[1]))), {n: n for n in names}
    )
    effects = Effects(merged, [compared, against_first("setting", setting_of, words)])
    rows = []
    for name in CATALOGUE:
        values = effects.values(name)
        for level, base in compared.base.items():
            effect = None if name in CLOCK else effects.compare(compared, base, level, name)
            parts = [(part, True) for part in effect.parts] if effect else []
            if name not in CLOCK and not parts:  # no seed has both, or nobody has it
                ends = {(of[p], setting_of[p]): p for p in merged.order}
                alone = (
                    Paired.unpaired(json.dumps([s]), values[ends[base, s]], values[ends[level, s]])
                    for s in words
                    if (base, s) in ends and (level, s) in ends
                )
                parts = [(part, False) for part in alone if part is not None]
            for part, paired in parts:
                setting = words[json.loads(part.rest)[0]]
                low, high = part.difference - part.half, part.difference + part.half
                numbers = (part.base, part.value, part.n, part.difference, low, high)
                rows.append((setting, level, name, *numbers, part.verdict, paired))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _cells(row: Mapping[Any, Any]) -> list[str]:
    """Metric, 9,048 → 7,187, −20.6 % ± 3.1; ~ before what may be chance."""
    name = row["metric"]
    part = Paired("", row["n"], row["a"], row["b"], row["high"] - row["difference"], False)
    sign = "~ " * (row["verdict"] == CHANCE)
    return [
        short_title(name),
        f"{sign}{with_unit(part.base, name)} → {with_unit(part.value, name)}",
        change_text(part, name),
    ]


# ── what else differs ──────────────────────────────────────────────────────────────────────────────────────


def _settings(results: Mapping[str, Summary]) -> pd.DataFrame:
    """Settings that all runs of a result share, versions and machines, where the results differ in them."""
    found = {name: _facts(summary) for name, summary in results.items()}
    keys = dict.fromkeys(key for of in found.values() for key in of)
    rows = [
        {"key": key, **{name: of.get(key, "–") for name, of in found.items()}}
        for key in keys
        if len({of.get(key, "–") for of in found.values()}) > 1
    ]
    return pd.DataFrame(rows, columns=["key", *found])


def _facts(summary: Summary) -> dict[str, str]:
    runs = summary.runs
    seeds = sorted({int(seed) for seed in runs["seed"]})
    found = {"seeds": ", ".join(map(str, seeds))}
    found |= {
        name: ", ".join(sorted({str(value) for value in runs[name]})) for name in ("engine", "machine") if name in runs
    }
    folder = next(iter(run_folders(summary.out)), None) if (summary.out / "runs").is_dir() else None
    if folder is None:
        return found  # only results were kept
    run = open_run(folder)
    swept = set(summary.swept)
    flat = {key: value for key, value in _flat(run.parameters).items() if key not in swept}
    versions = json.loads(run.record["versions"])
    return found | {f"version of {name}": str(version) for name, version in versions.items()} | flat


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in values.items():
        found |= (
            _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value_text(value)}
        )
    return found


def _first_differences(results: Mapping[str, Summary], keyed: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The first run that has no equal, by trace hash and by metrics."""
    rows: dict[str, dict[tuple[str, int], Any]] = {}
    for name, summary in results.items():
        setting_of = {point: setting for setting, point in keyed[name].items()}
        runs = sorted(summary.runs.to_dict("records"), key=lambda row: row["seed"])
        rows[name] = {(setting_of[row["point"]], row["seed"]): row for row in runs}
    (base, ones), *others = rows.items()
    found: dict[str, str] = {}
    for name, its in others:
        for setting, seed in dict.fromkeys([*ones, *its]):
            a, b = ones.get((setting, seed)), its.get((setting, seed))
            where = f"seed {seed}{f' of {setting}' if setting else ''}"
            if a is None or b is None:
                for what in ("traces", "metrics"):
                    found.setdefault(what, f"{where} is only in {name if a is None else base}")
                continue
            hashes = a["trace_hash"], b["trace_hash"]
            if hashes[0] != hashes[1]:
                found.setdefault("traces", f"{where}: trace {hashes[0]} in {base}, {hashes[1]} in {name}")
            for key in [name for name in CATALOGUE if name not in CLOCK]:
                if a.get(key) != b.get(key) and not (pd.isna(a.get(key)) and pd.isna(b.get(key))):
                    found.setdefault("metrics", f"{where}: {key} is {a.get(key)} in {base}, {b.get(key)} in {name}")
    return found
