"""Running reproductions into a ledger, and shipping it.

Each document has its own `claims.json` in its folder, which a run replaces claim by claim: one that ends early leaves
the others as they were. The ledger of the output folder is all of them together; what a document declares and nobody
has measured is "not run".
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree

from analysis.report.claims import LEDGER, NOT_RUN, Claim, Ledger, Made, read_ledger, replace_text, write_ledger
from analysis.report.claims_page import markdown, verdict_table
from coverlay import CoverlayError
from sim.bench import Progress
from sim.reproduce import DOCUMENTS, POINTS
from sim.reproduce.sheet import SAID, Sheet, not_run
from sim.reproduce.tables import declared

SHIPPED = Path(__file__).parents[2] / "docs" / LEDGER  # beside the sources; an installed package has none
PAGE = "reproduction.md"
_BEGINS = "<!-- Below this line `coverlay reproduce all --ledger docs` writes. -->\n"
_COUNTS = "<!-- The next lines, too: -->\n"  # up to an empty line


def reproduce(
    document: str,
    out: Path,
    progress: Progress,
    *,
    quick: bool = False,
    resume: bool = False,
    seeds: int | None = None,
    most_load: float | None = None,
) -> None:
    """Measure a document into `<out>/<document>`; what was judged before an interruption is kept."""
    folder = out / document
    if not resume:
        rmtree(folder / POINTS / ("quick" if quick else "full"), ignore_errors=True)
    # What it can be repeated by; where it was written to and what was resumed changes nothing.
    command = f"coverlay reproduce {document}{' --quick' * quick}{f' --seeds {seeds}' if seeds else ''}"
    sheet = Sheet(document, folder, progress, quick, seeds, most_load)
    try:
        import_module(DOCUMENTS[document]).run(sheet)
        sheet.finish()
    finally:
        _keep(folder / LEDGER, sheet, command, fresh=not resume)


def _keep(file: Path, sheet: Sheet, command: str, fresh: bool) -> None:
    """Put what was judged in the place of what was there."""
    claims: dict[str, Claim] = {}
    if file.exists() and not fresh:
        claims = {claim.id: claim for claim in read_ledger(file).claims}
    claims |= {claim.id: claim for claim in sheet.claims}
    now = datetime.now().astimezone().isoformat(timespec="minutes")
    made = Made(now, machine(), command, round(sheet.seconds, 1))
    write_ledger(Ledger({sheet.document: made}, [claims[id] for id in sheet.told if id in claims]), file)


def collected(out: Path, documents: Sequence[str]) -> Ledger:
    """Everything that was measured in a folder, and "not run" for what these documents declare beside it."""
    made: dict[str, Made] = {}
    claims: list[Claim] = []
    for document in documents:
        found: dict[str, Claim] = {}
        if (file := out / document / LEDGER).exists():
            ledger = read_ledger(file)
            made |= ledger.made
            found = {claim.id: claim for claim in ledger.claims}
        claims += [found.get(id) or not_run(document, told) for id, told in declared(document).items()]
    return Ledger(made, claims)


def measured_in(out: Path) -> list[str]:
    return [document for document in sorted(DOCUMENTS) if (out / document / LEDGER).exists()]


def ship(ledger: Ledger, docs: Path) -> None:
    """Write `claims.json` and the tables of the page that explains it; what was not run now stays as it was there."""
    page = docs / PAGE
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    for line in (_COUNTS, _BEGINS):
        if line not in text:
            raise CoverlayError(f"{page} has no line {line.strip()!r}, below which the claims are written")
    ledger = _over(read_ledger(docs / LEDGER), ledger) if (docs / LEDGER).exists() else ledger
    write_ledger(ledger, docs / LEDGER)
    before, rest = text.split(_BEGINS)[0].split(_COUNTS)
    after = rest.split("\n\n", 1)[1]
    replace_text(page, f"{before}{_COUNTS}{verdict_table(ledger)}\n{after}{_BEGINS}\n{markdown(ledger)}")


def _over(old: Ledger, new: Ledger) -> Ledger:
    """The new ledger, with the old claims where it has none, unless their document now says something else."""
    before = {(claim.document, claim.id): claim for claim in old.claims}

    def chosen(claim: Claim) -> Claim:
        was = before.get((claim.document, claim.id))
        same = was is not None and all(getattr(was, name) == getattr(claim, name) for name in SAID)
        return was if was is not None and same and claim.verdict == NOT_RUN else claim

    return Ledger({**old.made, **new.made}, [chosen(claim) for claim in new.claims])


def coming(document: str, quick: bool) -> str:
    """What a run of a document will do, and how long that took where it is known."""
    size = "smaller sizes, one seed" if quick else "full size"
    said = f"{document}: {len(declared(document))} claims, {size}"
    if quick or not SHIPPED.exists():
        return said
    made = read_ledger(SHIPPED).made.get(document)
    return f"{said}; the run in {SHIPPED.name} took {made.seconds / 60:.0f} min on {made.machine}" if made else said


def machine() -> str:
    names = [line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")]
    cpu = names[0] if names else platform.processor() or platform.machine()
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, numba {version('numba')}"


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
