"""The outcome of reading a corpus: its documents, and everything that became none."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from qgrag.corpus.records import Document

ProblemKind = Literal["error", "empty", "ignored"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the input that became no document.

    Args:
        path: the file, or `archive!member` for a part of an archive.
        reason: what is wrong, in words.
        location: where in the file (`byte 17`, `line 3, column 8`); empty if the whole file is meant.
        kind: `error` (broken input), `empty` (nothing that a reader sees), `ignored` (no reader for it).
    """

    path: str
    reason: str
    location: str = ""
    kind: ProblemKind = "error"

    def __str__(self) -> str:
        where = f"{self.path} ({self.location})" if self.location else self.path
        return f"{where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """The documents read, in a stable order, and the problems met on the way."""

    documents: Sequence[Document]
    problems: Sequence[Problem] = field(default_factory=tuple)

    @property
    def errors(self) -> list[Problem]:
        """The problems that `on_error="stop"` would have stopped at."""
        return [problem for problem in self.problems if problem.kind == "error"]

    def summary(self) -> str:
        """One line of counts: `12 documents, 1 error, 2 empty, 3 ignored`."""
        kinds = Counter(problem.kind for problem in self.problems)
        errors = kinds["error"]
        return (
            f"{len(self.documents)} document{'' if len(self.documents) == 1 else 's'}, "
            f"{errors} error{'' if errors == 1 else 's'}, {kinds['empty']} empty, {kinds['ignored']} ignored"
        )
