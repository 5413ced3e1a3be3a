"""What a document says (`Told`), and how measured numbers become a verdict: two-sided, within a band that is stated.

Every seed gives a value. Times are read with a noise of 15 % on top of the seeds' own spread, counts and bytes with
none. A published number has a band around it, from NEAR of it to 1/NEAR of it: "holds" if the range of the seeds, noise
included, meets the band, "holds, by more than published" or "holds with a smaller factor" if it lies beyond on either
side, "does not hold" if one seed does not show the direction beyond the noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.report.claims import CLAIMED, FAILS, HOLDS, KINDS, MORE, NOT_RUN, OPEN, SMALLER, Claim, numeral
from analysis.report.claims import TIME as TIME  # less what the same call takes where there is nothing to do
from coverlay import CoverlayError, unknown_name

# What a verdict can rest on.
COUNTS = "counts"  # operations counted: comparisons, nodes, queue operations, cubes, probes
ACCOUNTED = "the paper's accounting"  # bytes as the document counts them
ALLOCATED = "allocated bytes"
ANSWERS = "answers"  # what comes out is right or wrong
BASES = (COUNTS, TIME, ACCOUNTED, ALLOCATED, ANSWERS)

NEAR = 0.75  # a published number counts as met from this share of it on, and up to its inverse
NOISE = {TIME: 0.15}  # times of two runs differ by up to this share: a smaller difference shows nothing


class Rule(ABC):
    """When a claim holds. `judge` gets a value per seed, and the share by which each may be off."""

    unit: str  # of the values

    @property
    @abstractmethod
    def band(self) -> str:
        """Where the values must lie for "holds"."""

    @abstractmethod
    def judge(self, values: Sequence[float], noise: float) -> str:
        """The verdict."""

    def show(self, value: float) -> str:
        return f"{numeral(value, 3)}{self.unit}"


def _in_band(low: float, high: float, nothing: float, band: tuple[float, float]) -> str:
    """The verdict on values between low and high; the value `nothing` means no difference."""
    if low <= nothing:
        return FAILS
    return SMALLER if high < band[0] else MORE if low > band[1] else HOLDS


@dataclass(frozen=True)
class Factor(Rule):
    """Something is better by a published factor, or by a factor between two published ones."""

    least: float
    most: float = 0.0  # 0: the same as `least`
    unit: str = "×"

    @property
    def _ends(self) -> tuple[float, float]:
        return NEAR * self.least, max(self.least, self.most) / NEAR

    @property
    def band(self) -> str:
        low, high = self._ends
        return f"{max(low, 1.0):.3g} to {high:.3g}×"

    def judge(self, values: Sequence[float], noise: float) -> str:
        return _in_band(min(values) / (1.0 + noise), max(values) * (1.0 + noise), 1.0, self._ends)


@dataclass(frozen=True)
class Saving(Rule):
    """A cost falls by a published share, in per cent. Noise is that of the cost that is left."""

    published: float
    unit: str = " %"

    @property
    def _ends(self) -> tuple[float, float]:
        return NEAR * self.published, 100.0 - NEAR * (100.0 - self.published)

    @property
    def band(self) -> str:
        low, high = self._ends
        return f"{low:.3g} to {high:.3g} %"

    def judge(self, values: Sequence[float], noise: float) -> str:
        low = 100.0 - (100.0 - min(values)) * (1.0 + noise)
        high = 100.0 - (100.0 - max(values)) / (1.0 + noise)
        return _in_band(low, high, 0.0, self._ends)


@dataclass(frozen=True)
class About(Rule):
    """A value is about the published one: off by no more than a stated factor, either way."""

    value: float
    factor: float
    unit: str = "×"

    @property
    def band(self) -> str:
        return f"{self.show(self.value / self.factor)} to {self.show(self.value * self.factor)}"

    def judge(self, values: Sequence[float], noise: float) -> str:
        largest, smallest = max(values) / (1.0 + noise), min(values) * (1.0 + noise)
        return HOLDS if largest <= self.value * self.factor and smallest >= self.value / self.factor else FAILS


@dataclass(frozen=True)
class AtMost(Rule):
    """A published upper bound; noise counts in its favour."""

    limit: float
    unit: str = "×"

    @property
    def band(self) -> str:
        return f"at most {self.show(self.limit)}"

    def judge(self, values: Sequence[float], noise: float) -> str:
        return HOLDS if max(values) / (1.0 + noise) <= self.limit else FAILS


@dataclass(frozen=True)
class SavesAtMost(AtMost):
    """A cost falls by no more than this many per cent, if at all. Noise is that of the cost that is left."""

    unit: str = " %"

    def judge(self, values: Sequence[float], noise: float) -> str:
        return HOLDS if 100.0 - (100.0 - max(values)) * (1.0 + noise) <= self.limit else FAILS


@dataclass(frozen=True)
class AtLeast(AtMost):
    """A published lower bound; noise counts in its favour. `AtLeast(1)` is "always the best": ties are not losses."""

    @property
    def band(self) -> str:
        return f"at least {self.show(self.limit)}"

    def judge(self, values: Sequence[float], noise: float) -> str:
        return HOLDS if min(values) * (1.0 + noise) >= self.limit else FAILS


@dataclass(frozen=True)
class Above(AtMost):
    """A direction: every seed must be above the value, beyond the noise."""

    @property
    def band(self) -> str:
        return f"above {self.show(self.limit)}"

    def judge(self, values: Sequence[float], noise: float) -> str:
        return HOLDS if min(values) > self.limit * (1.0 + noise) else FAILS


@dataclass(frozen=True)
class Below(AtMost):
    """A direction: every seed must be below the value, beyond the noise."""

    @property
    def band(self) -> str:
        return f"below {self.show(self.limit)}"

    def judge(self, values: Sequence[float], noise: float) -> str:
        return HOLDS if max(values) * (1.0 + noise) < self.limit else FAILS


@dataclass(frozen=True)
class Yes(Rule):
    """Right or wrong; the text beside it says what came out."""

    unit: str = ""

    @property
    def band(self) -> str:
        return "yes"

    def judge(self, values: Sequence[float], noise: float) -> str:
        return HOLDS if all(values) else FAILS

    def show(self, value: float) -> str:
        return "yes" if value else "no"


SAID = ("claim", "published", "basis", "band")
UNMEASURED = ("kind", "substitution", "constants", "own_limit")  # change nothing about what was measured


@dataclass(frozen=True)
class Told:
    """One claim as its document makes it."""

    id: str
    claim: str  # its meaning in our words
    published: str  # its figure
    rule: Rule
    basis: str  # what the document measured, so what the verdict rests on
    kind: str = CLAIMED  # or another class
    constants: tuple[str, ...] = ()  # unpublished ones that it rests on (tables/unpublished.py)
    substitution: str = ""  # data of ours in place of the document's
    own_limit: bool = False  # the document gives a direction or a word; the number in the rule is ours

    def __post_init__(self) -> None:
        if self.basis not in BASES:
            raise CoverlayError(f"claim {self.id} rests on {self.basis!r}; it must be one of {', '.join(BASES)}")
        if self.kind not in KINDS:
            raise unknown_name(f"kind of claim {self.id}", self.kind, KINDS)
        if self.kind == OPEN and not self.constants:
            raise CoverlayError(f"claim {self.id} is {OPEN}, so it must name what was not published")

    @property
    def band(self) -> str:
        """Where the values must lie for "holds"."""
        return self.rule.band

    def said(self, document: str) -> dict[str, Any]:
        """What a claim takes from its declaration."""
        return {"document": document, "id": self.id, **{name: getattr(self, name) for name in (*SAID, *UNMEASURED)}}

    def not_run(self, document: str) -> Claim:
        return Claim(**self.said(document), verdict=NOT_RUN)


def table(*claims: Told | Iterable[Told], substitution: str = "") -> dict[str, Told]:
    """The claims of one document by id, all on data of ours if `substitution` says so; no id may be declared twice."""
    found: dict[str, Told] = {}
    for item in claims:
        for told in [item] if isinstance(item, Told) else item:
            if told.id in found:
                raise CoverlayError(f"claim {told.id} is declared twice; each id is used once")
            found[told.id] = replace(told, substitution=told.substitution or substitution)
    return found
