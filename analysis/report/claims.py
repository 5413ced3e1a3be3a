"""The claims ledger: what a document says, what we measured, and whether it holds.

A reproduction gives `Claim`s; `write_ledger` turns them into `claims.json` for programs and, with claims_page.py, into
one self-contained page for people. A claim that does not hold as published must say why, and what was measured to find
the reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from broker.trace.disk import CURE, replaced_file, writing
from coverlay import CoverlayError, unknown_name

HOLDS = "holds"
MORE = "holds, by more than published"
SMALLER = "holds with a smaller factor"
FAILS = "does not hold"
UNTESTABLE = "not testable at this size"
NOT_RUN = "not run"
VERDICTS = (HOLDS, MORE, SMALLER, FAILS, UNTESTABLE, NOT_RUN)
_NEEDS_CAUSE = (SMALLER, FAILS)

# The class of a claim. Only what a document claims counts as held or failed; all else is counted under its class.
CLAIMED = "claimed"
OPEN = "open for lack of a constant or data"  # what was not published decides it: the range is shown, no verdict counts
EXTENSION = "our extension"  # a question of ours, or a number that we derived: the document does not claim it
KINDS = (CLAIMED, OPEN, EXTENSION)

LEDGER = "claims.json"

TIME = "time"  # the basis of verdicts that a busy machine may change

_TITLES = {
    "icdcs07": "Approximate Covering Detection among Content-Based Subscriptions Using Space Filling Curves (2007)",
    "vldb08": "Scalable Ranked Publish/Subscribe (2008)",
    "ibm04": "Efficient Interval Indexing for Content-Based Subscription (2004)",
    "icde12": "Relevance Matters: Top-k Matching in Publish/Subscribe (2012)",
    "sstd15": "Efficient Top-k Subscription Matching for Location-Aware Publish/Subscribe (2015)",
}


def title(document: str) -> str:
    """Its short name and its title, if it is one of ours."""
    return f"{document}: {_TITLES[document]}" if document in _TITLES else document


@dataclass(frozen=True)
class Reading:
    """What one way of measuring says about a claim."""

    ours: str
    verdict: str


@dataclass(frozen=True)
class Claim:
    """One statement of a document, put to the test."""

    id: str  # unique within its document, e.g. "fig-7a"
    document: str  # as `coverlay reproduce` calls it
    claim: str  # its meaning in our words
    published: str  # the document's figure
    basis: str  # what the verdict is based on: the quantity that the document measured
    band: str  # where ours must lie for "holds"
    verdict: str  # one of VERDICTS
    own_limit: bool = False  # the document gives a direction or a word, and the number in the band is ours
    kind: str = CLAIMED  # its class: one of KINDS
    substitution: str = ""  # the data of ours that it was measured on where the document's is not to be had
    constants: Sequence[str] = ()  # names of the unpublished constants (`Constant`) that it rests on
    ours: str = ""  # with the range over seeds
    seeds: int = 0
    size: str = ""  # of what was measured
    reason: str = ""  # why it does not hold as published
    evidence: Mapping[str, float] = field(default_factory=dict)  # what was measured to find that reason
    beside: Mapping[str, Reading] = field(default_factory=dict)  # the same claim, measured in other ways
    swept: Mapping[str, Reading] = field(default_factory=dict)  # the same claim at other values of these constants
    overhead: str = ""  # of the calls; it is subtracted from times
    date: str = ""  # of the measurement
    load: float | None = None  # runnable processes meanwhile, this one included; None: not recorded
    seconds: float | None = None  # that the measurement took, which other claims may share
    figure: str | None = None  # a picture file: absolute, or relative to the output or the document's folder

    def __post_init__(self) -> None:
        name = f"claim {self.document}/{self.id}"
        for verdict in (self.verdict, *(reading.verdict for reading in (*self.beside.values(), *self.swept.values()))):
            if verdict not in VERDICTS:
                raise unknown_name(f"verdict of {name}", verdict, VERDICTS)
        if self.kind not in KINDS:
            raise unknown_name(f"kind of {name}", self.kind, KINDS)
        if self.verdict in (*_NEEDS_CAUSE, UNTESTABLE) and not self.reason.strip():
            raise CoverlayError(f"{name} {self.verdict!r} must say why")
        if self.verdict in _NEEDS_CAUSE and not self.evidence:
            raise CoverlayError(f"{name} {self.verdict!r} must name what was measured to find the reason")

    @property
    def counted_as(self) -> str:
        """Its verdict if the document claims it, else its kind."""
        return self.verdict if self.kind == CLAIMED else self.kind

    @property
    def conclusion(self) -> str:
        """The verdict, unless what was not published decides it."""
        if self.kind == OPEN and self.verdict != NOT_RUN:
            return f"not decidable without {', '.join(self.constants)}"
        return self.verdict

    @property
    def finding(self) -> str:
        """The conclusion as it is shown; what no document claims says so first."""
        return self.verdict if self.kind == CLAIMED else f"{self.kind}: {self.conclusion}"

    @property
    def timed(self) -> bool:
        return self.basis == TIME

    @property
    def disagrees(self) -> list[str]:
        """The other ways of measuring (`beside`) that say the opposite."""
        if self.kind == OPEN or self.verdict in (UNTESTABLE, NOT_RUN):
            return []
        return [basis for basis, r in self.beside.items() if (r.verdict == FAILS) != (self.verdict == FAILS)]


@dataclass(frozen=True)
class Made:
    """One run of the command that measured claims of a document."""

    date: str
    machine: str
    command: str
    seconds: float  # of all measurements together, those of earlier runs included


@dataclass(frozen=True)
class Constant:
    """Something that a document's results depend on and that it does not say."""

    name: str
    document: str
    figure: str  # of the document, that depends on it
    what: str
    where: str  # in our code
    ours: str  # our value
    why: str  # this value
    changes: str  # what other values change, with the values tried; or that none was


@dataclass(frozen=True)
class Figure:
    """A figure of a document, or claims of its text that belong together: a section of the page."""

    name: str  # as the document calls it
    shows: str
    steps: Sequence[str]  # what `--figures` measures for it
    claims: str  # a regular expression: the claims under it are those whose ids begin so
    assumes: str = ""  # what is not the document's, beside constants and data that are named elsewhere


@dataclass(frozen=True)
class Taken:
    """What one step of a document's run took."""

    document: str
    step: str
    seconds: float
    points: int
    seeds: int
    share: float  # of the document's subscriptions
    load: float  # the highest


@dataclass(frozen=True)
class Ledger:
    made: Mapping[str, Sequence[Made]]  # document → the runs that measured its claims, the latest last
    claims: Sequence[Claim]
    constants: Sequence[Constant] = ()
    substitutions: Mapping[str, str] = field(default_factory=dict)  # document → what data of ours stands for its own
    taken: Sequence[Taken] = ()

    def __post_init__(self) -> None:
        seen: set[tuple[str, str]] = set()
        for claim in self.claims:
            if (claim.document, claim.id) in seen:
                raise CoverlayError(f"claim {claim.document}/{claim.id} is there twice; each id is used once")
            seen.add((claim.document, claim.id))

    def documents(self) -> dict[str, list[Claim]]:
        found: dict[str, list[Claim]] = {}
        for claim in self.claims:
            found.setdefault(claim.document, []).append(claim)
        return found


COUNTED = (*VERDICTS, *KINDS[1:])


def counted(claims: Sequence[Claim]) -> dict[str, int]:
    """The number of claims per verdict, and of what no document claims per kind, in the order of COUNTED."""
    return {name: sum(claim.counted_as == name for claim in claims) for name in COUNTED}


def numeral(value: float, digits: int) -> str:
    """A number with `digits` digits, or all before its point if there are more; a power of ten only if it is tiny."""
    return f"{value:,.{digits}g}" if abs(value) < 10**digits else f"{value:,.0f}"


def write_ledger(ledger: Ledger, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "made": {document: [asdict(run) for run in runs] for document, runs in ledger.made.items()},
        "constants": [asdict(constant) for constant in ledger.constants],
        "substitutions": dict(ledger.substitutions),
        "taken": [asdict(step) for step in ledger.taken],
        "claims": [asdict(claim) for claim in ledger.claims],
    }
    replace_text(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_ledger(path: Path) -> Ledger:
    """An earlier `claims.json`."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        made = {document: [Made(**run) for run in runs] for document, runs in found["made"].items()}
        constants = [Constant(**{"figure": "", **row}) for row in found.get("constants", ())]
        taken = tuple(Taken(**row) for row in found.get("taken", ()))
        claims = [_claim(row) for row in found["claims"]]
        return Ledger(made, claims, constants, found.get("substitutions", {}), taken)
    except OSError as error:
        raise CoverlayError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CoverlayError(f"{path} is not a claims file: {error}") from error


def _claim(row: dict[str, Any]) -> Claim:
    readings = {
        name: {basis: Reading(**reading) for basis, reading in row.get(name, {}).items()}
        for name in ("beside", "swept")
    }
    return Claim(**{**row, **readings, "constants": tuple(row.get("constants", ()))})


def changes(old: Ledger, new: Ledger) -> list[tuple[str, str, str, str]]:
    """(document, id, old, new) of every claim whose verdict differs, or that only one of the two ledgers has.

    Only documents of the new ledger count, and no old claim that was not run again.
    """
    looked_at = {claim.document for claim in new.claims}
    before, after = ({(c.document, c.id): c for c in some.claims if c.document in looked_at} for some in (old, new))
    found = []
    for key in dict.fromkeys((*before, *after)):
        was, now = before.get(key), after.get(key)
        if was is not None and now is not None and now.verdict == NOT_RUN:
            continue
        if was is None or now is None or was.finding != now.finding:
            found.append((*key, _said(was), _said(now)))
    return found


def _said(claim: Claim | None) -> str:
    if claim is None:
        return "no such claim"
    return f"{claim.finding} ({claim.ours})" if claim.ours else claim.finding


def replace_text(path: Path, text: str) -> None:
    with writing(path, f"{CURE} and repeat the command"), replaced_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
