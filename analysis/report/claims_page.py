"""The claims ledger for people: one self-contained page with the figures inside, and tables in Markdown."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections import Counter
from collections.abc import Mapping, Sequence
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
    Constant,
    Figure,
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
            "limit": limit(claim),
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
        constants=[(constant, changes_of(ledger, constant)) for constant in ledger.constants],
        substitutions=ledger.substitutions,
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

_COLUMNS = ("id", "claim", "published", "ours", "verdict", "holds within", "data", "measured", "reason")
Figures = Mapping[str, Sequence[Figure]]  # document → its figures, in order


def verdict_table(ledger: Ledger) -> str:
    """The number of claims per document and verdict; our extensions have a column of their own."""
    rows = []
    for document, claims in ledger.documents().items():
        rows.append([f"`{document}`", str(_claimed(claims)), *(str(n or "–") for n in counted(claims).values())])
    return _rows(["document", "claims", *COUNTED], rows) + "\n"


def markdown(ledger: Ledger, figures: Figures, pictures: Sequence[str] = ()) -> str:
    """An index, the constants that nobody published, what runs take, and a section per document and figure.

    `pictures`: names of files in the folder `figures`, as `picture_name` makes them, or several with numbers.
    """
    parts = [_counts(ledger.claims), _index(ledger, figures)]
    if ledger.constants:
        parts += [f"## {_CONSTANTS}", _constants(ledger)]
    if ledger.taken:
        parts += ["## What a run takes", _costs(ledger)]
    for document, claims in ledger.documents().items():
        parts += [f"## {document}: {TITLES.get(document, document)}", f"{_counts(claims)} {_seeds(claims)}".rstrip()]
        if said := ledger.substitutions.get(document):
            parts.append(f"**Data of ours in place of the document's.** {said}")
        for run in ledger.made.get(document, ()):
            when = run.date[:16].replace("T", " ")
            parts.append(f"Measured until {when} on {run.machine} by `{run.command}`, {run.seconds:,.0f} s in all.")
        for figure, own in of_figures(claims, figures.get(document, ())):
            parts += _section(document, figure, own, pictures)
    return "\n\n".join(parts) + "\n"


def of_figures(claims: Sequence[Claim], figures: Sequence[Figure]) -> list[tuple[Figure, list[Claim]]]:
    """The claims of a document under its figures; a claim belongs to the first whose expression it matches."""
    last = Figure("Claims", "", (), "")
    under: dict[Figure, list[Claim]] = {figure: [] for figure in (*figures, last)}
    for claim in claims:
        under[next(figure for figure in under if re.match(figure.claims, claim.id))].append(claim)
    return [(figure, own) for figure, own in under.items() if own]


def picture_name(document: str, figure: Figure) -> str:
    return f"{document}-{_slug(figure.name)}.png"


def _section(document: str, figure: Figure, claims: Sequence[Claim], pictures: Sequence[str]) -> list[str]:
    parts = [f"### {_heading(document, figure)}", figure.shows]
    own = re.compile(re.escape(picture_name(document, figure).removesuffix(".png")) + r"(-\d+)?\.png")
    parts += [f"![{_heading(document, figure)}](figures/{name})" for name in pictures if own.fullmatch(name)]
    constants = list(dict.fromkeys(name for claim in claims for name in claim.constants))
    unpublished = f"[Not published](#{_slug(_CONSTANTS)}): {', '.join(constants)}." if constants else ""
    assumed = " ".join(filter(None, (figure.assumes, unpublished)))
    command = f"`coverlay reproduce {document} --figures {','.join(figure.steps)}`" if figure.steps else ""
    parts += [f"Assumed: {assumed}" if assumed else "", command]
    return [*filter(None, parts), _rows(_COLUMNS, [_cells(claim) for claim in claims])]


def _heading(document: str, figure: Figure) -> str:
    return f"{document} {figure.name}"


def _slug(text: str) -> str:
    """As web sites make the anchor of a heading."""
    return re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-")


def _index(ledger: Ledger, figures: Figures) -> str:
    rows = []
    for document, claims in ledger.documents().items():
        for figure, own in of_figures(claims, figures.get(document, ())):
            found = "; ".join(f"{n} {name}" for name, n in counted(own).items() if n)
            linked = f"[{figure.name}](#{_slug(_heading(document, figure))})"
            rows.append([f"`{document}`", linked, figure.shows, found])
    return _rows(["document", "figure", "shows", "claims"], rows)


_CONSTANTS = "Constants that no document publishes"


def _constants(ledger: Ledger) -> str:
    head = ["document", "figure", "constant", "what", "where", "our value", "why", "what changes"]
    rows = [
        [f"`{c.document}`", c.figure, f"`{c.name}`", c.what, f"`{c.where}`", c.ours, c.why, changes_of(ledger, c)]
        for c in ledger.constants
    ]
    return _rows(head, rows)


def changes_of(ledger: Ledger, constant: Constant) -> str:
    """What other values of a constant change: what is said of it, and every claim that was judged with others."""
    own = [c for c in ledger.claims if c.document == constant.document and constant.name in c.constants and c.swept]
    said = [f"{c.id}: {c.ours}; " + "; ".join(f"{at}: {r.ours}" for at, r in c.swept.items()) for c in own]
    return ". ".join(filter(None, [constant.changes, *said]))


def _costs(ledger: Ledger) -> str:
    """Steps in the order in which to run them: what answers soonest first."""
    rows = []
    for t in sorted(ledger.taken, key=lambda t: t.seconds):
        command = f"`coverlay reproduce {t.document} --figures {t.step}`"
        size = "all" if t.share == 1.0 else f"{t.share:g} of them"
        rows.append([command, f"{t.seconds / 60:,.1f}", str(t.points), str(t.seeds), size, f"{t.load:.1f}"])
    whole = sum(t.seconds for t in ledger.taken) / 3600
    said = (
        f"What the points that ship took, {whole:.1f} hours in all, in the order in which to run the figures: what "
        "answers soonest first. Figures share points, so a run of a whole document takes less than its lines together."
    )
    return f"{said}\n\n{_rows(['command', 'minutes', 'points', 'seeds', 'subscriptions', 'highest load'], rows)}"


def _rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows)])


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
    ours = [
        claim.ours,
        *(f"{basis}: {r.ours} ({r.verdict})" for basis, r in claim.beside.items()),
        *(f"with {value}: {r.ours}" for value, r in claim.swept.items()),
    ]
    busy = f", measured on a busy machine: {high}" if (high := _high_load(claim)) else ""
    reason = [_why(claim), *(f"the opposite by {basis}" for basis in claim.disagrees)]
    seeds = f"{claim.seeds} seed{'s' * (claim.seeds > 1)}" if claim.seeds else ""
    return [
        f"`{claim.id}`",
        claim.claim,
        claim.published,
        "; ".join(part for part in ours if part),
        f"{claim.finding}, by {claim.basis}{busy}",
        limit(claim),
        claim.substitution or "as published",
        ", ".join(filter(None, (claim.size, seeds))) or "–",
        "; ".join(part for part in reason if part),
    ]


def limit(claim: Claim) -> str:
    """Where ours must lie, and whether that number is ours."""
    return f"{claim.band} (our limit)" if claim.own_limit else claim.band


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
