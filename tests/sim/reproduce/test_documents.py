"""Every figure of every document runs, by the code of `coverlay reproduce --quick`, and every claim gets a verdict."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.report.claims import LEDGER, NOT_RUN, Ledger, read_ledger, write_ledger
from sim.cli.main import main
from sim.reproduce import DOCUMENTS, ledger, page, points
from sim.reproduce.tables import declared

# A process for each document, as people run them. Sizes and repetitions are cut, causes are looked for whatever the
# verdict; what is imported by then is no garbage.
SMALL = """
import gc, sys
from analysis.report.claims import VERDICTS
from sim.cli.main import main
from sim.reproduce import measure, sheet

sheet.CUT, sheet.EXPLAINED, measure._ENOUGH = 10, VERDICTS, 0.0
gc.freeze()
sys.exit(main(["reproduce", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("document", sorted(DOCUMENTS, reverse=True))
def test_every_figure_runs_and_every_claim_is_judged(document: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SMALL, document, "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    claims = read_ledger(tmp_path / document / LEDGER).claims
    assert [claim.id for claim in claims] == list(declared(document))
    assert not [claim.id for claim in claims if claim.verdict == NOT_RUN]
    assert (tmp_path / "claims.html").exists()
    assert list((tmp_path / document).glob("*.png"))


def test_the_ledger_that_ships_follows_from_the_points_that_ship(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--judge"]) == 0
    said = capsys.readouterr().out
    assert "claims are as in" in said
    rows = [line.split()[:2] for line in said.splitlines() if line.strip()]
    missing = [c.id for c in read_ledger(ledger.SHIPPED).claims if [c.document, c.id] not in rows]
    assert not missing, "the table has every claim, whatever its class"


def test_a_ledger_that_does_not_follow_from_its_points_ends_in_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = read_ledger(ledger.SHIPPED)
    claims = [replace(c, ours="100×") if c.id == "updates-delete" else c for c in shipped.claims if c.id != "fig6-dt"]
    write_ledger(Ledger(shipped.made, claims), tmp_path / LEDGER)
    (tmp_path / points.SHIPPED).symlink_to(ledger.SHIPPED.parent / points.SHIPPED)
    monkeypatch.setattr(ledger, "SHIPPED", tmp_path / LEDGER)
    assert main(["reproduce", "ibm04", "--judge"]) == 1
    said = capsys.readouterr().out
    assert "ibm04 updates-delete: the ledger says holds (100×)" in said
    assert "ibm04 fig6-dt: the ledger has no such claim" in said
    assert "27 claims are as in" in said
    monkeypatch.undo()
    shutil.copy(ledger.SHIPPED.parent / page.INDEX, tmp_path)
    assert main(["reproduce", "ibm04", "--judge", "--ledger", str(tmp_path)]) == 1
    assert (tmp_path / "figures" / "ibm04-figure-5.png").exists(), "drawn from the points"
    mended = read_ledger(tmp_path / LEDGER)
    assert ledger.unlike(shipped, mended.claims) == [], "the ledger is mended, other documents stay"
    assert len(mended.claims) == len(shipped.claims)
    assert mended.made == shipped.made
    (tmp_path / points.SHIPPED).unlink()
    assert main(["reproduce", "ibm04", "--judge", "--ledger", str(tmp_path)]) == 0, "what is not measured has no say"
    assert "cannot be judged here: their points do not ship" in capsys.readouterr().out


def test_options_of_measuring_are_refused_where_nothing_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "ibm04", "--judge", "--seed", "3", "--quick"]) == 2
    assert "--judge measures nothing, so --quick, --seed would have no effect" in capsys.readouterr().err
