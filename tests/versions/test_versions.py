"""Which versions `make test-versions` installs; installing and running them takes minutes."""

from __future__ import annotations

import re

from coverlay import NUMBA
from tests.versions.run import VARIED, between, supported, wanted


def test_the_oldest_are_the_lower_bounds():
    oldest = [line for line in wanted("oldest") if line.partition("==")[0] in VARIED]
    assert [line.replace("==", ">=") for line in oldest] == [
        name + bounds.split(",")[0] for name, bounds in supported().items()
    ]


def test_the_newest_are_whatever_the_bounds_allow():
    assert {name + bounds for name, bounds in supported().items()} <= set(wanted("newest"))
    assert all(re.search(",<", bounds) for bounds in supported().values()), "what is not tested is not supported"


def test_everything_else_is_pinned():
    for which in ("oldest", "newest"):
        others = [line for line in wanted(which) if not line.startswith(VARIED)]
        assert len(others) > 30
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in others)
        assert not any(line.startswith("llvmlite") for line in others), "numba says which"


def test_every_version_of_numba_in_between_is_tested():
    minors = [NUMBA[0], *(line.removeprefix("numba==").removesuffix(".*") for line in between())]
    numbers = [int(version.split(".")[1]) for version in minors]
    assert numbers == list(range(numbers[0], int(NUMBA[1].split(".")[1]) - 1))
