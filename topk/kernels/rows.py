"""Copies in kernels, element by element."""

from __future__ import annotations

from typing import Any

from coverlay import kernel


@kernel(inner=True)
def copy(source: Any, target: Any) -> None:
    """As target[:] = source, for which numba would compile the wording of an error, two seconds of it."""
    for i in range(len(source)):
        target[i] = source[i]
