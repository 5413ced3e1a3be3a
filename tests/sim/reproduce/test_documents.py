"""Every figure of every document runs, by the code of `coverlay reproduce --quick`, and every claim gets a verdict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from analysis.report.claims import LEDGER, NOT_RUN, read_ledger
from sim.reproduce import DOCUMENTS
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
