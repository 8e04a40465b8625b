"""Data sets by name: which files each one reads, and how gold is tied to documents."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from qgrag.corpus.readers import read_corpus
from qgrag.corpus.records import Document
from qgrag.errors import InputError
from qgrag.evaluation.datasets import jsonl, lihuaworld, squad, twowikimultihopqa
from qgrag.evaluation.datasets.files import find_file, sha256_of
from qgrag.evaluation.datasets.records import Dataset, Question


@dataclass(frozen=True, slots=True)
class DatasetFormat:
    """How the files of one data set are found and read.

    Args:
        read_questions: question file to questions, whose `gold` holds values of `gold_key`.
        corpus_files: names under which the corpus is sought in a folder.
        question_files: names under which the questions are sought in the corpus's folder.
        corpus_format: `format` argument of `read_corpus`.
        gold_key: what questions call a document by.
    """

    read_questions: Callable[[Path], list[Question]]
    corpus_files: tuple[str, ...]
    question_files: tuple[str, ...]
    corpus_format: str = "auto"
    gold_key: Callable[[Document], str] = attrgetter("id")


FORMATS = {
    "lihuaworld": DatasetFormat(
        lihuaworld.read_questions,
        lihuaworld.CORPUS_FILES,
        lihuaworld.QUESTION_FILES,
        corpus_format="lihuaworld",
    ),
    "2wikimultihopqa": DatasetFormat(
        twowikimultihopqa.read_questions,
        twowikimultihopqa.CORPUS_FILES,
        twowikimultihopqa.QUESTION_FILES,
        corpus_format="json",
    ),
    "squad": DatasetFormat(squad.read_questions, (), (), corpus_format="squad", gold_key=attrgetter("text")),
    "demo": DatasetFormat(jsonl.read_questions, (), ()),
    "jsonl": DatasetFormat(jsonl.read_questions, ("corpus.jsonl",), ("questions.jsonl",)),
}
DATASETS = tuple(FORMATS)


def load_dataset(name: str, data: Path | None = None, questions: Path | None = None) -> Dataset:
    """Read a data set from the files of its publisher.

    Args:
        name: one of `DATASETS`.
        data: the folder that the publisher's files lie in, or the corpus itself (a file, or a folder of
            documents). `demo` needs none.
        questions: a question file of the same format, in place of the data set's own.

    Raises:
        InputError: the name is unknown, a file is missing or broken, or two questions share an id. Gold that
            names no document is no error: the question keeps the rest, and `Dataset.problems` says what was
            lost.
    """
    if name not in FORMATS:
        raise InputError(f"unknown data set {name!r}; known are {', '.join(DATASETS)}")
    layout = FORMATS[name]
    corpus_path, question_path = _locate(name, layout, data, questions)
    corpus = read_corpus(corpus_path, format=layout.corpus_format, on_error="skip")
    read = layout.read_questions(question_path)
    _check_ids(question_path, read)
    linked, lost = _link_gold(read, corpus.documents, layout.gold_key)
    return Dataset(
        name=name,
        documents=tuple(corpus.documents),
        questions=tuple(linked),
        problems=(*map(str, corpus.problems), *lost),
        files={
            "documents": {"name": corpus_path.name, "sha256": sha256_of(corpus_path)},
            "questions": {"name": question_path.name, "sha256": sha256_of(question_path)},
        },
    )


def _locate(name: str, layout: DatasetFormat, data: Path | None, questions: Path | None) -> tuple[Path, Path]:
    """The corpus and the question file."""
    if name == "demo":
        from qgrag.demo import demo_path, demo_questions_path

        return data or demo_path(), questions or demo_questions_path()
    if data is None:
        raise InputError(f"data set {name!r} needs its files; name their folder (--data)")
    if not data.exists():
        raise InputError(f"{data}: no such file or folder")
    if name == "squad":
        corpus = _only_json(data)
        return corpus, questions or corpus
    corpus = data
    if data.is_dir() and (name != "jsonl" or (data / layout.corpus_files[0]).is_file()):
        corpus = find_file(data, layout.corpus_files, "corpus", "name its file (--data)")
    if questions is None:
        questions = find_file(
            corpus.parent, layout.question_files, "question file", "name the question file (--questions)"
        )
    return corpus, questions


def _only_json(data: Path) -> Path:
    if data.is_file():
        return data
    found = sorted(data.glob("*.json"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise InputError(f"{data}: expected one SQuAD .json file, found {names}; name the file (--data)")
    return found[0]


def _check_ids(path: Path, questions: Iterable[Question]) -> None:
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise InputError(f"{path}: two questions have the id {question.id!r}; ids have to be unique")
        seen.add(question.id)
    if not seen:
        raise InputError(f"{path}: holds no question")


def _link_gold(
    questions: Iterable[Question], documents: Sequence[Document], key: Callable[[Document], str]
) -> tuple[list[Question], list[str]]:
    """Questions with gold as document ids, and what names no document.

    Documents of equal content are one document: the first of them stands for all.
    """
    first_of_content: dict[str, str] = {}
    ids: dict[str, str] = {}
    for document in documents:
        ids.setdefault(key(document), first_of_content.setdefault(document.content_hash, document.id))
    linked, problems = [], []
    for question in questions:
        for name in question.gold:
            if name not in ids:
                shown = name if len(name) <= 80 else f"{name[:80]}..."
                problems.append(f"question {question.id!r}: its evidence {shown!r} names no document")
        gold = dict.fromkeys(ids[name] for name in question.gold if name in ids)
        linked.append(replace(question, gold=tuple(gold)))
    return linked, problems
