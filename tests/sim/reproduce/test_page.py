"""The page that explains the ledger: a section per figure, its picture, and what is not published."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.report.claims import OPEN, Figure, Ledger, Reading, read_ledger
from analysis.report.claims_markdown import changes_of, of_document, of_figures, picture_name
from sim.reproduce import DOCUMENTS, ledger, page
from sim.reproduce.pictures import Drawing
from sim.reproduce.small_multiples import Part, _merged, drawn, small_multiples
from sim.reproduce.tables import CONSTANTS, declared
from sim.reproduce.tables.figures import AT, DRAWINGS, FIGURES, MARKS, Mark, X, Y

DOCS = ledger.SHIPPED.parent
_MOST = 5_000_000  # bytes of all pictures


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_claim_is_under_one_figure_that_a_command_measures(document: str) -> None:
    for id in declared(document):
        assert len([f.name for f in FIGURES[document] if re.match(f.claims, id)]) == 1, id
    assert all(figure.steps for figure in FIGURES[document])
    names = {figure.name for figure in FIGURES[document]}
    assert set(DRAWINGS.get(document, ())) <= names


def test_every_figure_that_is_drawn_ships_with_its_picture_and_the_page_shows_it() -> None:
    there = page.there(DOCS / page.FOLDER)
    for name in there:
        text = (DOCS / page.PAGES / f"{name.split('-')[0]}.md").read_text(encoding="utf-8")
        assert f"(../figures/{name})" in text
    for document, drawings in DRAWINGS.items():
        for figure in FIGURES[document]:
            if figure.name in drawings:
                stem = picture_name(document, figure).removesuffix(".png")
                assert [name for name in there if name.startswith(stem)], f"{stem}: --judge --ledger docs draws it"
    assert sum((DOCS / page.FOLDER / name).stat().st_size for name in there) < _MOST


def test_the_pages_have_every_figure_every_constant_and_every_substitution() -> None:
    shipped = read_ledger(ledger.SHIPPED)
    index = (DOCS / page.INDEX).read_text(encoding="utf-8")
    for document, claims in shipped.documents().items():
        text = (DOCS / page.PAGES / f"{document}.md").read_text(encoding="utf-8")
        anchors = [
            line.removeprefix("## ").lower().replace(" ", "-") for line in text.splitlines() if line[:3] == "## "
        ]
        for figure, _ in of_figures(claims, FIGURES[document]):
            assert f"## {figure.name}\n" in text
            assert f"coverlay reproduce {document} --figures {','.join(figure.steps)}`" in text
            linked = re.search(
                rf"\[{document} {re.escape(figure.name)}\]\(reproduction/{document}\.md#(.+?)\) \|", index
            )
            assert linked is not None
            assert linked[1] in [re.sub(r"[^\w-]", "", anchor) for anchor in anchors]
        assert shipped.substitutions.get(document, "") in text
        assert all(f"| `{claim.id}` " in text for claim in claims)
    for constant in CONSTANTS:
        assert f"| `{constant.name}` (" in index
        assert constant.figure


def test_an_open_claim_shows_its_range_and_no_verdict() -> None:
    (claim,) = (c for c in read_ledger(ledger.SHIPPED).claims if c.id == "clusters-k-ind")
    assert claim.kind == OPEN
    assert claim.finding == f"{OPEN}: not decidable without near-misses, attribute-skew"
    assert len(claim.swept) >= 4
    found = Ledger({}, [claim], [c for c in CONSTANTS if c.name == "near-misses"])
    text = of_document(found, "icde12", {"icde12": [Figure("Figure 7", "Clusters.", ("clusters",), "clusters")]})
    assert "does not hold" not in text.split("## Figure 7")[1]
    assert all(reading.ours in changes_of(found, found.constants[0]) for reading in claim.swept.values())


def test_a_picture_has_the_published_numbers_in_it(tmp_path: Path) -> None:
    (claim,) = (c for c in read_ledger(ledger.SHIPPED).claims if c.id == "fig-11-zipf")
    panels = {"ms": {"a": {1.0: 1.0, 1000.0: 50.0}}}
    marks = [
        Mark(X, (10.0,), "at ten"),
        Mark(Y, (5.0,), "five"),
        Mark(AT, (10.0, 5.0), "both"),
        Mark(Y, (7.0,), "no", "MB"),
    ]
    part = Part(Drawing("title", "n", panels, log_x=True), [claim], marks)
    assert part.heading.splitlines()[1].startswith("fig-11-zipf: 133× published, ")
    shown = [text.get_text() for axes in drawn([part]).axes for text in axes.texts]
    assert shown == ["at ten", "five", "both"]
    small_multiples([part], tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()


def test_a_published_number_has_ours_beside_it_only_if_it_is_of_the_same_quantity() -> None:
    claims = {c.id: c for c in read_ledger(ledger.SHIPPED).claims}
    drawing = Drawing("title", "n", {})
    ratio, crossing = (Part(drawing, [claims[id]]).heading for id in ("capacity-0.001", "fig5-crossing"))
    assert ratio.endswith("capacity-0.001: 5 published, does not hold"), "ours is a ratio of times"
    assert crossing.endswith("fig5-crossing: 128 published, 128 here")


def test_points_of_one_x_each_are_one_curve() -> None:
    parts = [Part(Drawing("t", "p", {"ms": {"a": {x: x}}})) for x in (1.0, 2.0)]
    (one,) = _merged(parts)
    assert one.drawing.panels == {"ms": {"a": {1.0: 1.0, 2.0: 2.0}}}


def test_marks_belong_to_drawings_of_their_document() -> None:
    for document, marks in MARKS.items():
        assert all(
            any(re.match(wanted, name) for each in DRAWINGS[document].values() for wanted in each) for name in marks
        )


def test_a_reading_of_another_constant_is_by_its_own_way_of_measuring() -> None:
    (claim,) = (c for c in read_ledger(ledger.SHIPPED).claims if c.id == "clusters-k-ind")
    assert all(isinstance(reading, Reading) for reading in claim.swept.values())
    assert {value.rsplit(", ", 1)[1] for value in claim.swept} == {"time", "counts"}
