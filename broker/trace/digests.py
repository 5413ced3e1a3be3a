"""Digests by which a run's files can be checked later: of each file, of its footer, and of the run record.

Page checksums (see `write_table` in broker/trace/schema.py) are verified by whoever reads a page. They cover
data alone. How to read the data is in the footer, so the run record keeps a digest of every file, and one of its footer
that costs nothing to check whenever a run is opened. The record cannot hold the digest of its own file; it has one of
its own values.

`b2sum -l 128 FILE` prints the same digest of a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RECORD = "run"  # the table that holds the digests
COLUMN = "file_digests"  # of it: JSON, table → {"file": …, "footer": …}, and RECORD → the digest of its other columns
_SIZE = 16  # bytes of a digest
_TAIL = struct.Struct("<I4s")  # what a Parquet file ends with: the length of the footer, and PAR1


def digests_of(path: Path) -> dict[str, str]:
    """What is kept for one file."""
    return {"file": file_digest(path), "footer": footer_digest(path)}


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_SIZE)).hexdigest()


def footer_digest(path: Path) -> str:
    """The digest of a Parquet file's footer and of what points at it; of a file too short to have one, all of it."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL.size))
        tail = file.read()
        length = _TAIL.unpack(tail)[0] if len(tail) == _TAIL.size else size
        file.seek(max(0, size - _TAIL.size - length))
        return hashlib.blake2b(file.read(), digest_size=_SIZE).hexdigest()


def record_digest(record: Mapping[str, Any]) -> str:
    """The digest of a run record's values, all but the digests themselves."""
    values = {name: value for name, value in record.items() if name != COLUMN}
    return hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=_SIZE).hexdigest()
