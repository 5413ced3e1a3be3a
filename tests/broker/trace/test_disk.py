"""Folders may be given as paths or as addresses of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis import notebook
from broker.trace.disk import folder_at
from coverlay import CoverlayError
from sim.cli.main import main


@pytest.mark.parametrize("given", ["file:///shared/my%20runs", "file://localhost/shared/my%20runs", "/shared/my runs"])
def test_an_address_of_a_file_is_a_path(given: str) -> None:
    assert folder_at(given) == Path("/shared/my runs")


def test_what_looks_like_no_address_is_a_path() -> None:
    assert folder_at("out/a:b%20c") == Path("out/a:b%20c")


ELSEWHERE = ["s3://bucket/runs", "hdfs://host:9000/runs", "file://other-host/runs"]


@pytest.mark.parametrize("given", ELSEWHERE)
def test_other_addresses_are_refused_in_a_sentence(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CoverlayError, match="is not a folder here; give a path or an address like file:///shared/mine"):
        notebook.load(given)
    for words in (["analyze", given], ["run", "demo", "--out", given]):
        with pytest.raises(SystemExit, match="2"):
            main(words)
        assert given in capsys.readouterr().err
