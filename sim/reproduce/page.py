"""The pictures of the page that explains the ledger: one per figure of a document, drawn from the points that ship."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from analysis.report.claims import Claim
from analysis.report.claims_page import picture_name
from sim.reproduce.pictures import Drawing
from sim.reproduce.small_multiples import Part, small_multiples
from sim.reproduce.tables.figures import DRAWINGS, FIGURES, MARKS

FOLDER = "figures"  # beside the page


def draw(document: str, claims: list[Claim], drawn: dict[str, Drawing], out: Path, folder: Path) -> None:
    """Replace the pictures of a document. `out`: where its own pictures are, of those that are more than curves."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{document}-*.png"):
        old.unlink()
    for figure in FIGURES[document]:
        wanted = DRAWINGS.get(document, {}).get(figure.name)
        if wanted is None:
            continue
        file = folder / picture_name(document, figure)
        parts = [
            Part(drawing, [c for c in claims if c.figure == f"{name}.png"], MARKS.get(document, {}).get(name, ()))
            for name, drawing in drawn.items()
            if re.match(wanted, name)
        ]
        if parts:
            small_multiples(sorted(parts, key=lambda part: not part.claims), file)
        for number, own in enumerate(sorted(p for p in out.glob("*.png") if re.match(wanted, p.stem)), 1):
            shutil.copyfile(own, file.with_stem(f"{file.stem}-{number}"))


def there(folder: Path) -> list[str]:
    """The names of the pictures in a folder."""
    return sorted(file.name for file in folder.glob("*.png"))
