"""Ends a process with kill -9 before its n-th operation on files below a folder, and stops its clock.

Copied as `sitecustomize.py` into a folder on PYTHONPATH it works in any Python command; see test_kills.py.

Python reports its own operations to audit hooks, before they happen. What C++ does (pyarrow's writing) it does not see;
but each table of a trace is read for its digest when it has been written, so opening a file of an unfinished folder
counts too. "Before the n-th" is also "after the one before".
"""

from __future__ import annotations

import os
import signal
import sys
import time

CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}


def die_before(number: int, below: str) -> None:
    count = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event not in CHANGES and event != "open":
            return
        path = arguments[0]
        if not isinstance(path, str | os.PathLike) or not os.fspath(path).startswith(below):
            return
        if event == "open" and not _writes(arguments) and "/." not in os.fspath(path)[len(below) :]:
            return
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _writes(arguments: tuple[object, ...]) -> bool:
    flags = arguments[2]
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def stop_the_clock() -> None:
    """When a run began and how long it took is in its record; without it, equal runs are equal bytes."""
    began = time.gmtime(0)
    time.perf_counter, time.gmtime = lambda: 0.0, lambda *_: began


if "KILL_BEFORE" in os.environ:
    stop_the_clock()
    die_before(int(os.environ["KILL_BEFORE"]), os.environ["KILL_BELOW"])
