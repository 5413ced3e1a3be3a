"""Running reproductions into a ledger, and shipping it.

Each document has its own `claims.json` in its folder, which a run replaces claim by claim: one that ends early leaves
the others as they were. The ledger of the output folder is all of them together; a declared claim that was never
measured is "not run".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

from analysis.report.claims import (
    LEDGER,
    NOT_RUN,
    Claim,
    Ledger,
    Made,
    Taken,
    read_ledger,
    write_ledger,
)
from coverlay import CoverlayError, unknown_name
from sim.bench import Progress
from sim.reproduce import DOCUMENTS, SCALABLE
from sim.reproduce.page import write_pages
from sim.reproduce.pictures import Drawing
from sim.reproduce.points import machine, points_file, shares, shipped_file
from sim.reproduce.rules import SAID, UNMEASURED
from sim.reproduce.sheet import FIRST_SEED, SEEDS, NotMeasured, Sheet, Steps
from sim.reproduce.tables import CONSTANTS, SUBSTITUTIONS, declared

SHIPPED = Path(__file__).parents[2] / "docs" / LEDGER  # beside the sources; an installed package has none
# Of a claim: how it was measured, not what came out.
_WHEN: Mapping[str, Any] = {
    "date": "",
    "load": None,
    "seconds": None,
}


def reproduce(
    document: str,
    out: Path,
    progress: Progress,
    *,
    quick: bool = False,
    resume: bool = False,
    seeds: int | None = None,
    first_seed: int = FIRST_SEED,
    most_load: float | None = None,
    share: float = 1.0,
    figures: Sequence[str] = (),
    kept_in: Path | None = None,
) -> None:
    """Measure a document, or only these figures, into `<out>/<document>`.

    Claims of other figures, and those that an interrupted run did not reach, are kept as they were. A resumed run also
    uses the points that ship with the ledger in the folder `kept_in`.
    """
    folder = out / document
    if not 0.0 < share <= 1.0:
        raise CoverlayError(f"--share {share:g} must be above 0 and at most 1")
    if share != 1.0 and (quick or document not in SCALABLE):
        raise CoverlayError(f"--share is for full runs of {' and '.join(SCALABLE)}, whose subscriptions can be fewer")
    if not resume and not figures:
        points_file(folder, quick).unlink(missing_ok=True)
    shipped = shipped_file(kept_in, document) if kept_in else None
    sheet = Sheet(
        document,
        folder,
        progress,
        quick=quick,
        seeds=seeds,
        first_seed=first_seed,
        most_load=most_load,
        share=share,
        again=not resume,
        shipped=shipped,
    )
    steps: Steps = import_module(DOCUMENTS[document]).steps(sheet)
    for name in figures:
        if name not in steps:
            raise unknown_name(f"figure of {document}", name, steps)
    # What repeats this run. Where it was written and what was resumed do not matter.
    command = f"coverlay reproduce {document}{' --quick' * quick}{f' --seeds {seeds}' if seeds else ''}"
    command += f" --seed {first_seed}" * (first_seed != FIRST_SEED)
    command += f" --share {share:g}" * (share != 1.0)
    command += f" --figures {','.join(figures)}" * bool(figures)
    try:
        for name in figures or steps:
            steps[name]()
        if not figures:
            sheet.finish()
    finally:
        _keep(folder / LEDGER, sheet, command, fresh=not resume and not figures)


def _keep(file: Path, sheet: Sheet, command: str, fresh: bool) -> None:
    """Replace the claims in the file that this run has judged."""
    made = Made(sheet.until, machine(), command, round(sheet.seconds, 1))
    judged = {claim.id: claim for claim in sheet.claims}
    claims = [judged.get(id) or told.not_run(sheet.document) for id, told in sheet.told.items()]
    found = Ledger({sheet.document: [made]}, claims)
    write_ledger(_over(read_ledger(file), found) if file.exists() and not fresh else found, file)


def collected(out: Path, documents: Sequence[str]) -> Ledger:
    """Everything that was measured in a folder, and "not run" for the other claims of these documents."""
    made: dict[str, Sequence[Made]] = {}
    claims: list[Claim] = []
    for document in documents:
        found: dict[str, Claim] = {}
        if (file := out / document / LEDGER).exists():
            ledger = read_ledger(file)
            made |= ledger.made
            found = {claim.id: claim for claim in ledger.claims}
        claims += [found.get(id) or told.not_run(document) for id, told in declared(document).items()]
    return Ledger(made, claims, CONSTANTS, SUBSTITUTIONS)


def _silent(_: str) -> None:
    """Progress that is not shown."""


@dataclass(frozen=True)
class Judged:
    """What follows from the points of a document: claims, what each step took, and curves by the name of a picture."""

    claims: list[Claim]
    taken: list[Taken]
    drawn: dict[str, Drawing]


def judged(document: str, docs: Path, out: Path) -> Judged:
    """The verdicts on a document that follow from the points that ship in the folder `docs`; nothing is measured.

    Figures were measured with different shares of the document's subscriptions and numbers of data sets: a claim rests
    on the largest share, and then on as many sets, as have all its points. One that has none is "not run". Pictures
    that are more than curves are written to `out`.
    """
    found: dict[str, Claim] = {}
    taken: list[Taken] = []
    drawn: dict[str, Drawing] = {}
    steps_of = import_module(DOCUMENTS[document]).steps
    shipped = shipped_file(docs, document)

    def judging(share: float, seeds: int) -> Sheet:
        return Sheet(document, out, _silent, seeds=seeds, shipped=shipped, only_judge=True, share=share)

    for step in steps_of(judging(1.0, SEEDS)):
        for share, seeds in product(shares(shipped) or [1.0], range(SEEDS, 0, -1)):
            sheet, whole = judging(share, seeds), False
            with suppress(NotMeasured):
                steps_of(sheet)[step]()
                whole = True
            found = {claim.id: claim for claim in sheet.claims} | found
            if whole:
                drawn |= sheet.drawn
                if used := sheet.used:
                    load = round(max(point["load"] for point in used), 1)
                    taken.append(Taken(document, step, round(sheet.seconds, 1), len(used), seeds, share, load))
                break
    claims = [found.get(id) or told.not_run(document) for id, told in declared(document).items()]
    return Judged(claims, taken, drawn)


def unlike(ledger: Ledger, claims: Sequence[Claim]) -> list[tuple[Claim | None, Claim]]:
    """The claims that a ledger has otherwise or not at all, with what it has; those that are not run have no say."""
    kept = {(claim.document, claim.id): claim for claim in ledger.claims}
    pairs = [(kept.get((claim.document, claim.id)), claim) for claim in claims if claim.verdict != NOT_RUN]
    return [(was, now) for was, now in pairs if was is None or replace(was, **_WHEN) != replace(now, **_WHEN)]


def measured_in(out: Path) -> list[str]:
    return [document for document in sorted(DOCUMENTS) if (out / document / LEDGER).exists()]


def ship(ledger: Ledger, docs: Path) -> None:
    """Write `claims.json` and the pages that explain it; claims not run now stay as they were there."""
    ledger = _over(read_ledger(docs / LEDGER), ledger) if (docs / LEDGER).exists() else ledger
    write_pages(ledger, docs)
    write_ledger(ledger, docs / LEDGER)


def _over(old: Ledger, new: Ledger) -> Ledger:
    """The new ledger, with the old verdicts on claims that it has not run, unless the claim itself has changed.

    Its class, and what it rests on, change nothing about what was measured.
    """
    before = {(claim.document, claim.id): claim for claim in old.claims if claim.verdict != NOT_RUN}

    def chosen(claim: Claim) -> Claim:
        was = before.get((claim.document, claim.id))
        same = was is not None and all(getattr(was, name) == getattr(claim, name) for name in SAID)
        if was is None or not same or claim.verdict != NOT_RUN:
            return claim
        return replace(was, **{name: getattr(claim, name) for name in UNMEASURED})

    claims = [chosen(claim) for claim in new.claims]
    made = {document: list(runs) for document, runs in new.made.items()}
    for document in {claim.document for claim, now in zip(claims, new.claims, strict=True) if claim is not now}:
        again = {(run.command, run.machine) for run in made.get(document, ())}
        earlier = [run for run in old.made.get(document, ()) if (run.command, run.machine) not in again]
        made[document] = [*earlier, *made.get(document, ())]
    timed = {step.document for step in new.taken}
    taken = sorted([*new.taken, *(step for step in old.taken if step.document not in timed)], key=lambda t: t.document)
    return Ledger({document: made[document] for document in sorted(made)}, claims, CONSTANTS, SUBSTITUTIONS, taken)


def coming(document: str, quick: bool, figures: Sequence[str] = ()) -> str:
    """What a run of a document will do, and how long it took before, if known."""
    size = "smaller sizes, one seed" if quick else "full size"
    if figures:
        return f"{document}: {', '.join(figures)}, {size}"
    said = f"{document}: {len(declared(document))} claims, {size}"
    runs = [] if quick or not SHIPPED.exists() else read_ledger(SHIPPED).made.get(document, [])
    if not runs:
        return said
    return f"{said}; those in {SHIPPED.name} took {sum(run.seconds for run in runs) / 60:.0f} min on {runs[-1].machine}"
