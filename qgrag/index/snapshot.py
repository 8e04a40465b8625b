"""Which snapshot of an index is current, and who holds it: what is held is not removed."""

import fcntl
import logging
import os
import shutil
import weakref
from pathlib import Path

from qgrag.errors import IndexFormatError
from qgrag.index.manifest import Manifest, read_manifest

logger = logging.getLogger(__name__)


class Hold:
    """A shared lock on a snapshot folder, until `release` or until this object is collected.

    Args:
        handle: descriptor of the folder, which is this object's from here on.
    """

    def __init__(self, handle: int) -> None:
        self.release = weakref.finalize(self, os.close, handle)


def hold_current(folder: Path) -> tuple[Manifest, Hold]:
    """The manifest of an index and a hold on the snapshot that it names.

    A writer may end between the two steps; then the newer manifest is taken.

    Raises:
        IndexFormatError: see `read_manifest`; or the snapshot is missing, or a link.
    """
    manifest = read_manifest(folder)
    while True:
        snapshot = folder / manifest.generation
        handle = _lock_folder(snapshot, fcntl.LOCK_SH)
        newer = read_manifest(folder)
        if newer.generation == manifest.generation and handle is not None:
            return manifest, Hold(handle)
        if handle is not None:
            os.close(handle)
        elif newer.generation == manifest.generation:
            raise IndexFormatError(f"{snapshot}: missing, or no plain folder; the index is incomplete, build it again")
        manifest = newer


def remove_others(folder: Path, generation: str) -> None:
    """Remove every snapshot but one, and what killed builds left of others; those that are held stay.

    Args:
        folder: of the index, whose lock the caller has.
        generation: the snapshot that stays.
    """
    for other in folder.glob("g[0-9]*"):
        if other.name == generation:
            continue
        handle = _lock_folder(other, fcntl.LOCK_EX)
        if handle is None:
            logger.info("%s: held by an open index; a later build removes it", other)
            continue
        try:
            shutil.rmtree(other, ignore_errors=True)
        finally:
            os.close(handle)


def _lock_folder(folder: Path, kind: int) -> int | None:
    """Descriptor of the locked folder; None where it is missing, a link or no folder, or is locked otherwise."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise IndexFormatError(f"{folder}: cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError as error:
        if kind == fcntl.LOCK_EX:
            os.close(handle)
            return None
        logger.warning("%s: cannot be held (%s); do not build this index while it is open", folder, error.strerror)
    return handle
