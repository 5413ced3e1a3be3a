"""What a disk that cannot be written is told as."""

from __future__ import annotations

import errno

import pytest

from broker.trace.disk import CURE, CannotWrite, writing


@pytest.mark.parametrize(
    ("number", "cure"),
    [
        (errno.ENOSPC, "No space left on device; make room and repeat it"),
        (errno.EACCES, "Permission denied; allow writing there and repeat it"),
        (errno.ENOENT, "No such file or directory; give a path that can be made and repeat it"),
        (errno.EIO, "Input/output error; fix this and repeat it"),
    ],
)
def test_the_advice_fits_the_error(number, cure):
    with pytest.raises(CannotWrite) as caught, writing("out", f"{CURE} and repeat it"):
        raise OSError(number, "")
    assert str(caught.value) == f"out cannot be written: {cure}"
