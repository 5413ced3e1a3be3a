"""What tests of plug-ins, networks and sweeps in one process must not see of each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sim import plugins


@pytest.fixture(autouse=True)
def registries_as_before() -> Iterator[None]:
    """What a test registers is gone after it: the next may give the same name to something else."""
    registries = [registry for some in plugins.REGISTRIES.values() for registry in some]
    before = [(dict(registry), dict(registry.written)) for registry in registries]
    yield
    for registry, (entries, written) in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)
        registry.written = written
