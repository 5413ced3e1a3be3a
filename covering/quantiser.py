"""Coordinates of dominance points as whole numbers, by one monotone floor over the domain, clamped to it.

Stored points and queries use the same floor: p ≥ q implies code(p) ≥ code(q), hence no cover is lost. The converse
fails for equal codes, so every hit is verified on the original values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covering.given import Floats
from coverlay import CoverlayError

WORD = 64  # bits of a machine word
MAX_BITS = 32  # per coordinate: float64 scaling is exact enough and codes stay clear of the sign bit


@dataclass(frozen=True)
class Quantiser:
    """The monotone floor of every coordinate: code = ⌊(p − offset) · scale⌋, clamped to 0 … 2^bits − 1."""

    offset: Floats
    scale: Floats
    bits: int

    @staticmethod
    def of(domain: Floats, bits: int) -> Quantiser:
        """For the dominance points of a domain."""
        dimensions = 2 * len(domain)
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= MAX_BITS:
            raise CoverlayError(f"bits {bits!r} must be a whole number from 1 to {MAX_BITS} (per coordinate)")
        offset = np.empty(dimensions)
        offset[0::2], offset[1::2] = -domain[:, 1], domain[:, 0]
        scale = np.zeros(dimensions)
        # A domain of one value, or so narrow that the scale overflows, or so wide that its width does, has one code.
        with np.errstate(divide="ignore", over="ignore"):
            width = np.repeat(domain[:, 1] - domain[:, 0], 2)
            np.divide(float(2**bits), width, out=scale, where=width > 0)
        scale[~np.isfinite(scale)] = 0.0
        return Quantiser(offset, scale, bits)

    @property
    def words(self) -> int:
        return -(-len(self.offset) * self.bits // WORD)
