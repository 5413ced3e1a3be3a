"""One Spark for all tests of a process, the order in which two workers share the files, and hypothesis."""

from __future__ import annotations

import gc
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from analysis.spark.java import find_java
from coverlay import CoverlayError

# No test is about the clock: on a busy machine drawing and compiling take as long as they take.
settings.register_profile("coverlay", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("coverlay")

# Two workers begin at the two ends. What compiles the same kernels is side by side and at one end. What starts Spark in
# the process of the tests is on one side, so that only one of the two has a Spark, and later than the kernels of both.
# Short files are in the middle.
ORDER = (
    "covering",
    "broker",
    "sim/compiled",
    "sim/experiment",
    "sim/experiment/test_cluster.py",
    "sim/capacity",
    "routing",
    "broker/language",
    "sim",
    "mutants",
    "docs",
    "analysis",
    "broker/trace/test_sampling.py",
    "sim/capacity/test_find.py",
    "sim/compiled/test_size.py",
    "sim/experiment/test_plan.py",
    "sim/experiment/test_kills.py",
    "sim/experiment/test_kill_and_resume.py",
    "sim/experiment/test_broken_machine.py",
    "sim/bench/test_spark.py",
    "kernels",
    "sim/reproduce",
    "sim/bench",
    "broker/test_matching_methods.py",
    "topk",
)


@cache
def _place(file: Path) -> int:
    """Where a file is in the order: the longest name that fits decides; in the middle if none does."""
    name = file.relative_to(Path(__file__).parent)
    fitting = [known for known in ORDER if name.is_relative_to(known)]
    return ORDER.index(max(fitting, key=len, default="sim"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place(item.path))


def pytest_configure() -> None:
    gc.set_threshold(20_000, 20, 20)  # looking for garbage among all that is imported took an eighth of the time


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """For `--dist loadfile`, as `make test` has it; others are xdist's own."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FromBothEnds(LoadFileScheduling):
        """Every other worker takes files from the end: they do not compile the same kernels at the same time."""

        def _assign_work_unit(self, node: Any) -> None:
            if self.nodes.index(node) % 2:
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

    return FromBothEnds(config, log)


@pytest.fixture(scope="session")
def java() -> None:
    """A machine without Java skips what needs Spark."""
    try:
        find_java()
    except CoverlayError as error:
        pytest.skip(str(error))


@pytest.fixture
def spark(java: None) -> Any:
    """Two local cores. Asked for by each test anew: it is the running one unless a test before asked for another."""
    from analysis.spark.session import session

    return session("local[2]", quick=True)
