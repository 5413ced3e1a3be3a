"""The planted faults fit the code they are planted in, so that `make mutants` cannot rot unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.faults import Fault, Place, functions, load, planted, test_files

FAULTS = load()


@pytest.fixture(scope="module")
def known() -> dict[str, list[Place]]:
    return functions()


@pytest.fixture(scope="module")
def tests() -> dict[str, list[Path]]:
    return test_files()


def test_there_are_many_and_their_names_differ() -> None:
    assert len(FAULTS) >= 40
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_its_function_and_names_one_test(
    fault: Fault, known: dict[str, list[Place]], tests: dict[str, list[Path]]
) -> None:
    file, text = planted(fault, known)
    assert text != file.read_text()
    assert len(tests.get(fault.test, [])) == 1, f"{fault.test} is defined in {tests.get(fault.test, [])}"
