"""String attributes as numbers, so that prefix and equality predicates become boxes.

A prefix is an interval in lexicographic order (the slides' open question on string subscriptions). A string's
UTF-8 bytes are read as digits 1 … 256 of base 257, with 0 for "ended"; six digits fit a float64 exactly
(257^6 < 2^53), so a string takes one coordinate per chunk of six bytes. Chunk by chunk, comparison of the
numbers is comparison of the strings. A predicate is then a box over the chunks:

- starts with p: points in the chunks that p fills, an interval in the one it ends in, unbounded after;
- equals s: a point in every chunk. s must be shorter than all chunks together, so that its end is visible.

Hence "ab*" covers "abc*" and "= abcd", by box containment, in every covering method.

The subscription language uses one chunk (`ONE`): prefixes of up to six bytes, values of up to five.

Event values longer than the chunks are cut. Every predicate above is still judged correctly: a prefix is no
longer than the chunks, and the text of an equality ends before they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from covering.given import Floats
from coverlay import CoverlayError

DIGITS = 6  # bytes per coordinate: the most that a float64 holds exactly in base 257
_BASE = 257
_HIGHEST = _BASE**DIGITS - 1


@dataclass(frozen=True)
class StringAttribute:
    """How one string attribute maps to `chunks` numeric ones."""

    chunks: int = 2

    def __post_init__(self) -> None:
        if isinstance(self.chunks, bool) or not isinstance(self.chunks, int) or self.chunks < 1:
            raise CoverlayError(f"chunks {self.chunks!r} must be a whole number of at least 1")

    @property
    def domain(self) -> Floats:
        """The (chunks, 2) bounds to put into an index's domain."""
        return np.tile([0.0, float(_HIGHEST)], (self.chunks, 1))

    @property
    def longest(self) -> int:
        """Bytes of the longest prefix; an equality must be shorter by one."""
        return DIGITS * self.chunks

    def value(self, text: str) -> Floats:
        """The coordinates of an event's string."""
        return self._filled(text.encode()[: self.longest], 0)

    def equals(self, text: str) -> Floats:
        """The box of `= text`."""
        data = text.encode()
        if len(data) >= self.longest:
            raise CoverlayError(
                f"{text!r} has {len(data)} bytes; a text that is compared as a whole has at most {self.longest - 1}"
            )
        point = self._filled(data, 0)
        return np.stack([point, point], axis=1)

    def prefix(self, text: str) -> Floats:
        """The box of `starts with text`; the empty prefix is unbounded."""
        data = text.encode()
        if len(data) > self.longest:
            raise CoverlayError(f"{text!r} has {len(data)} bytes; a prefix has at most {self.longest}")
        box = np.stack([self._filled(data, 0), self._filled(data, _BASE - 1)], axis=1)
        box[-(-len(data) // DIGITS) :] = [-np.inf, np.inf]
        return box

    def _filled(self, data: bytes, filler: int) -> Floats:
        digits = [byte + 1 for byte in data] + [filler] * (self.longest - len(data))
        coordinates = []
        for chunk in range(self.chunks):
            number = 0
            for digit in digits[DIGITS * chunk : DIGITS * (chunk + 1)]:
                number = number * _BASE + digit
            coordinates.append(float(number))
        return np.array(coordinates)

    def text(self, point: float) -> str:
        """The text that one chunk's number stands for; a text that was cut stays cut."""
        digits = [int(point) // _BASE**place % _BASE for place in reversed(range(DIGITS))]
        data = bytes(digit - 1 for digit in takewhile(bool, digits))
        return data.decode(errors="ignore")  # a character may have been cut


ONE = StringAttribute(1)
