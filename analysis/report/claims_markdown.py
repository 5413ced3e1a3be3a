"""The claims ledger in Markdown: tables of an index page, and a page per document with a section per figure.

What all claims of a figure have in common (how they were measured, and on what) is said above their table; a claim for
which it is different says so in its row.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

from analysis.report.claims import (
    CLAIMED,
    COUNTED,
    NOT_RUN,
    VERDICTS,
    Claim,
    Constant,
    Figure,
    Ledger,
    Reading,
    Taken,
    counted,
    numeral,
    title,
)

Figures = Mapping[str, Sequence[Figure]]  # document → its figures, in order
PAGES = "reproduction"  # the folder of the documents' pages, beside the index
_CONSTANTS = "Constants that no document publishes"


def index(ledger: Ledger, figures: Figures) -> str:
    """Every document, every figure, the constants that nobody published, and what runs take."""
    rows = [
        [f"[{document} {figure.name}]({_page(document)}#{_slug(figure.name)})", figure.shows, _counted(own)]
        for document, claims in ledger.documents().items()
        for figure, own in of_figures(claims, figures.get(document, ()))
    ]
    parts = [_verdicts(ledger), _counts(ledger.claims), "## Index", _table(["figure", "shows", "claims"], rows)]
    if ledger.constants:
        parts += [f"## {_CONSTANTS}", _constants(ledger)]
    if ledger.taken:
        parts += ["## What a run takes", _costs(ledger)]
    return "\n\n".join(parts) + "\n"


def of_document(ledger: Ledger, document: str, figures: Figures, pictures: Sequence[str] = ()) -> str:
    """A section per figure. `pictures`: names of files in the folder `figures` beside the index, which are as
    `picture_name` makes them, or several with numbers."""
    claims = ledger.documents()[document]
    parts = [f"{_counts(claims)} {_when(ledger, document, claims)}".rstrip()]
    if said := ledger.substitutions.get(document):
        parts.append(f"**Data of ours in place of the document's.** {said}")
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


# ---- the index ------------------------------------------------------------------------------------------


def _page(document: str) -> str:
    return f"{PAGES}/{document}.md"


def _verdicts(ledger: Ledger) -> str:
    """The number of claims per document and verdict; what no document claims has columns of its own."""
    rows = []
    for document, claims in ledger.documents().items():
        linked = f"[{title(document)}]({_page(document)})"
        rows.append([linked, str(claimed(claims)), *(str(n or "") for n in counted(claims).values())])
    return _table(["document", "claims", *COUNTED], rows)


def _slug(text: str) -> str:
    """As web sites make the anchor of a heading."""
    return re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-")


def _constants(ledger: Ledger) -> str:
    said: dict[str, str] = {}  # what claims show → the first constant under which it is said
    rows = []
    for c in ledger.constants:
        changes = changes_of(ledger, c)
        first = c.name if c.changes else said.setdefault(changes, c.name)
        which = f"`{c.name}` ({c.document} {c.figure})"
        rows.append([which, f"{c.what} (`{c.where}`)", c.ours, c.why, changes if first == c.name else f"see `{first}`"])
    return _table(["constant", "what", "our value", "why", "what changes"], rows)


def changes_of(ledger: Ledger, constant: Constant) -> str:
    """What other values of a constant change: what is said of it, and every claim that was judged with others."""
    own = [c for c in ledger.claims if c.document == constant.document and constant.name in c.constants and c.swept]
    said = [f"{c.id}: {c.ours} by {c.basis}; " + "; ".join(elsewhere(c.swept)) for c in own]
    return ". ".join(filter(None, [constant.changes, *said]))


def elsewhere(swept: Mapping[str, Reading]) -> list[str]:
    """What comes out at other values of a constant, a text per value."""
    found: dict[str, list[str]] = {}
    for name, reading in swept.items():
        value, basis = name.rsplit(", ", 1)
        found.setdefault(value, []).append(f"{reading.ours} by {basis}")
    return [f"with {value} {', '.join(said)}" for value, said in found.items()]


def _costs(ledger: Ledger) -> str:
    """Steps in the order in which to run them: what answers soonest first."""
    hours = sum(t.seconds for t in ledger.taken) / 3600
    said = (
        f"Minutes that the points that ship took, {hours:.1f} hours in all, in the order in which to run the steps: "
        "what answers soonest first. Steps share points, so a whole document takes less than its steps together. A "
        "step that is not named has no points that ship."
    )
    steps = {
        document: sorted(own, key=lambda t: t.seconds)
        for document, own in groupby(sorted(ledger.taken, key=lambda t: t.document), key=lambda t: t.document)
    }
    lines = [
        f"- `coverlay reproduce {document} --figures …`: {', '.join(_cost(t) for t in own)}"
        for document, own in sorted(steps.items(), key=lambda item: sum(t.seconds for t in item[1]))
    ]
    return "\n".join([said, "", *lines])


def _cost(t: Taken) -> str:
    return f"`{t.step}` {t.seconds / 60:,.1f}" + f" ({t.share:g} of the subscriptions)" * (t.share != 1.0)


# ---- the page of a document -----------------------------------------------------------------------------


def _when(ledger: Ledger, document: str, claims: Sequence[Claim]) -> str:
    days = sorted({claim.date[:10] for claim in claims if claim.date})
    if not days:
        return ""
    machines = list(dict.fromkeys(run.machine for run in ledger.made.get(document, ())))
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"Measured {span}{' on ' * bool(machines)}{'; '.join(machines)}."


def _section(document: str, figure: Figure, claims: Sequence[Claim], pictures: Sequence[str]) -> list[str]:
    own = re.compile(re.escape(picture_name(document, figure).removesuffix(".png")) + r"(-\d+)?\.png")
    shown = [f"![{document} {figure.name}](../figures/{name})" for name in pictures if own.fullmatch(name)]
    command = f"`coverlay reproduce {document} --figures {','.join(figure.steps)}`" if figure.steps else ""
    constants = list(dict.fromkeys(name for claim in claims for name in claim.constants))
    linked = f"[Not published](../{PAGES}.md#{_slug(_CONSTANTS)}): {', '.join(constants)}." if constants else ""
    assumed = " ".join(filter(None, (figure.assumes, linked)))
    common = _Common(claims)
    parts = [f"## {figure.name}", " ".join(filter(None, (figure.shows, command))), *shown]
    parts += [" ".join(filter(None, (common.said, f"Assumed: {assumed}" if assumed else "")))]
    rows = [_cells(claim, common) for claim in claims]
    return [*filter(None, parts), _table(["claim", "published", "ours", "verdict", "why"], rows)]


def seeds_of(claim: Claim) -> str:
    return f"{claim.seeds} seed{'s' * (claim.seeds > 1)}" if claim.seeds else ""


_HOW: tuple[Callable[[Claim], str], ...] = (
    lambda claim: f"by {claim.basis}",
    lambda claim: claim.size,
    seeds_of,
    lambda claim: f"data of ours: {claim.substitution}" if claim.substitution else "data as published",
)


class _Common:
    """How most claims of a figure were measured."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        run = [claim for claim in claims if claim.verdict != NOT_RUN]
        self._usual = [Counter(map(how, run)).most_common(1)[0][0] if run else "" for how in _HOW]
        loads = sorted(claim.load for claim in run if claim.load is not None and claim.timed)
        span = dict.fromkeys(f"{load:.1f}" for load in (*loads[:1], *loads[-1:]))
        usual = [text for text in (*self._usual, f"load {' to '.join(span)}" if span else "") if text]
        self.said = f"Judged {', '.join(usual)}." if run else ""

    def unlike(self, claim: Claim) -> list[str]:
        """How a claim was measured otherwise."""
        if claim.verdict == NOT_RUN:
            return []
        return [said for how, usual in zip(_HOW, self._usual, strict=True) if (said := how(claim)) != usual and said]


def _cells(claim: Claim, common: _Common) -> list[str]:
    beside = [
        f"{basis}: {r.ours}" + f" ({r.verdict})" * (r.verdict != claim.verdict) for basis, r in claim.beside.items()
    ]
    return [
        f"`{claim.id}` {claim.claim}",
        claim.published if claim.band in (claim.published, "yes") else f"{claim.published} ({limit(claim)})",
        "; ".join(filter(None, [claim.ours, *beside, *elsewhere(claim.swept)])),
        ", ".join([claim.finding, *common.unlike(claim)]),
        _why(claim),
    ]


def limit(claim: Claim) -> str:
    """Where ours must lie, and whether that number is ours."""
    return f"{claim.band}, our limit" if claim.own_limit else claim.band


def _why(claim: Claim) -> str:
    """The reason with the figures behind it; "a, b" and "a, c" are b and c of a."""
    of: dict[str, list[str]] = {}
    for name, value in claim.evidence.items():
        *whose, what = name.rsplit(", ", 1)
        of.setdefault("".join(whose), []).append(f"{what} {numeral(value, 3)}")
    said = [f"{whose}: {', '.join(each)}" if whose else "; ".join(each) for whose, each in of.items()]
    return f"{claim.reason} [{'; '.join(said)}]" if claim.reason and said else claim.reason


# ---- common ---------------------------------------------------------------------------------------------


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns that have nothing in any row are left out."""
    used = [at for at, _ in enumerate(head) if any(row[at] for row in rows)]
    lines = ["| " + " | ".join(head[at] for at in used) + " |", "|" + "---|" * len(used)]
    return "\n".join([*lines, *("| " + " | ".join(_escaped(row[at]) for at in used) + " |" for row in rows)])


def claimed(claims: Sequence[Claim]) -> int:
    """How many the document makes itself."""
    return sum(claim.kind == CLAIMED for claim in claims)


def _counts(claims: Sequence[Claim]) -> str:
    said = {name: f"{n} {name}" for name, n in counted(claims).items() if n}
    found = ", ".join(text for name, text in said.items() if name in VERDICTS)
    beside = ", ".join(text for name, text in said.items() if name not in VERDICTS)
    return f"{claimed(claims)} claims: {found}{'; beside them, ' * bool(beside)}{beside}."


def _counted(claims: Sequence[Claim]) -> str:
    return "; ".join(f"{n} {name}" for name, n in counted(claims).items() if n)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
