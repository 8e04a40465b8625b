"""Data sets by name, read from their publishers' files, with gold tied to documents."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from qgrag.corpus.records import Document
from qgrag.corpus.report import CorpusReport
from qgrag.errors import InputError
from qgrag.evaluation.datasets import (
    beir,
    graphragbench,
    hotpotqa,
    iirc,
    jsonl,
    lihuaworld,
    multihoprag,
    musique,
    nq,
    squad,
    twowikimultihopqa,
    ultradomain,
)
from qgrag.evaluation.datasets.files import find_file, read_json_lines, sha256_of
from qgrag.evaluation.datasets.layout import Layout
from qgrag.evaluation.datasets.records import Dataset, Question

LAYOUTS = {
    "demo": jsonl.LAYOUT,
    "jsonl": jsonl.LAYOUT,
    "lihuaworld": lihuaworld.LAYOUT,
    "2wikimultihopqa": twowikimultihopqa.LAYOUT,
    "squad": squad.LAYOUT,
    "hotpotqa": hotpotqa.LAYOUT,
    "musique": musique.LAYOUT,
    "multihop-rag": multihoprag.LAYOUT,
    "graphrag-bench": graphragbench.LAYOUT,
    "nq": nq.LAYOUT,
    "iirc": iirc.LAYOUT,
    "ultradomain": ultradomain.LAYOUT,
    "beir": beir.LAYOUT,
}
DATASETS = tuple(LAYOUTS)


def load_dataset(
    name: str, data: Path | None = None, questions: Path | None = None, split: str | None = None
) -> Dataset:
    """Read a data set from the files of its publisher.

    Args:
        name: one of `DATASETS`.
        data: the folder that the publisher's files lie in, or the corpus itself (a file, or a folder of
            documents). `demo` needs none.
        questions: replaces the data set's own questions: a file of the same format, or JSON lines as data set `jsonl`
            has them (each with `question` and `documents`).
        split: the split whose questions are read, for formats that have one question file per split.

    Raises:
        InputError: the name is unknown, a file is missing or broken, or two questions share an id. Gold that
            names no document is no error: the question keeps the rest, and `Dataset.problems` says what was
            lost.
    """
    layout = _layout(name)
    corpus_path, question_path = locate(name, data, questions, split)
    corpus = layout.read_documents(corpus_path)
    if questions is not None and _is_own(question_path):
        layout = jsonl.LAYOUT
    read = layout.read_questions(question_path)
    _check_ids(question_path, read)
    linked, lost = _link_gold(read, corpus.documents, layout.gold_key)
    files = {"documents": corpus_path, "questions": question_path}
    files |= {Path(file).stem: corpus_path.parent / file for file in _layout(name).further_files}
    return Dataset(
        name=name,
        documents=tuple(corpus.documents),
        questions=tuple(linked),
        problems=(*map(str, corpus.problems), *lost),
        files={role: {"name": path.name, "sha256": sha256_of(path)} for role, path in files.items() if path.exists()},
    )


def load_documents(name: str, data: Path | None = None) -> CorpusReport:
    """The corpus of a data set alone; there need not be any questions.

    Args:
        name: one of `DATASETS`.
        data: as in `load_dataset`.

    Raises:
        InputError: the name is unknown, or the corpus is missing or broken as a whole.
    """
    return _layout(name).read_documents(_locate_corpus(name, data))


def locate(name: str, data: Path | None, questions: Path | None = None, split: str | None = None) -> tuple[Path, Path]:
    """The corpus and the question file of a data set, without reading them.

    Raises:
        InputError: a file is not there, several might be meant, or `split` does not go with the rest.
    """
    corpus, patterns = _locate_corpus(name, data), LAYOUTS[name].question_files
    if split is not None:
        questions = _split_file(name, corpus.parent, questions, split)
    if questions is None and name == "demo":
        from qgrag.demo import demo_questions_path

        questions = demo_questions_path()
    if questions is None and patterns:
        option = "--split, --questions" if LAYOUTS[name].split_file else "--questions"
        questions = find_file(corpus.parent, patterns, "question file", option)
    return corpus, questions or corpus


def _layout(name: str) -> Layout:
    if name not in LAYOUTS:
        raise InputError(f"unknown data set {name!r}; known are {', '.join(DATASETS)}")
    return LAYOUTS[name]


def _locate_corpus(name: str, data: Path | None) -> Path:
    layout = LAYOUTS[name]
    if name == "demo":
        from qgrag.demo import demo_path

        return data or demo_path()
    if data is None:
        raise InputError(f"data set {name!r} needs its files; name their folder (--data)")
    if not data.exists():
        raise InputError(f"{data}: no such file or folder")
    named = any(path for pattern in layout.corpus_files for path in data.glob(pattern))
    if data.is_dir() and (named or not layout.folder_is_corpus):
        return find_file(data, layout.corpus_files, "corpus", "--data")
    return data


def _split_file(name: str, folder: Path, questions: Path | None, split: str) -> Path:
    pattern = LAYOUTS[name].split_file
    if not pattern:
        raise InputError(f"data set {name!r} has no splits; name a question file in place of the split (--questions)")
    if questions is not None:
        raise InputError(f"{questions} and split {split!r} both name the questions; leave one out")
    path = folder / pattern.format(split)
    if not path.is_file():
        known = ", ".join(sorted(other.stem for other in folder.glob(pattern.format("*")))) or "none"
        raise InputError(f"{path}: no such file; the splits here are: {known} (--split)")
    return path


def _is_own(path: Path) -> bool:
    """Whether a file holds a user's own questions, by its first line."""
    if path.suffix != ".jsonl":
        return False
    first = next(read_json_lines(path), None)
    return first is not None and {"question", "documents"} <= first.values.keys()


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
        groups = _joined([{ids[name]: None for name in group if name in ids} for group in question.groups])
        linked.append(replace(question, gold=tuple(gold), groups=groups))
    return linked, problems


def _joined(groups: Iterable[dict[str, None]]) -> tuple[tuple[str, ...], ...]:
    """Groups that share a document made one; groups without any document left out."""
    joined: list[dict[str, None]] = []
    for group in groups:
        touching = [other for other in joined if not group.keys().isdisjoint(other)]
        joined = [other for other in joined if other not in touching]
        for other in touching:
            group = other | group
        joined += [group] if group else []
    return tuple(tuple(group) for group in joined)
