"""The claims ledger: what a document says, what we measured, and whether it holds.

A reproduction returns `Claim`s; `write_claims` turns them into `claims.json` for programs and one self-
contained page for people, with the figures inside it. A claim that does not hold must say why.
"""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from analysis.report.assets import asset
from broker.trace.disk import replaced_file, writing
from coverlay import CoverlayError, __version__, unknown_name

HOLDS = "holds"
OTHER_FACTOR = "holds with a different factor"
FAILS = "does not hold"
VERDICTS = (HOLDS, OTHER_FACTOR, FAILS)

# What the documents are called; others are called by their short names only.
TITLES = {
    "icdcs07": "Approximate Covering Detection among Content-Based Subscriptions Using Space Filling Curves (2007)",
    "vldb08": "Scalable Ranked Publish/Subscribe (2008)",
    "ibm04": "Efficient Interval Indexing for Content-Based Subscription (2004)",
    "icde12": "Relevance Matters: Top-k Matching in Publish/Subscribe (2012)",
    "sstd15": "Efficient Top-k Subscription Matching for Location-Aware Publish/Subscribe (2015)",
}

# What a browser draws from a data: address, and what our reproductions draw.
_PICTURES = {"image/png", "image/svg+xml", "image/jpeg", "image/webp"}


@dataclass(frozen=True)
class Claim:
    """One sentence of a document, put to the test."""

    id: str  # unique within its document, e.g. "fig-7a"
    document: str  # as `coverlay reproduce` calls it
    claim: str  # its meaning in our words
    published: str  # the document's figure
    measured: str  # ours
    verdict: str  # one of VERDICTS
    why: str  # for anything but "holds": the reason; may be empty otherwise
    seconds: float  # what measuring it took, together with the claims of the same measurement
    figure: str | None = None  # a picture file: absolute, or relative to the output or the document's folder

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise unknown_name(f"verdict of claim {self.document}/{self.id}", self.verdict, VERDICTS)
        if self.verdict != HOLDS and not self.why.strip():
            raise CoverlayError(f"claim {self.document}/{self.id} {self.verdict!r} must say why")


def write_claims(claims: Sequence[Claim], out: Path, seconds: float | None = None) -> Path:
    """Write `<out>/claims.json` and `<out>/claims.html`, and return the page's path.

    `seconds` is what all of it took: claims that share a measurement each have its time, so theirs do not add up.
    """
    seen: set[tuple[str, str]] = set()
    for claim in claims:
        if (claim.document, claim.id) in seen:
            raise CoverlayError(f"claim {claim.document}/{claim.id} is there twice; each id is used once")
        seen.add((claim.document, claim.id))
    out.mkdir(parents=True, exist_ok=True)
    listed = json.dumps([asdict(claim) for claim in claims], indent=2, ensure_ascii=False)
    _replace(out / "claims.json", listed + "\n")
    page = out / "claims.html"
    _replace(page, render(claims, out, seconds))
    return page


def read_claims(path: Path) -> list[Claim]:
    """The claims of an earlier `claims.json`."""
    try:
        return [Claim(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise CoverlayError(f"{path} is not a claims file: {error}") from error


def render(claims: Sequence[Claim], out: Path, seconds: float | None = None) -> str:
    documents: dict[str, list[dict[str, Any]]] = {}
    figures: dict[str, dict[str, list[dict[str, Any]]]] = {}  # document → picture → the claims it shows
    for claim in claims:
        row = {**asdict(claim), "picture": _picture(claim, out), "tone": _tone(claim)}
        documents.setdefault(claim.document, []).append(row)
        if row["picture"]:
            figures.setdefault(claim.document, {}).setdefault(row["picture"], []).append(row)
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(asset("claims.html.jinja")).render(
        documents=documents,
        counts=counts,
        titles=TITLES,
        total=len(claims),
        figures=figures,
        seconds=seconds,
        version=__version__,
        css=Markup(asset("report.css")),
        js=Markup(asset("theme.js")),
    )


def _tone(claim: Claim) -> str:
    return {HOLDS: "good", OTHER_FACTOR: "mixed", FAILS: "bad"}[claim.verdict]


def _picture(claim: Claim, out: Path) -> str:
    """The claim's figure as a data: address, or nothing where it has none."""
    if claim.figure is None:
        return ""
    places = [out / claim.figure, out / claim.document / claim.figure]  # an absolute figure stands for itself
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise CoverlayError(f"the figure {claim.figure} of claim {claim.document}/{claim.id} is not in {out}")
    kind = mimetypes.guess_type(path.name)[0]
    if kind not in _PICTURES:
        raise CoverlayError(f"the figure {path} is of type {kind}; it must be PNG, SVG, JPEG or WebP")
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _replace(path: Path, text: str) -> None:
    with writing(path, "make room and repeat the command"), replaced_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
