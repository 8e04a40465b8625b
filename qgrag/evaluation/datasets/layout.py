"""How the files of a data set are found and read, and how passages that come with questions make a corpus."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from qgrag.corpus.readers import read_corpus
from qgrag.corpus.readers.json_list import UniqueNames
from qgrag.corpus.records import Document
from qgrag.corpus.report import CorpusReport
from qgrag.evaluation.datasets.records import Question


@dataclass(frozen=True, slots=True)
class Layout:
    """One data set's files.

    Args:
        read_documents: corpus to documents and problems.
        read_questions: question file to questions, whose `gold` holds values of `gold_key`.
        corpus_files: patterns of the corpus's file, sought in this order in the folder of the data set.
        question_files: patterns of the question file, sought beside the corpus; none if the corpus's file holds them.
        split_file: path of the question file of a split, with `{}` for its name; empty if there are no splits.
        further_files: names of files beside the corpus that are read too; their checksums are recorded if they exist.
        folder_is_corpus: whether a folder without any of `corpus_files` is a corpus of one-document files.
        gold_key: what questions call a document by.
    """

    read_documents: Callable[[Path], CorpusReport]
    read_questions: Callable[[Path], list[Question]]
    corpus_files: tuple[str, ...]
    question_files: tuple[str, ...] = ()
    split_file: str = ""
    further_files: tuple[str, ...] = ()
    folder_is_corpus: bool = False
    gold_key: Callable[[Document], str] = attrgetter("id")


def corpus_reader(format: str) -> Callable[[Path], CorpusReport]:
    """`read_corpus` for one format, that reports broken documents and goes on."""
    return partial(read_corpus, format=format, on_error="skip")


def passage_key(title: str, text: str) -> str:
    """What questions call a passage by: titles repeat over different texts."""
    return f"{title}\n{text}"


def document_key(document: Document) -> str:
    """`passage_key` of a document."""
    return passage_key(document.title, document.text)


def pool_passages(passages: Iterable[tuple[str, str]], source: str) -> CorpusReport:
    """The distinct passages as documents, in order of appearance.

    A document's id is its title; the second text under one title gets a number: `Rose#2`.

    Args:
        passages: (title, text).
        source: name of their file.
    """
    distinct = [(title, text) for title, text in dict.fromkeys(passages) if text.strip()]
    unique = UniqueNames(title for title, _ in distinct)
    return CorpusReport([Document(unique(title), text, title, {"source": source}) for title, text in distinct])
