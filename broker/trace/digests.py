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
_GUESS = 2**14  # bytes that are read at once from the end of a file: most footers fit
_TAIL = struct.Struct("<I4s")  # what a Parquet file ends with: the length of the footer, and PAR1


def digests_of(path: Path) -> dict[str, str]:
    """What is kept for one file."""
    return {"file": file_digest(path), "footer": footer_digest(path)}


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_SIZE)).hexdigest()


def footer(path: Path) -> bytes:
    """A Parquet file's footer and what points at it, of which a reader needs no more to know the file's schema.

    Of a file too short to have one, or whose end says that it is longer than the file, all of it.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _GUESS))
        end = file.read()
        if len(end) < _TAIL.size:
            return end
        length = _TAIL.unpack(end[-_TAIL.size :])[0] + _TAIL.size
        if length > len(end):
            file.seek(max(0, size - length))
            end = file.read()
        return end[-length:]


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=_SIZE).hexdigest()


def footer_digest(path: Path) -> str:
    return digest(footer(path))


def record_digest(record: Mapping[str, Any]) -> str:
    """The digest of a run record's values, all but the digests themselves."""
    values = {name: value for name, value in record.items() if name != COLUMN}
    return digest(json.dumps(values, sort_keys=True).encode())
