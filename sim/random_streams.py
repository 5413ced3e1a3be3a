"""Named random streams: one per concern, all from one seed.

A stream depends on the seed and its name only, so runs of a sweep that share a seed share their random
numbers (common random numbers), and drawing more from one stream disturbs no other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

Stream = Callable[[str], np.random.Generator]


def streams(seed: int) -> Stream:
    def stream(name: str) -> np.random.Generator:
        words = np.frombuffer(hashlib.blake2b(name.encode(), digest_size=16).digest(), dtype=np.uint32)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words.tolist()])))

    return stream
