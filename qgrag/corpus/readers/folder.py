"""The files of a folder, in a stable order, and what is left out."""

import os
from collections.abc import Iterator
from pathlib import Path

from qgrag.corpus.readers.detect import COLLECTION_SUFFIXES, FOLDER_SUFFIXES
from qgrag.corpus.report import Problem


def list_folder(root: Path) -> tuple[list[Path], list[Problem]]:
    """The files below `root` that have a format for folders, by relative path; a problem for each other file."""
    files: list[Path] = []
    problems: list[Problem] = []
    for path in sorted(_walk(root, problems), key=lambda path: path.relative_to(root).as_posix()):
        reason = _left_out(path, root)
        if reason is None:
            files.append(path)
        else:
            problems.append(Problem(str(path), reason, kind="ignored"))
    return files, problems


def _walk(root: Path, problems: list[Problem]) -> Iterator[Path]:
    def report(error: OSError) -> None:
        problems.append(Problem(str(error.filename), f"folder cannot be read: {error.strerror}"))

    for folder, subfolders, names in os.walk(root, onerror=report):
        hidden_or_linked = [
            name for name in subfolders if name.startswith(".") or os.path.islink(os.path.join(folder, name))
        ]
        subfolders[:] = [name for name in subfolders if name not in hidden_or_linked]
        for name in [*hidden_or_linked, *names]:
            yield Path(folder, name)


def _left_out(path: Path, root: Path) -> str | None:
    """Why a path is no document of the folder; None if it is one."""
    if path.name.startswith("."):
        return "hidden"
    if path.is_dir():
        return "link to a folder; give its target as a corpus of its own"
    suffix = path.suffix.lower()
    if suffix in FOLDER_SUFFIXES:
        return None if path.is_file() or path.is_symlink() else "not a regular file"
    if suffix in COLLECTION_SUFFIXES:
        return "holds a collection; read it by its own path"
    return f"no reader for {suffix or 'files without a suffix'}"
