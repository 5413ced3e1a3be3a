"""The machine that a measurement was made on."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


@cache
def machine() -> str:
    """Processor model, number of cores and operating system."""
    try:
        cpu_info = Path("/proc/cpuinfo").read_text()
        model = next(line.split(":")[1].strip() for line in cpu_info.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"
