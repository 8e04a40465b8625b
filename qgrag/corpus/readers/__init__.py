"""Reading a corpus: one module per format; the format is told by the input."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from qgrag.corpus.decoding import Unreadable, check_encoding
from qgrag.corpus.readers.detect import READERS, detect_format
from qgrag.corpus.readers.folder import list_folder
from qgrag.corpus.readers.source import Rejection, Source
from qgrag.corpus.records import Document
from qgrag.corpus.report import CorpusReport, Problem, ProblemKind
from qgrag.corpus.searchable import is_blank
from qgrag.errors import ConfigError, InputError, QgragError
from qgrag.progress import track

logger = logging.getLogger(__name__)

FORMATS = ("auto", *READERS)
OnError = Literal["stop", "skip"]
MAX_ERRORS_SHOWN = 50

__all__ = ["FORMATS", "OnError", "read_corpus"]


def read_corpus(
    path: str | Path, *, format: str = "auto", encoding: str | None = None, on_error: OnError = "stop"
) -> CorpusReport:
    """Read a file, or every file below a folder that has a format for folders.

    Args:
        path: a folder (files with a suffix of `detect.FOLDER_SUFFIXES`, at any depth), or one file of any format.
        format: one of `FORMATS`; `auto` looks at each file.
        encoding: codec of files without a byte order mark; UTF-8 if None.
        on_error: `stop` raises where an input is broken, after all were read, and names every broken one; `skip`
            lists them among the problems. Empty documents and files that have no reader never stop.

    Returns:
        Documents by relative path, or in the order of the file, and all problems. No document is empty, has
        an empty id, shares its id with another, or holds half a surrogate pair.

    Raises:
        InputError: if `path` does not exist, or under `stop` if an input is broken.
        ConfigError: if an argument has a value that is not allowed.
        MissingExtraError: if a format needs a library of the extra `documents`.
    """
    if format not in FORMATS:
        raise ConfigError(f"format {format!r} is unknown; use one of {', '.join(FORMATS)}")
    if on_error not in ("stop", "skip"):
        raise ConfigError(f"on_error {on_error!r} is unknown; use 'stop' or 'skip'")
    check_encoding(encoding)
    root = Path(path)
    if not root.exists():
        raise InputError(f"{root}: no such file or folder")
    files, ignored = list_folder(root) if root.is_dir() else ([root], [])
    collector = _Collector()
    for problem in ignored:
        collector.report(problem)
    for file in track(files, "Reading", len(files)):
        name = file.relative_to(root).as_posix() if root.is_dir() else file.name
        for item, location in _read_file(file, name, format, encoding):
            collector.add(str(file), item, location)
    if on_error == "stop":
        _raise_errors(collector.problems)
    report = CorpusReport(collector.documents, collector.problems)
    logger.info("%s: %s", root, report.summary())
    return report


def _read_file(path: Path, name: str, format: str, encoding: str | None) -> Iterator[tuple[Document | Rejection, str]]:
    try:
        source = Source(name, path.read_bytes(), encoding)
        if source.data.strip():
            reader = READERS[detect_format(source) if format == "auto" else format]
            for entry in reader(source):
                yield entry.content, entry.location
        else:
            yield Document(name, ""), ""
    except Unreadable as error:
        yield Rejection(error.reason), error.location
    except OSError as error:
        yield Rejection(f"cannot be read: {error.strerror}"), ""
    except QgragError:
        raise
    except Exception as error:
        logger.debug("%s", path, exc_info=True)
        yield Rejection(f"its reader failed: {type(error).__name__}: {error}"), ""


def _raise_errors(problems: Sequence[Problem]) -> None:
    errors = [str(problem) for problem in problems if problem.kind == "error"]
    if not errors:
        return
    shown = errors[:MAX_ERRORS_SHOWN]
    more = f"\nand {len(errors) - len(shown)} more" if len(errors) > len(shown) else ""
    remedy = "Repair it, or skip broken input: --on-error skip, or on_error='skip' in Python"
    if len(errors) == 1:
        raise InputError(f"{errors[0]}. {remedy}")
    listed = "\n".join(shown)
    raise InputError(f"{len(errors)} inputs are broken:\n{listed}{more}\n{remedy}")


class _Collector:
    """Sorts what the readers yield into documents and problems."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.problems: list[Problem] = []
        self._places: dict[str, str] = {}

    def add(self, path: str, item: Document | Rejection, location: str) -> None:
        if isinstance(item, Rejection):
            self.report(Problem(path, item.reason, location, item.kind))
        elif (problem := self._fault(item)) is not None:
            reason, kind = problem
            self.report(Problem(path, reason, location, kind))
        else:
            self._places[item.id] = f"{path} ({location})" if location else path
            self.documents.append(item)

    def report(self, problem: Problem) -> None:
        if problem.kind == "error":
            logger.warning("cannot read %s", problem)
        self.problems.append(problem)

    def _fault(self, document: Document) -> tuple[str, ProblemKind] | None:
        if is_blank(document.text):
            return "no text: empty, or nothing that a reader sees", "empty"
        if not document.id:
            return "the id is empty", "error"
        if document.id in self._places:
            return f"the id {document.id!r} is already that of {self._places[document.id]}", "error"
        for name, value in {"id": document.id, "title": document.title, "text": document.text}.items():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                return f"half a surrogate pair in the {name}, at character {error.start}", "error"
        return None
