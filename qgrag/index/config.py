"""Everything that decides what an index holds."""

import dataclasses
import os
from dataclasses import dataclass, field
from typing import Any

from qgrag.corpus.chunking import ChunkConfig
from qgrag.errors import UntrustedAddressError
from qgrag.index.knowledge.build import KnowledgeGraphConfig
from qgrag.index.lexical import LexicalConfig
from qgrag.index.query_graph import QueryGraphConfig
from qgrag.index.vectors import VectorConfig
from qgrag.llm.config import LLMConfig
from qgrag.llm.prompts import PromptConfig
from qgrag.models.embedder import Embedder, EmbedderConfig, LocalEmbedder
from qgrag.models.remote_embedder_config import RemoteEmbedderConfig

EMBEDDER_URL_VARIABLE = "QGRAG_EMBEDDER_BASE_URL"
"""The endpoint to which the key may go though an index, and no configuration of the user's, names it."""


@dataclass(frozen=True)
class IndexConfig:
    """What an index holds and how it is made; the defaults need no LLM, no hub and no GPU.

    Args:
        chunks: windows of the documents.
        embedder: the embedding model.
        remote_embedder: an endpoint that makes the vectors in its place; with an empty model there is none.
        vectors: how vectors are searched.
        lexical: BM25.
        query_graph: the query-centric graph of QCG-RAG; null leaves it out.
        knowledge_graph: the knowledge graph of DualGraphRAG, FG-RAG and QMKGF; null leaves it out.
        llm: the language model that `query_graph.generator` and `knowledge_graph.extractor` may ask; needed to
            build the index, not to open it.
        prompts: what it is asked with.
    """

    chunks: ChunkConfig = field(default_factory=ChunkConfig)
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    remote_embedder: RemoteEmbedderConfig = field(default_factory=RemoteEmbedderConfig)
    vectors: VectorConfig = field(default_factory=VectorConfig)
    lexical: LexicalConfig = field(default_factory=LexicalConfig)
    query_graph: QueryGraphConfig | None = field(default_factory=QueryGraphConfig)
    knowledge_graph: KnowledgeGraphConfig | None = field(default_factory=KnowledgeGraphConfig)
    llm: LLMConfig = field(default_factory=LLMConfig)
    prompts: PromptConfig = field(default_factory=PromptConfig)

    @property
    def asks_llm(self) -> bool:
        """Whether anything is extracted by a language model."""
        graph, facts = self.query_graph, self.knowledge_graph
        return (graph is not None and graph.generator != "local") or (facts is not None and facts.extractor != "local")

    def identity(self) -> dict[str, Any]:
        """The part that decides the content of an index: all but where, in what batches, at what pace and within
        what budget it is computed."""
        plain = dataclasses.asdict(self)
        for name in ("device", "batch_size"):
            plain["embedder"].pop(name)
        for name in ("base_url", "batch_size", "pace"):
            plain["remote_embedder"].pop(name)
        if self.asks_llm:
            plain["llm"] = {name: plain["llm"][name] for name in ("model", "sampling")}
        else:
            del plain["llm"], plain["prompts"]
        return plain


def load_recorded_embedder(config: IndexConfig) -> Embedder:
    """The embedding model that an index names, which may come from a stranger: no key goes to an address of its choice.

    Raises:
        ModelNotFoundError: see `load_embedder`.
        UntrustedAddressError: a key is set, and the environment does not name the endpoint's address.
    """
    if config.remote_embedder.model:
        _refuse_unnamed(config.remote_embedder.base_url)
    return load_embedder(config)


def _refuse_unnamed(url: str) -> None:
    from qgrag.llm.endpoint.client import KEY_VARIABLE

    named = {os.environ.get(variable, "").rstrip("/") for variable in (EMBEDDER_URL_VARIABLE, "OPENAI_BASE_URL")}
    if os.environ.get(KEY_VARIABLE) and url and url.rstrip("/") not in named:
        raise UntrustedAddressError(
            f"the index names {url} as the endpoint of its embedding model, and the key in {KEY_VARIABLE} would go "
            f"there; if you trust that address, set {EMBEDDER_URL_VARIABLE}={url}, else unset {KEY_VARIABLE}"
        )


def load_embedder(config: IndexConfig) -> Embedder:
    """The embedding model that a configuration names.

    Raises:
        ModelNotFoundError: it is no folder, package or reachable hub name.
    """
    if config.remote_embedder.model:
        from qgrag.models.remote_embedder import RemoteEmbedder

        return RemoteEmbedder(config.remote_embedder)
    return LocalEmbedder(config.embedder)
