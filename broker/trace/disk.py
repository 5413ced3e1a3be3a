"""Writing so that a reader never sees half of anything, and a disk that cannot be written gives a clear message.

A file or folder is filled under a hidden name beside its place and gets its own name in one step. Whenever the process
is killed, what has the name is complete: the old one, the new one, or (a folder that is replaced) none.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from coverlay import CoverlayError, quoted

CURE = "{cure}"
CURES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room"),
    errno.EFBIG: "allow larger files (ulimit -f)",
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "allow writing there"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EISDIR), "give a path that can be made"),
}


class CannotWrite(CoverlayError):
    """The disk is full, or writing there is not allowed. The user's input need not be wrong."""


def folder_at(given: str | Path) -> Path:
    """The folder at a path or a `file://` address; other addresses are refused."""
    text = str(given)
    if isinstance(given, Path) or "://" not in text:
        return Path(given)
    address = urlsplit(text)
    if address.scheme != "file" or address.netloc not in ("", "localhost") or address.query or address.fragment:
        raise CoverlayError(
            f"{quoted(text)} is not a folder here; give a path or an address like file:///shared/mine (other storage "
            "must be mounted; a cluster's workers must see it under the same path)"
        )
    return Path(unquote(address.path))


@contextmanager
def writing(what: Path | str, then: str | Callable[[], str]) -> Iterator[None]:
    """Wrap code that writes; `then` says what is kept and how to go on, with CURE for what to do about the error."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]
        advice = (then if isinstance(then, str) else then()).replace(CURE, CURES.get(error.errno or 0, "fix this"))
        raise CannotWrite(f"{what} cannot be written: {reason}; {advice}") from error


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """Where to write a file that then replaces `path`."""
    unfinished = path.with_name(f".{path.name}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def replaced_folder(folder: Path) -> Iterator[Path]:
    """An empty folder to fill, which then replaces `folder`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished, replaced = (folder.parent / f".{folder.name}.{uuid.uuid4().hex[:8]}" for _ in range(2))
    unfinished.mkdir()
    try:
        yield unfinished
        if folder.exists():
            os.replace(folder, replaced)
        os.replace(unfinished, folder)
    finally:
        for leftover in (unfinished, replaced):
            shutil.rmtree(leftover, ignore_errors=True)


def remove_leftovers(parent: Path, names: str) -> None:
    """Remove what killed processes left of folders with such names; nobody may be writing there now."""
    for path in parent.glob(f".{names}.*"):
        shutil.rmtree(path, ignore_errors=True)
