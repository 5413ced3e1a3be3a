"""Where something was measured."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


@cache
def machine() -> str:
    """The processor, as far as the system says."""
    try:
        told = Path("/proc/cpuinfo").read_text()
        model = next(line.split(":")[1].strip() for line in told.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"
