"""Corpora made of the passages that come with each question: HotpotQA's and MuSiQue's way."""

from collections.abc import Iterable

from qgrag.corpus.readers.json_list import UniqueNames
from qgrag.corpus.records import Document
from qgrag.corpus.report import CorpusReport


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
