"""Fewer questions of a data set, chosen before anything is asked; the corpus stays whole."""

import random
from dataclasses import replace
from typing import Literal

from qgrag.errors import InputError
from qgrag.evaluation.datasets.records import Dataset

How = Literal["first", "random"]


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
