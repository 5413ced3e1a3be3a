"""One command at a time writes to an output folder, from its first run to its page.

The lock is a file in the folder, locked by the system: it ends with the process, however that ends.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from broker.trace.disk import writing
from coverlay import CoverlayError, refuse_other_systems
from sim.experiment.runner import runs_kept

LOCK = ".lock"


class FolderLock:
    """A block in which this command alone writes to a folder, from the first `take` to the end of the block."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._file: int | None = None

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def take(self) -> int:
        """Make and lock the folder, unless this block has; returns the locked file, for processes that inherit it."""
        if self._file is None:
            self._file = self._locked()
        return self._file

    def _locked(self) -> int:
        refuse_other_systems()
        import fcntl  # not at the top: systems without it get a sentence

        out = self._out
        with writing(f"--out {out}", partial(runs_kept, out)):
            out.mkdir(parents=True, exist_ok=True)
            file = os.open(out / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise CoverlayError(f"another coverlay is writing to {out}; wait for it or choose another --out") from None
        except OSError as error:
            os.close(file)
            raise CoverlayError(f"--out {out} cannot be locked: {error.strerror}; choose one on another disk") from None
        return file
