"""Train, build and run query-centric graph retrieval.

Importing the package is light; what the names below stand for is imported when first used:

>>> import qgrag
>>> documents = qgrag.read_corpus("notes").documents                  # doctest: +SKIP
>>> qgrag.build_index(documents, "my-index")                          # doctest: +SKIP
>>> index = qgrag.Index.open("my-index")                              # doctest: +SKIP
>>> qgrag.load_retriever(index, "qcg").retrieve(["a question"])       # doctest: +SKIP
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

from qgrag.lazy import lazy_names

if TYPE_CHECKING:
    from qgrag.corpus import Chunk, Document, read_corpus
    from qgrag.index import Index, IndexConfig, build_index
    from qgrag.retrieval import Hit, RetrievalResult, load_retriever

__version__ = version("qgrag")

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

__getattr__ = lazy_names(
    __name__,
    {
        "corpus": ["Chunk", "Document", "read_corpus"],
        "index": ["Index", "IndexConfig", "build_index"],
        "retrieval": ["Hit", "RetrievalResult", "load_retriever"],
    },
)
