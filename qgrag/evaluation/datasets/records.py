"""What an evaluation is made of: documents, questions about them, and the documents that answer each."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from qgrag.corpus.records import Document
from qgrag.errors import InputError

How = Literal["first", "random"]


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
        groups: the gold in groups of documents that stand in for each other, one hit of each group being enough. Empty
            if each document of the gold is needed.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    gold: tuple[str, ...]
    type: str
    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def evidence(self) -> tuple[tuple[str, ...], ...]:
        """What has to be found: the groups, or each document of the gold as a group of its own."""
        return self.groups or tuple((id_,) for id_ in self.gold)


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


def sample_questions(
    dataset: Dataset, count: int, how: How = "random", seed: int = 0, per_type: bool = False
) -> Dataset:
    """The data set with at most `count` questions, in file order.

    Args:
        dataset: all of it.
        count: questions kept; of each type with `per_type`.
        how: the first ones, or drawn by `seed`.
        seed: of the draw, which depends on it and on the questions' number alone.
        per_type: keep `count` of each type of question.

    Raises:
        InputError: `count` is below 1.
    """
    if count < 1:
        raise InputError(f"a sample needs at least 1 question, not {count}")
    groups: dict[str, list[int]] = {}
    for position, question in enumerate(dataset.questions):
        groups.setdefault(question.type if per_type else "", []).append(position)
    kept: list[int] = []
    for rows in groups.values():
        kept += rows[:count] if how == "first" else random.Random(seed).sample(rows, min(count, len(rows)))
    return replace(dataset, questions=tuple(dataset.questions[i] for i in sorted(kept)))
