"""Documents, readers, chunks with spans, sentences."""

from typing import TYPE_CHECKING

from qgrag.lazy import lazy_names

if TYPE_CHECKING:
    from qgrag.corpus.chunking import ChunkConfig, chunk_documents
    from qgrag.corpus.queries import Query, read_queries
    from qgrag.corpus.readers import read_corpus
    from qgrag.corpus.records import Chunk, Document
    from qgrag.corpus.report import CorpusReport, Problem
    from qgrag.corpus.sentences import split_sentences

__all__ = [
    "Chunk",
    "ChunkConfig",
    "CorpusReport",
    "Document",
    "Problem",
    "Query",
    "chunk_documents",
    "read_corpus",
    "read_queries",
    "split_sentences",
]

__getattr__ = lazy_names(
    __name__,
    {
        "chunking": ["ChunkConfig", "chunk_documents"],
        "queries": ["Query", "read_queries"],
        "readers": ["read_corpus"],
        "records": ["Chunk", "Document"],
        "report": ["CorpusReport", "Problem"],
        "sentences": ["split_sentences"],
    },
)
