"""The claims ledger for people: one self-contained page with the figures inside."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from analysis.report.assets import asset
from analysis.report.claims import (
    EXTENSION,
    FAILS,
    HOLDS,
    LEDGER,
    MORE,
    NOT_RUN,
    OPEN,
    SMALLER,
    UNTESTABLE,
    Claim,
    Ledger,
    counted,
    numeral,
    replace_text,
    title,
    write_ledger,
)
from analysis.report.claims_markdown import changes_of, claimed, elsewhere, limit, seeds_of
from coverlay import CoverlayError, __version__

_TONES = {HOLDS: "good", MORE: "good", SMALLER: "mixed", FAILS: "bad", UNTESTABLE: "mixed", NOT_RUN: "mixed"}
_TONES |= {OPEN: "aside", EXTENSION: "aside"}

_BUSY = 2.0  # from this load on, the page says that the machine was busy

# Pictures that browsers show from a data: address.
_PICTURES = {"image/png", "image/svg+xml", "image/jpeg", "image/webp"}


def write_claims(ledger: Ledger, out: Path) -> Path:
    """Write `<out>/claims.json` and `<out>/claims.html`, and return the page's path."""
    write_ledger(ledger, out / LEDGER)
    page = out / "claims.html"
    replace_text(page, render(ledger, out))
    return page


def render(ledger: Ledger, out: Path) -> str:
    documents: dict[str, list[dict[str, Any]]] = {}
    figures: dict[str, dict[str, list[dict[str, Any]]]] = {}  # document → picture → the claims it shows
    for claim in ledger.claims:
        row = {
            **asdict(claim),
            "picture": _picture(claim, out),
            "finding": claim.finding,
            "tone": _TONES[claim.counted_as],
            "disagrees": claim.disagrees,
            "how": _how(claim),
            "limit": limit(claim),
            "elsewhere": elsewhere(claim.swept),
        }
        documents.setdefault(claim.document, []).append(row)
        if row["picture"]:
            figures.setdefault(claim.document, {}).setdefault(row["picture"], []).append(row)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(asset("claims.html.jinja")).render(
        documents=documents,
        data={document: said for document, claims in ledger.documents().items() if (said := _data(claims))},
        counts=[(verdict, _TONES[verdict], n) for verdict, n in counted(ledger.claims).items() if n],
        titles={document: title(document) for document in documents},
        made=ledger.made,
        total=claimed(ledger.claims),
        figures=figures,
        numeral=numeral,
        constants=[(constant, changes_of(ledger, constant)) for constant in ledger.constants],
        substitutions=ledger.substitutions,
        version=__version__,
        css=Markup(asset("report.css")),
        js=Markup(asset("theme.js")),
    )


def _data(claims: Sequence[Claim]) -> str:
    """The data that all claims were measured on, if it is the same for all."""
    used = {claim.substitution for claim in claims}
    if len(used) > 1:
        return ""
    return next(iter(used)) or "data as published"


def _how(claim: Claim) -> str:
    """Seeds, date, time taken and, if it was high, the load of the machine."""
    if claim.verdict == NOT_RUN:
        return ""
    said = [
        seeds_of(claim),
        claim.date[:16].replace("T", " ") if claim.date else "date not recorded",
        "" if claim.seconds is None else f"{claim.seconds:,.1f} s",
        f"machine busy: load {claim.load:.1f}"
        if claim.load is not None and claim.timed and claim.load >= _BUSY
        else "",
    ]
    return ", ".join(filter(None, said))


def _picture(claim: Claim, out: Path) -> str:
    """The claim's figure as a data: address; empty if it has none."""
    if claim.figure is None:
        return ""
    places = [out / claim.figure, out / claim.document / claim.figure]  # an absolute path replaces the folder
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise CoverlayError(f"the figure {claim.figure} of claim {claim.document}/{claim.id} is not in {out}")
    kind = mimetypes.guess_type(path.name)[0]
    if kind not in _PICTURES:
        raise CoverlayError(f"the figure {path} is of type {kind}; it must be PNG, SVG, JPEG or WebP")
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
