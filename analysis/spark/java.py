"""Finding a Java that Spark can run on, before Spark is asked to start.

Spark's own message for a missing or old Java is a stack trace. We look at JAVA_HOME, then the PATH, then the
folders where package managers install a Java that they do not put on the PATH, and take the first that is new
enough. Each Java looked at costs one `java -version` (about 0.1 s), once per process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from coverlay import CoverlayError

OLDEST_JAVA = 17  # what Spark 4 is compiled for
VERSION_TIMEOUT = 30.0  # seconds; a cold start on a slow disk takes two, a hanging wrapper never ends

# Debian and Fedora, then Homebrew on Apple and Intel Macs, which keeps its Java off the PATH on purpose.
_KNOWN_FOLDERS = ("/usr/lib/jvm/*", "/opt/homebrew/opt/openjdk*", "/usr/local/opt/openjdk*")

INSTALL_HINT = (
    "install it with `apt-get install openjdk-17-jre-headless`, `dnf install java-17-openjdk-headless` "
    "or `brew install openjdk@17`, or set JAVA_HOME to it"
)


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    for pattern in _KNOWN_FOLDERS:
        for folder in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True):
            yield folder / "bin" / "java"


def parse_version(text: str) -> int | None:
    """The feature release in what `java -version` prints: 17 for "17.0.15", 8 for "1.8.0_402"."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    first, second = int(found[1]), found[2]
    return int(second) if first == 1 and second else first


def version_of(java: Path) -> int | None:
    """The feature release of this `java`, or None if it cannot be run or does not say."""
    if not java.is_file():
        return None
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(done.stderr + done.stdout)


@cache
def find_java() -> Path:
    """The home folder of the first Java that is new enough, or an error that says how to install one."""
    too_old: tuple[int, Path] | None = None
    for java in _candidates():
        version = version_of(java)
        if version is None:
            continue
        if version >= OLDEST_JAVA:
            return java.resolve().parent.parent
        too_old = too_old or (version, java)
    found = f"found only Java {too_old[0]} at {too_old[1]}" if too_old else "found none"
    raise CoverlayError(f"Spark needs Java {OLDEST_JAVA} or newer and we {found}: {INSTALL_HINT}")
