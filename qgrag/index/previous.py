"""What a build takes over from the index that stands in its folder."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from qgrag.corpus.chunking import ChunkConfig
from qgrag.corpus.records import Chunk, text_key
from qgrag.index.config import IndexConfig
from qgrag.index.extractions import load_stored
from qgrag.index.query_graph import QueryGraph, QueryGraphConfig
from qgrag.index.reader import Index


@dataclass(frozen=True)
class Reuse:
    """Reads everything from the index as it was before the build; without an index there is nothing to take over.

    Args:
        index: what stands in the folder, None for a first build.
    """

    index: Index | None

    @property
    def next_generation(self) -> str:
        """Name of the snapshot that follows."""
        return f"g{int(self.index.manifest.generation[1:]) + 1 if self.index else 1:06d}"

    @property
    def hashes(self) -> dict[str, str]:
        """Content hash by document id."""
        return self.index.documents.hashes if self.index else {}

    @property
    def counts(self) -> dict[str, int]:
        return self.index.manifest.counts if self.index else {}

    @property
    def usage(self) -> dict[str, Any]:
        """LLM calls and tokens of all builds so far, by step."""
        return self.index.manifest.usage if self.index else {}

    def close(self) -> None:
        """Let the snapshot go."""
        if self.index:
            self.index.close()

    def is_finished(self, config: IndexConfig, extractors: dict[str, str]) -> bool:
        """Whether the index was made by this configuration and these extractors, with no chunk left to try again."""
        return (
            self.index is not None
            and self.index.config.identity() == config.identity()
            and self.index.manifest.extractors == extractors
            and self.counts.get("failed", 0) == 0
        )

    def chunks(self, config: ChunkConfig) -> dict[str, list[Chunk]]:
        """Chunks by content hash of their document; none if they were cut by another configuration."""
        known: dict[str, list[Chunk]] = {}
        if self.index and self.index.config.chunks == config:
            for chunk in self.index.chunks:
                known.setdefault(self.hashes[chunk.document_id], []).append(chunk)
        return known

    def passage_keys(self) -> set[str]:
        """Content keys of the passages that have vectors."""
        return {text_key(chunk.passage) for chunk in self.index.chunks} if self.index else set()

    def vectors(self) -> Iterator[tuple[Iterable[str], Tensor]]:
        """Blocks of content keys and their vectors [n, d]."""
        if self.index is None:
            return
        yield (text_key(chunk.passage) for chunk in self.index.chunks), self.index.passages.vectors
        if self.index.config.query_graph is not None:
            yield self.index.query_graph.keys, self.index.query_graph.vectors.vectors
        if self.index.config.knowledge_graph is not None:
            yield from self.index.knowledge_graph.known_vectors()

    def extractions(self, kind: str) -> dict[str, bytes]:
        """Results of one kind of extraction, JSON by key."""
        return load_stored(self.index.folder, kind) if self.index else {}

    def similarities(self, config: QueryGraphConfig) -> dict[tuple[str, str], float]:
        """See `QueryGraph.similarities`; none if another part of a pair was embedded."""
        old = self.index.config.query_graph if self.index else None
        if self.index is None or old is None or old.nodes != config.nodes:
            return {}
        return self.index.query_graph.similarities(self.index.chunks, config.nodes)

    def query_graph(self, config: QueryGraphConfig) -> QueryGraph | None:
        """A graph whose neighbours were found as `config` asks, so that it can grow."""
        old = self.index.config.query_graph if self.index else None
        if self.index is None or old is None:
            return None
        alike = (old.nodes, old.neighbours, old.search) == (config.nodes, config.neighbours, config.search)
        return self.index.query_graph if alike else None
