"""Tells the user when numba is compiling: once per installation, the first use of a part takes seconds.

For the command line only. numba reports every compilation; nested ones are not counted separately.
"""

from __future__ import annotations

import sys
import threading
import time

from numba.core import event

PATIENCE = 2.0  # seconds of compiling before the notice
_PARTS = {"sim.compiled": "the engine", "covering": "covering", "topk": "matching"}


class Notice(event.Listener):
    """Prints a line on stderr when the compilations of a part have together taken longer than PATIENCE."""

    def __init__(self) -> None:
        self._open = 0
        self._spent: dict[str, float] = {}
        self._said: set[str] = set()
        self._part, self._began = "", 0.0
        self._timer: threading.Timer | None = None

    def on_start(self, event: event.Event) -> None:
        self._open += 1
        if self._open > 1:
            return
        module = event.data["dispatcher"].py_func.__module__
        self._part = next((part for name, part in _PARTS.items() if module.startswith(name)), "kernels")
        self._began = time.monotonic()
        left = PATIENCE - self._spent.get(self._part, 0.0)
        if self._part in self._said:
            return
        if left <= 0.0:
            self._say(self._part)
        else:
            self._timer = threading.Timer(left, self._say, [self._part])
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: event.Event) -> None:
        self._open -= 1
        if self._open:
            return
        self._spent[self._part] = self._spent.get(self._part, 0.0) + time.monotonic() - self._began
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say(self, part: str) -> None:
        self._said.add(part)
        sys.stderr.write(f"compiling {part}, once per installation\n")
        sys.stderr.flush()


def announce() -> None:
    """Give notice from now on, in this process and those that it forks."""
    event.register("numba:compile", Notice())
