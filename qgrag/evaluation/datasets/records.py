"""What an evaluation is made of: documents, questions about them, and the documents that answer each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from qgrag.corpus.records import Document


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a data set.

    Args:
        id: unique within the data set.
        text: the question as published.
        answers: accepted answers, empty where the data set gives none.
        gold: ids of the documents that hold the evidence, without repeats; empty for an unanswerable
            question.
        type: the kind of question in lower case, the group under which its figures are reported.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    gold: tuple[str, ...]
    type: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """A corpus with questions whose gold documents all exist in it.

    Args:
        name: registered name of the data set.
        documents: the corpus, in file order.
        questions: in file order; one that lost its gold (see `problems`) or never had any has an empty
            `gold`.
        problems: what could not be used, one sentence each: unreadable documents, gold that names no
            document.
        files: by role (`documents`, `questions`), the `name` and `sha256` of what was read.
    """

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    problems: tuple[str, ...] = ()
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
