"""Train, build and run query-centric graph retrieval.

Importing the package is light; what the names below stand for is imported when first used:

>>> import qgrag
>>> documents = qgrag.read_corpus("notes").documents                  # doctest: +SKIP
>>> qgrag.build_index(documents, "my-index")                          # doctest: +SKIP
>>> index = qgrag.Index.open("my-index")                              # doctest: +SKIP
>>> qgrag.load_retriever(index, "qcg").retrieve(["a question"])       # doctest: +SKIP
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qgrag.corpus.readers import read_corpus
    from qgrag.corpus.records import Chunk, Document
    from qgrag.index.builder import build_index
    from qgrag.index.config import IndexConfig
    from qgrag.index.reader import Index
    from qgrag.retrieval.registry import load_retriever
    from qgrag.retrieval.results import Hit, RetrievalResult

__version__ = version("qgrag")

_HOME = {
    "read_corpus": "qgrag.corpus.readers",
    "Chunk": "qgrag.corpus.records",
    "Document": "qgrag.corpus.records",
    "build_index": "qgrag.index.builder",
    "IndexConfig": "qgrag.index.config",
    "Index": "qgrag.index.reader",
    "load_retriever": "qgrag.retrieval.registry",
    "Hit": "qgrag.retrieval.results",
    "RetrievalResult": "qgrag.retrieval.results",
}

__all__ = [
    "Chunk",
    "Document",
    "Hit",
    "Index",
    "IndexConfig",
    "RetrievalResult",
    "build_index",
    "load_retriever",
    "read_corpus",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'qgrag' has no attribute {name!r}")
