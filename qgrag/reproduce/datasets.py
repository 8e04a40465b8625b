"""The data sets of a recipe: questions drawn from a publisher's files, and the corpus that goes with them."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from qgrag.corpus.records import Document
from qgrag.errors import ConfigError
from qgrag.evaluation.datasets import Dataset, load_dataset
from qgrag.evaluation.datasets.files import read_json, read_json_lines
from qgrag.evaluation.datasets.loading import LAYOUTS, locate
from qgrag.evaluation.datasets.records import sample_questions
from qgrag.reproduce.recipe import DataSpec

JSON_LINES = ".jsonl"


def drawn_dataset(spec: DataSpec, data: Path, limit: int | None = None) -> Dataset:
    """The questions that a recipe takes, over its corpus.

    Args:
        spec: of the data set.
        data: folder that holds the data sets' folders.
        limit: at most so many of the questions taken.

    Raises:
        InputError: a file is missing or broken.
        ConfigError: the corpus is to be the passages of the questions taken, but the format does not give passages with
            each question.
    """
    folder = data / spec.folder
    questions = folder / spec.questions if spec.questions else None
    if spec.pool == "sampled":
        dataset = _with_own_passages(spec, folder, questions, limit)
    else:
        dataset = _taken(load_dataset(spec.format, folder, questions), spec, limit)
    return as_one_text(dataset) if spec.one_text else dataset


def as_one_text(dataset: Dataset) -> Dataset:
    """The data set with all documents, each below its title, joined to a single document, and without gold."""
    parts = (f"{document.title}\n{document.text}".strip() for document in dataset.documents)
    document = Document(dataset.name, "\n\n".join(parts))
    questions = tuple(replace(question, gold=()) for question in dataset.questions)
    return replace(dataset, documents=(document,), questions=questions)


def _taken(dataset: Dataset, spec: DataSpec, limit: int | None) -> Dataset:
    if spec.sample is not None:
        dataset = sample_questions(dataset, spec.sample, spec.how, spec.seed, spec.per_type)
    return dataset if limit is None else sample_questions(dataset, limit, spec.how, spec.seed)


def _with_own_passages(spec: DataSpec, folder: Path, questions: Path | None, limit: int | None) -> Dataset:
    """The questions taken, over their own passages: the file is read again with these questions alone."""
    layout = LAYOUTS[spec.format]
    _, path = locate(spec.format, folder, questions)
    entries = [] if layout.question_files else _entries(path)
    everything = layout.read_questions(path)
    if len(entries) != len(everything):
        raise ConfigError(
            f"data set format {spec.format!r} does not give passages with each question, so that its pool has to be all"
        )
    kept = _taken(Dataset(spec.format, (), tuple(everything)), spec, limit).questions
    places = {question.id: place for place, question in enumerate(everything)}
    with TemporaryDirectory() as aside:
        cut = Path(aside) / path.name
        _write(cut, [entries[places[question.id]] for question in kept])
        dataset = load_dataset(spec.format, cut)
    named = zip(dataset.questions, kept, strict=True)
    return replace(dataset, questions=tuple(replace(question, id=original.id) for question, original in named))


def _entries(path: Path) -> list[Any]:
    if path.suffix == JSON_LINES:
        return [entry.values for entry in read_json_lines(path)]
    values = read_json(path, object, "questions")
    return values if isinstance(values, list) else []


def _write(path: Path, entries: list[Any]) -> None:
    if path.suffix == JSON_LINES:
        text = "".join(json.dumps(entry) + "\n" for entry in entries)
    else:
        text = json.dumps(entries)
    path.write_text(text, encoding="utf-8")
