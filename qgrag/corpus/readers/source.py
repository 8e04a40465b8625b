"""What goes into a format's reader and what comes out of it."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

from qgrag.corpus.records import Document
from qgrag.corpus.report import ProblemKind
from qgrag.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class Source:
    """One input file.

    Args:
        name: its path relative to the corpus, with forward slashes: the id of a one-document file.
        data: its bytes.
        encoding: the codec to use where no byte order mark says otherwise; UTF-8 if None.
    """

    name: str
    data: bytes
    encoding: str | None = None


class Rejection(NamedTuple):
    """An entry of a file that is no document, and why."""

    reason: str
    kind: ProblemKind = "error"


class Entry(NamedTuple):
    """One document of a file, or the rejection that stands in its place."""

    location: str
    content: Document | Rejection


Entries = Iterator[Entry]


def import_extra(module: str, package: str, extra: str = "documents") -> ModuleType:
    """Import an optional dependency, or say which extra brings it.

    Raises:
        MissingExtraError: if `module` is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{package} is not installed; it comes with the extra: pip install 'qgrag[{extra}]'"
        ) from error
