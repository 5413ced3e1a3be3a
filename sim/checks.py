"""`coverlay check-plugin`: the checks that our own methods pass, for what a plug-in registers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from covering.conformance import CHECKS as COVERING
from coverlay import Broken, CoverlayError, quoted, unknown_name
from routing.conformance import CHECKS as ROUTING
from sim import conformance, plugins
from topk.conformance import CHECKS as TOPK
from topk.places.contract import PlacedIndex
from topk.sparse.contract import SparseIndex

THOROUGH = 10  # times as many cases
MOST_SECONDS = 60.0  # of one check, unless it is to be thorough


@dataclass(frozen=True)
class Result:
    """How a check of a method ended."""

    kind: str
    method: str
    check: str
    cases: int  # done
    failed: int | None  # the number of the case that fails
    message: str
    example: tuple[str, ...]
    where: str  # in the plug-in, if it raised something
    seconds: float

    @property
    def holds(self) -> bool:
        return self.failed is None


@dataclass(frozen=True)
class PluginCheck:
    """One check of one method; calling it raises what is wrong, so that it is a test."""

    file: str
    kind: str
    method: str
    check: str
    cases: int
    function: Callable[[str, int], None]

    def __str__(self) -> str:
        return f"{self.method}-{self.check}"

    def __call__(self) -> None:
        found = self.run()
        if not found.holds:
            raise Broken("\n".join([found.message, *found.example]))

    def run(self, case: int | None = None, most_seconds: float = MOST_SECONDS) -> Result:
        """Try the cases one after the other, or only one, up to the first that fails."""
        begun, done = time.perf_counter(), 0
        for number in range(self.cases) if case is None else [case]:
            if done and time.perf_counter() - begun > most_seconds:
                break
            done += 1
            try:
                self.function(self.method, number)
            except Exception as error:
                where = plugins.whereabouts(error) or plugins.whereabouts(error.__cause__ or error) or ""
                said = error.what if isinstance(error, Broken) else f"{type(error).__name__}: {error}"
                example = error.example if isinstance(error, Broken) else ()
                return self._result(done, number, said, example, where, begun)
        return self._result(done, None, "", (), "", begun)

    def _result(
        self, done: int, failed: int | None, said: str, example: tuple[str, ...], where: str, begun: float
    ) -> Result:
        took = time.perf_counter() - begun
        return Result(self.kind, self.method, self.check, done, failed, said, example, where, took)


def plugin_checks(file: str | Path, thorough: bool = False) -> list[PluginCheck]:
    """All checks of what a plug-in registers: `pytest.mark.parametrize("check", plugin_checks("mine.py"), ids=str)`."""
    return list(_checks(str(file), thorough))


def registers(file: str | Path) -> list[str]:
    """What a plug-in registers: `covering method widest-first`, …"""
    return [f"{registry.what} {name}" for _, registry, name, _ in plugins.of(plugins.load(str(file)))]


def _checks(file: str, thorough: bool) -> Iterator[PluginCheck]:
    for kind, _, name, written in plugins.of(plugins.load(file)):
        own: dict[str, tuple[int, Callable[[str, int], None]]] = {}
        if kind == "covering":
            own = COVERING
        elif kind == "routing":
            own = ROUTING
        elif kind == "topk":
            places, sparse = issubclass(written, PlacedIndex), issubclass(written, SparseIndex)
            own = TOPK["places" if places else "predicates" if sparse else "boxes"]
        for check, (cases, function) in {**own, **conformance.of_kind(kind)}.items():
            many = cases * THOROUGH if thorough and cases > 1 else cases
            yield PluginCheck(file, kind, name, check, many, function)


def results(
    file: str | Path, only: str | None = None, case: int | None = None, thorough: bool = False
) -> Iterator[Result]:
    """The result of each check, as it ends."""
    checks = plugin_checks(file, thorough)
    if only is not None:
        known = list(dict.fromkeys(check.check for check in checks))
        if only not in known:
            raise unknown_name("check", only, known)
        checks = [check for check in checks if check.check == only]
    elif case is not None:
        raise CoverlayError(f"--case {case} is a case of one check; name it with --only")
    for check in checks:
        if case is not None and not 0 <= case < check.cases:
            raise CoverlayError(f"--case is {quoted(case)}; {check.check} has the cases 0 to {check.cases - 1}")
        yield check.run(case, float("inf") if thorough else MOST_SECONDS)


def check_plugin(
    file: str | Path, only: str | None = None, case: int | None = None, thorough: bool = False
) -> pd.DataFrame:
    """One row per check of what a plug-in registers: does it hold, and if not, the smallest example."""
    found = results(file, only, case, thorough)
    rows = [{**vars(result), "holds": result.holds, "example": "\n".join(result.example)} for result in found]
    return pd.DataFrame(rows)
