"""The claims ledger for people: one self-contained page with the figures inside, and tables in Markdown."""

from __future__ import annotations

import base64
import mimetypes
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from analysis.report.assets import asset
from analysis.report.claims import (
    CLAIMED,
    COUNTED,
    EXTENSION,
    FAILS,
    HOLDS,
    LEDGER,
    MORE,
    NOT_RUN,
    OPEN,
    SMALLER,
    TITLES,
    UNTESTABLE,
    VERDICTS,
    Claim,
    Ledger,
    counted,
    numeral,
    replace_text,
    write_ledger,
)
from coverlay import CoverlayError, __version__

_TONES = {HOLDS: "good", MORE: "good", SMALLER: "mixed", FAILS: "bad", UNTESTABLE: "mixed", NOT_RUN: "mixed"}
_TONES |= {OPEN: "aside", EXTENSION: "aside"}

# Pictures that browsers show from a data: address.
_PICTURES = {"image/png", "image/svg+xml", "image/jpeg", "image/webp"}

BUSY = 2.0  # from this load on, the page says that the machine was busy


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
        }
        documents.setdefault(claim.document, []).append(row)
        if row["picture"]:
            figures.setdefault(claim.document, {}).setdefault(row["picture"], []).append(row)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(asset("claims.html.jinja")).render(
        documents=documents,
        counts=[(verdict, _TONES[verdict], n) for verdict, n in counted(ledger.claims).items() if n],
        titles=TITLES,
        made=ledger.made,
        total=_claimed(ledger.claims),
        figures=figures,
        numeral=numeral,
        version=__version__,
        css=Markup(asset("report.css")),
        js=Markup(asset("theme.js")),
    )


def _how(claim: Claim) -> str:
    """Seeds, date, time taken and, if it was high, the load of the machine."""
    if claim.verdict == NOT_RUN:
        return ""
    said = [
        f"{claim.seeds} seed{'s' if claim.seeds > 1 else ''}" if claim.seeds else "",
        claim.date[:16].replace("T", " ") if claim.date else "date not recorded",
        "" if claim.seconds is None else f"{claim.seconds:,.1f} s",
        f"machine busy: {high}" if (high := _high_load(claim)) else "",
    ]
    return ", ".join(filter(None, said))


def _high_load(claim: Claim) -> str:
    return f"load {claim.load:.1f}" if claim.load is not None and claim.load >= BUSY else ""


def _why(claim: Claim) -> str:
    """The reason with the figures behind it."""
    measured = "; ".join(f"{name}: {numeral(value, 3)}" for name, value in claim.evidence.items())
    return f"{claim.reason} [{measured}]" if claim.reason and measured else claim.reason


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


# ---- Markdown -------------------------------------------------------------------------------------------

_COLUMNS = ("id", "claim", "published", "ours", "verdict", "holds within", "seeds", "size", "reason")


def verdict_table(ledger: Ledger) -> str:
    """The number of claims per document and verdict; our extensions have a column of their own."""
    rows = [["document", "claims", *COUNTED], ["---"] * (2 + len(COUNTED))]
    for document, claims in ledger.documents().items():
        rows.append([f"`{document}`", str(_claimed(claims)), *(str(n or "–") for n in counted(claims).values())])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def markdown(ledger: Ledger) -> str:
    """A table per document with a line per claim, and how and when it was measured."""
    parts = [_counts(ledger.claims)]
    for document, claims in ledger.documents().items():
        parts += [f"### {document}: {TITLES.get(document, document)}", f"{_counts(claims)} {_seeds(claims)}".rstrip()]
        for run in ledger.made.get(document, ()):
            when = run.date[:16].replace("T", " ")
            parts.append(f"Measured until {when} on {run.machine} by `{run.command}`, {run.seconds:,.0f} s in all.")
        rows = ["| " + " | ".join(_COLUMNS) + " |", "|" + "---|" * len(_COLUMNS)]
        rows += ["| " + " | ".join(_escaped(cell) for cell in _cells(claim)) + " |" for claim in claims]
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _claimed(claims: Sequence[Claim]) -> int:
    """How many the document makes itself."""
    return sum(claim.kind == CLAIMED for claim in claims)


def _counts(claims: Sequence[Claim]) -> str:
    said = {name: f"{n} {name}" for name, n in counted(claims).items() if n}
    found = ", ".join(text for name, text in said.items() if name in VERDICTS)
    beside = ", ".join(text for name, text in said.items() if name not in VERDICTS)
    return f"{_claimed(claims)} claims: {found}{'; beside them, ' * bool(beside)}{beside}."


def _seeds(claims: list[Claim]) -> str:
    """How many claims were measured with how many seeds."""
    each = Counter(claim.seeds for claim in claims if claim.seeds)
    said = [f"{n} seed{'s' if n > 1 else ''}: {each[n]} claim{'s' if each[n] > 1 else ''}" for n in sorted(each)]
    return f"{', '.join(said)}." if said else ""


def _cells(claim: Claim) -> list[str]:
    ours = [claim.ours, *(f"{basis}: {r.ours} ({r.verdict})" for basis, r in claim.beside.items())]
    busy = f" ({high})" if (high := _high_load(claim)) else ""
    reason = [_why(claim), *(f"the opposite by {basis}" for basis in claim.disagrees)]
    return [
        f"`{claim.id}`",
        claim.claim,
        claim.published,
        "; ".join(part for part in ours if part),
        f"{claim.finding}, by {claim.basis}{busy}",
        claim.band,
        str(claim.seeds or "–"),
        claim.size,
        "; ".join(part for part in reason if part),
    ]


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
