"""Where commands write: looked at before the work, so that no result is lost for want of a place."""

import errno
import os
from pathlib import Path

from qgrag.errors import InputError

REMEDIES = {
    errno.ENOENT: "no such file or folder; check the path, or make the folder first",
    errno.ENOTDIR: "a file stands where a folder has to be; name another place",
    errno.EEXIST: "a file stands where a folder has to be; name another place",
    errno.EISDIR: "is a folder; name a file",
    errno.EACCES: "access is denied; change the permissions, or name another place",
    errno.EPERM: "access is denied; change the permissions, or name another place",
    errno.EROFS: "the disk is read-only; name another place",
    errno.ENOSPC: "the disk is full; free some space, or name another place",
    errno.EDQUOT: "your quota of disk space is spent; free some space, or name another place",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.EMFILE: "too many files are open; raise the limit with ulimit -n",
}


def os_error_message(error: OSError) -> str:
    """What went wrong with which file, and what to do."""
    reason = REMEDIES.get(error.errno or 0, f"{error.strerror or error}; check the path and try again")
    return f"{os.fsdecode(error.filename)}: {reason}" if error.filename is not None else reason


def check_output_file(path: str | None, flag: str) -> None:
    """Raise where a file cannot be written.

    Args:
        path: of the file; None is fine.
        flag: of the command line that named it.

    Raises:
        InputError: it is a folder, or its folder is missing or cannot be written to.
    """
    if path is None:
        return
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{flag} {path}: is a folder; name a file in it")
    if file.exists() and not file.is_file():
        return
    folder = file.parent
    if not folder.exists():
        raise InputError(f"{flag} {path}: there is no folder {folder}; make it first, or name another file")
    if not folder.is_dir():
        raise InputError(f"{flag} {path}: {folder} is a file, not a folder; name another file")
    _check_writable(folder, flag)


def check_output_folder(path: str, flag: str = "--out") -> None:
    """Raise where a folder cannot be made or written to.

    Raises:
        InputError: a file stands in its place or above it, or the nearest folder above cannot be written to.
    """
    place = Path(path)
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise InputError(f"{flag} {path}: {place} is a file, and a folder is needed there; name another folder")
    _check_writable(place, flag)


def _check_writable(folder: Path, flag: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{flag}: the folder {folder} cannot be written to; change its permissions or name another")
