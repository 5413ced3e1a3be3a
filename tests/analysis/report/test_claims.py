"""The claims ledger: what a claim must say, and a page that keeps hostile text harmless."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.report.claims import (
    COUNTED,
    EXTENSION,
    OPEN,
    Claim,
    Constant,
    Ledger,
    Made,
    Reading,
    counted,
    read_ledger,
)
from analysis.report.claims_markdown import index, of_document
from analysis.report.claims_page import write_claims
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
        "basis": "time",
        "band": "1.5 to 2.67×",
        "ours": "2.1×",
        "verdict": "holds",
        "seconds": 1.5,
    }
    return Claim(**{**values, **changes})


def of(*claims: Claim) -> Ledger:
    made = {"vldb08": [Made("2026-11-17", "a machine", "coverlay reproduce vldb08", 7.0)]}
    steps = Constant("steps", "vldb08", "Figure 1", "steps of a law", "a module", "100", "as the cells", "not swept")
    return Ledger(made, list(claims), [steps], {"vldb08": "places of ours"})


def in_markdown(ledger: Ledger) -> str:
    return "\n".join([index(ledger, {}), *(of_document(ledger, document, {}) for document in ledger.documents())])


FAILED: dict[str, Any] = {"verdict": "does not hold", "reason": "memory is faster now", "evidence": {"misses": 3.0}}


def test_json_page_and_markdown_have_every_claim(tmp_path: Path) -> None:
    ledger = of(
        claim(beside={"counts": Reading("0.9×", "does not hold")}, overhead="a 1.5 µs", load=7.25),
        claim(
            id="open",
            kind=OPEN,
            constants=("steps",),
            swept={"steps = 7, time": Reading("1×", "holds")},
            own_limit=True,
        ),
        claim(id="fig-2", **FAILED),
        claim(document="ibm04", verdict="not run", ours=""),
    )
    page = write_claims(ledger, tmp_path / "new").read_text(encoding="utf-8")
    found = read_ledger(tmp_path / "new" / "claims.json")
    assert found == ledger
    assert json.loads((tmp_path / "new" / "claims.json").read_text())["claims"][2]["reason"] == "memory is faster now"
    for text in ("vldb08", "ibm04", "fig-2", "memory is faster now", "does not hold"):
        assert text in page
        assert text in in_markdown(ledger)
    assert "memory is faster now [misses 3]" in in_markdown(ledger)
    for text in (
        "misses: 3",
        "coverlay reproduce vldb08",
        "counts: 0.9× (does not hold)",
        "the opposite by counts",
        "subtracted per call: a 1.5 µs",
        "machine busy: load 7.2",
    ):
        assert text in page
    text = in_markdown(ledger)
    assert "| `fig-1` one lookup | 2× (1.5 to 2.67×) | 2.1×; counts: 0.9× (does not hold) | holds |" in text
    assert "Judged by time, data as published, load 7.2." in text, "once, for all of them"
    for shown in (page, text):
        assert "with steps = 7 1× by time" in shown
        assert "1.5 to 2.67×, our limit" in shown
        assert "places of ours" in shown
        assert "as the cells" in shown, "constants that were not published"


def test_what_no_document_claims_counts_neither_as_held_nor_as_failed(tmp_path: Path) -> None:
    asked = [claim(id="asked", kind=EXTENSION, **FAILED), claim(id="asked-too", kind=EXTENSION)]
    ledger = of(claim(), *asked, claim(id="undecided", kind=OPEN, constants=("steps",), **FAILED))
    assert counted(ledger.claims) == {**dict.fromkeys(COUNTED, 0), "holds": 1, EXTENSION: 2, OPEN: 1}
    assert f"1 claims: 1 holds; beside them, 1 {OPEN}, 2 our extension." in in_markdown(ledger)
    assert "| [vldb08: Scalable Ranked Publish/Subscribe (2008)](reproduction/vldb08.md) | 1 | 1 | 1 | 2 |" in index(
        ledger, {}
    )
    page = write_claims(ledger, tmp_path).read_text(encoding="utf-8")
    assert '<span class="verdict aside">our extension: does not hold</span>' in page
    assert "<b>2</b><span>our extension</span>" in page
    assert "<span>does not hold</span>" not in page, "a card that counts it as failed"
    with pytest.raises(CoverlayError, match="unknown kind of claim vldb08/fig-1 'rumour'"):
        claim(kind="rumour")


def test_what_was_not_recorded_is_not_shown_as_zero(tmp_path: Path) -> None:
    claims = [claim(id="a", date="", load=None, seconds=None, seeds=1), claim(id="b", date="2026-11-17", seeds=3)]
    page = write_claims(Ledger({}, claims), tmp_path).read_text()
    assert "1 seed, date not recorded<" in page
    assert "3 seeds, 2026-11-17, 1.5 s<" in page


def test_what_most_claims_of_a_figure_have_in_common_is_said_once() -> None:
    alike = [claim(id=id, size="n = 7", seeds=3, load=1.0 * n) for n, id in enumerate("abc", 1)]
    other = claim(id="d", size="n = 9", seeds=3, basis="counts", load=50.0, substitution="made-up places")
    text = of_document(of(*alike, other), "vldb08", {})
    assert "Judged by time, n = 7, 3 seeds, data as published, load 1.0 to 3.0." in text
    assert text.count("n = 7") == text.count("3 seeds") == 1
    assert (
        "| `d` one lookup | 2× (1.5 to 2.67×) | 2.1× | holds, by counts, n = 9, data of ours: made-up places |" in text
    )


def test_data_is_said_once_on_the_page_if_all_claims_have_it_and_else_in_a_column(tmp_path: Path) -> None:
    alike = [claim(id=id, substitution="made-up places") for id in "ab"]
    page = write_claims(of(*alike), tmp_path).read_text(encoding="utf-8")
    assert page.count("made-up places") == 1
    assert 'data-name="data"' not in page
    page = write_claims(of(*alike, claim(id="c")), tmp_path).read_text(encoding="utf-8")
    assert page.count('<td data-name="data">made-up places</td>') == 2
    assert page.count('<td data-name="data">as published</td>') == 1


def test_figures_are_inside_the_page(tmp_path: Path) -> None:
    (tmp_path / "vldb08").mkdir()
    (tmp_path / "vldb08" / "a.png").write_bytes(PIXEL)
    page = write_claims(of(claim(figure="a.png")), tmp_path).read_text(encoding="utf-8")
    assert "data:image/png;base64," + base64.b64encode(PIXEL).decode() in page
    absolute = str(tmp_path / "vldb08" / "a.png")
    assert "data:image/png" in write_claims(of(claim(figure=absolute)), tmp_path).read_text(encoding="utf-8")


def test_claims_of_one_figure_share_it_and_the_page_says_what_all_took(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PIXEL)
    both = of(claim(figure="a.png"), claim(id="fig-2", figure="a.png"))
    page = write_claims(both, tmp_path).read_text(encoding="utf-8")
    assert page.count("data:image/png") == 1
    assert page.count('id="figure-vldb08-fig-') == 2
    assert "all measurements took 7 s" in page, "3 s would count one twice"


def test_hostile_text_is_text(tmp_path: Path) -> None:
    evil = "</td><script>alert(1)</script>"
    changes = dict.fromkeys(("id", "document", "claim", "published", "ours", "reason", "size", "overhead"), evil)
    page = write_claims(of(claim(**changes)), tmp_path).read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


@pytest.mark.parametrize("verdict", ["does not hold", "holds with a smaller factor"])
def test_a_claim_that_fails_says_why_and_what_was_measured(verdict: str) -> None:
    with pytest.raises(CoverlayError, match="must say why"):
        claim(verdict=verdict, reason=" ", evidence={"nodes": 1.0})
    with pytest.raises(CoverlayError, match="must name what was measured"):
        claim(verdict=verdict, reason="it is slower")
    with pytest.raises(CoverlayError, match="must say why"):
        claim(verdict="not testable at this size")


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(CoverlayError, match="unknown verdict of claim vldb08/fig-1 'perhaps'"):
        claim(verdict="perhaps")
    with pytest.raises(CoverlayError, match="vldb08/fig-1 is there twice"):
        write_claims(of(claim(), claim()), tmp_path)
    with pytest.raises(CoverlayError, match=r"the figure gone\.png of claim vldb08/fig-1 is not in"):
        write_claims(of(claim(figure="gone.png")), tmp_path)
    (tmp_path / "notes.txt").write_text("no picture")
    with pytest.raises(CoverlayError, match="must be PNG"):
        write_claims(of(claim(figure="notes.txt")), tmp_path)
    with pytest.raises(CoverlayError, match="is not a claims file"):
        read_ledger(tmp_path / "notes.txt")
