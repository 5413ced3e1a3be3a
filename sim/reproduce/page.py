"""The pages that explain the ledger: an index, and one per document with a picture per figure.

What is between two lines of a page is written from the ledger; people write the rest.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from analysis.report.claims import Claim, Ledger, replace_text, title
from analysis.report.claims_markdown import PAGES, index, of_document, picture_name
from coverlay import CoverlayError
from sim.reproduce.pictures import Drawing
from sim.reproduce.small_multiples import Part, small_multiples
from sim.reproduce.tables.figures import DRAWINGS, FIGURES, MARKS

INDEX, FOLDER = f"{PAGES}.md", "figures"
_BEGINS = "<!-- `coverlay reproduce all --ledger docs` writes from here -->\n"
_ENDS = "<!-- to here. -->\n"


def write_pages(ledger: Ledger, docs: Path) -> None:
    """The index has to be there; a document without a page gets one."""
    written = {docs / INDEX: ("", index(ledger, FIGURES))}
    for document in ledger.documents():
        text = of_document(ledger, document, FIGURES, there(docs / FOLDER))
        written[docs / PAGES / f"{document}.md"] = (f"# {title(document)}\n\n{_BEGINS}{_ENDS}", text)
    pages = {}
    for file, (otherwise, text) in written.items():
        found = re.fullmatch(f"(.*{_BEGINS}).*({_ENDS}.*)", _read(file, otherwise), re.DOTALL)
        if not found:
            raise CoverlayError(f"{file} has no lines {_BEGINS.strip()!r} and {_ENDS.strip()!r} to write between")
        pages[file] = f"{found[1]}\n{text}\n{found[2]}"
    for file, text in pages.items():  # all or none
        file.parent.mkdir(exist_ok=True)
        replace_text(file, text)


def _read(file: Path, otherwise: str) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else otherwise


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
        judged = sorted(drawn, key=lambda name: not any(c.figure == f"{name}.png" for c in claims))  # first
        parts = [
            Part(drawn[name], [c for c in claims if c.figure == f"{name}.png"], MARKS.get(document, {}).get(name, ()))
            for name in _matching(judged, wanted)
        ]
        if parts:
            small_multiples(parts, file)
        own = _matching(sorted(path.stem for path in out.glob("*.png")), wanted)
        for number, stem in enumerate(own, 1):
            shutil.copyfile(out / f"{stem}.png", file.with_stem(f"{file.stem}-{number}"))


def _matching(names: Iterable[str], wanted: Sequence[str]) -> list[str]:
    return [name for expression in wanted for name in names if re.match(expression, name)]


def there(folder: Path) -> list[str]:
    """The names of the pictures in a folder."""
    return sorted(file.name for file in folder.glob("*.png"))
