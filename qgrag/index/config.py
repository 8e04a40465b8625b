"""Everything that decides what an index holds."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from qgrag.corpus.chunking import ChunkConfig
from qgrag.index.knowledge_graph import KnowledgeGraphConfig
from qgrag.index.lexical import LexicalConfig
from qgrag.index.query_graph import QueryGraphConfig
from qgrag.index.vectors import VectorConfig
from qgrag.models.embedder import EmbedderConfig


@dataclass(frozen=True)
class IndexConfig:
    """What an index holds and how it is made; the defaults need no LLM, no hub and no GPU.

    Args:
        chunks: windows of the documents.
        embedder: the embedding model.
        vectors: how vectors are searched.
        lexical: BM25.
        query_graph: the query-centric graph of QCG-RAG; null leaves it out.
        knowledge_graph: the knowledge graph of DualGraphRAG, FG-RAG and QMKGF; null leaves it out.
    """

    chunks: ChunkConfig = field(default_factory=ChunkConfig)
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    vectors: VectorConfig = field(default_factory=VectorConfig)
    lexical: LexicalConfig = field(default_factory=LexicalConfig)
    query_graph: QueryGraphConfig | None = field(default_factory=QueryGraphConfig)
    knowledge_graph: KnowledgeGraphConfig | None = field(default_factory=KnowledgeGraphConfig)

    def identity(self) -> dict[str, Any]:
        """The part that decides the content of an index: all but where and in what batches it is computed."""
        plain = dataclasses.asdict(self)
        for name in ("device", "batch_size"):
            plain["embedder"].pop(name)
        return plain
