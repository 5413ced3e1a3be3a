"""The claims ledger: what a claim must say, and a page that keeps hostile text harmless."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.report.claims import Claim, read_claims, write_claims
from coverlay import CoverlayError

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def claim(**changes: Any) -> Claim:
    values = {
        "id": "fig-1",
        "document": "vldb08",
        "claim": "one lookup",
        "published": "2×",
        "measured": "2.1×",
        "verdict": "holds",
        "why": "",
        "seconds": 1.5,
    }
    return Claim(**{**values, **changes})


def test_json_and_page_have_every_claim(tmp_path: Path) -> None:
    claims = [
        claim(),
        claim(id="fig-2", verdict="does not hold", why="memory is faster now"),
        claim(document="ibm04", verdict="holds with a different factor", why="other machine"),
    ]
    page = write_claims(claims, tmp_path / "new").read_text(encoding="utf-8")
    assert read_claims(tmp_path / "new" / "claims.json") == claims
    assert json.loads((tmp_path / "new" / "claims.json").read_text())[1]["why"] == "memory is faster now"
    for text in ("vldb08", "ibm04", "fig-2", "memory is faster now", "does not hold"):
        assert text in page


def test_figures_are_inside_the_page(tmp_path: Path) -> None:
    (tmp_path / "vldb08").mkdir()
    (tmp_path / "vldb08" / "a.png").write_bytes(PIXEL)
    page = write_claims([claim(figure="a.png")], tmp_path).read_text(encoding="utf-8")
    assert "data:image/png;base64," + base64.b64encode(PIXEL).decode() in page
    absolute = str(tmp_path / "vldb08" / "a.png")
    assert "data:image/png" in write_claims([claim(figure=absolute)], tmp_path).read_text(encoding="utf-8")


def test_claims_of_one_figure_share_it_and_the_page_says_what_all_took(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PIXEL)
    both = [claim(figure="a.png"), claim(id="fig-2", figure="a.png")]
    page = write_claims(both, tmp_path, 7.0).read_text(encoding="utf-8")
    assert page.count("data:image/png") == 1
    assert page.count('id="figure-vldb08-fig-') == 2
    assert "measured in 7 s" in page
    assert "measured in" not in write_claims(both, tmp_path).read_text(encoding="utf-8"), "3 s would count one twice"


def test_hostile_text_is_text(tmp_path: Path) -> None:
    evil = "</td><script>alert(1)</script>"
    changes = dict.fromkeys(("id", "document", "claim", "published", "measured", "why"), evil)
    page = write_claims([claim(**changes)], tmp_path).read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


@pytest.mark.parametrize("verdict", ["does not hold", "holds with a different factor"])
def test_a_claim_that_fails_says_why(verdict: str) -> None:
    with pytest.raises(CoverlayError, match="must say why"):
        claim(verdict=verdict, why=" ")


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(CoverlayError, match="unknown verdict of claim vldb08/fig-1 'perhaps'"):
        claim(verdict="perhaps")
    with pytest.raises(CoverlayError, match="vldb08/fig-1 is there twice"):
        write_claims([claim(), claim()], tmp_path)
    with pytest.raises(CoverlayError, match=r"the figure gone\.png of claim vldb08/fig-1 is not in"):
        write_claims([claim(figure="gone.png")], tmp_path)
    (tmp_path / "notes.txt").write_text("no picture")
    with pytest.raises(CoverlayError, match="must be PNG"):
        write_claims([claim(figure="notes.txt")], tmp_path)
    with pytest.raises(CoverlayError, match="is not a claims file"):
        read_claims(tmp_path / "notes.txt")
