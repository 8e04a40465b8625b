"""Open an index and look things up in it."""

import logging
from functools import cached_property
from pathlib import Path

from qgrag.config import from_plain
from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError, IndexFormatError, MissingComponentError, ModelNotFoundError, UntrustedAddressError
from qgrag.index.config import IndexConfig, load_recorded_embedder
from qgrag.index.documents import DocumentSet, load_chunks
from qgrag.index.knowledge.build import KnowledgeGraph
from qgrag.index.lexical import LexicalIndex
from qgrag.index.manifest import Manifest
from qgrag.index.query_graph import QueryGraph
from qgrag.index.snapshot import Hold, hold_current
from qgrag.index.storage import verify_files
from qgrag.index.vectors import VectorIndex
from qgrag.llm.errors import LLMUnavailableError
from qgrag.models.embedder import Embedder, pick_device

logger = logging.getLogger(__name__)

DOCUMENTS = "documents.parquet"
CHUNKS = "chunks.parquet"
PASSAGES = "passages"
LEXICAL = "lexical"
QUERY_GRAPH = "query_graph"
KNOWLEDGE_GRAPH = "knowledge_graph"


class Index:
    """A read-only snapshot of an index on disk; parts are loaded when first used.

    Any number of processes may have one open. A build that ends meanwhile does not change what it returns: the snapshot
    is held, and stays on disk, until `close` or until the object is collected.

    Args:
        path: the index folder.
        manifest: as read from it.
        embedder: encodes queries; must carry the fingerprint in the manifest.
        device: where vectors are searched.
        hold: on the snapshot.
    """

    def __init__(self, path: Path, manifest: Manifest, embedder: Embedder | None, device: str, hold: Hold) -> None:
        self.path = path
        self.manifest = manifest
        self.device = device
        self._embedder = embedder
        self._hold = hold

    @classmethod
    def open(
        cls, path: str | Path, *, embedder: Embedder | None = None, device: str = "auto", verify: bool = True
    ) -> "Index":
        """Open the index in folder `path`.

        Args:
            path: the folder given to `qgrag index --out`.
            embedder: in place of the model named in the manifest.
            device: `auto`, or a torch device for the search of vectors.
            verify: compare the checksums of all files, about a second per gigabyte; sizes are always compared.

        Raises:
            IndexFormatError: no index, a torn, foreign or newer one, or one built with another embedding model.
        """
        folder = Path(path)
        manifest, hold = hold_current(folder)
        verify_files(folder / manifest.generation, manifest.files, digests=verify)
        index = cls(folder, manifest, embedder, pick_device(device), hold)
        try:
            index._check_embedder(index.embedder)
        except (ModelNotFoundError, LLMUnavailableError, UntrustedAddressError) as error:
            logger.warning("%s; retrievers that need no embeddings still work", error)
        return index

    def close(self) -> None:
        """Let the snapshot go: a later build may remove its files, so parts not yet loaded can no longer be."""
        self._hold.release()

    def _check_embedder(self, embedder: Embedder) -> None:
        recorded = self.manifest.embedder
        if embedder.fingerprint != recorded["fingerprint"]:
            raise IndexFormatError(
                f"{self.path / 'manifest.json'}: built with embedding model {recorded['name']!r} "
                f"(fingerprint {recorded['fingerprint']}), but {embedder.name!r} has fingerprint "
                f"{embedder.fingerprint}; use that model, or build the index again into another folder"
            )

    @property
    def folder(self) -> Path:
        """Folder of the snapshot's files."""
        return self.path / self.manifest.generation

    @cached_property
    def config(self) -> IndexConfig:
        try:
            return from_plain(IndexConfig, self.manifest.config, where=str(self.path / "manifest.json"))
        except ConfigError as error:
            raise IndexFormatError(f"{error}; the manifest's 'config' is damaged, or of a newer qgrag") from error

    @cached_property
    def embedder(self) -> Embedder:
        return self._embedder or load_recorded_embedder(self.config)

    @cached_property
    def documents(self) -> DocumentSet:
        return DocumentSet.load(self.folder / DOCUMENTS)

    @cached_property
    def chunks(self) -> list[Chunk]:
        """All chunks; the row of a chunk is its number everywhere inside the index."""
        return load_chunks(self.folder / CHUNKS, self.documents)

    @cached_property
    def document_ids(self) -> list[tuple[str, ...]]:
        """For each chunk every id of its document, the canonical one first."""
        by_id = {self.documents.documents[row].id: ids for row, ids in self.documents.aliases.items()}
        return [by_id[chunk.document_id] for chunk in self.chunks]

    @cached_property
    def passages(self) -> VectorIndex:
        return VectorIndex.load(self.folder / PASSAGES, self.device)

    @cached_property
    def lexical(self) -> LexicalIndex:
        return LexicalIndex.load(self.folder / LEXICAL)

    @cached_property
    def query_graph(self) -> QueryGraph:
        """Raises MissingComponentError where the index was built without one."""
        self._require(QUERY_GRAPH)
        graph = QueryGraph.load(self.folder / QUERY_GRAPH, self.device)
        self._refuse(QUERY_GRAPH, graph.out_of_range(len(self.chunks)))
        return graph

    @cached_property
    def knowledge_graph(self) -> KnowledgeGraph:
        """Raises MissingComponentError where the index was built without one."""
        self._require(KNOWLEDGE_GRAPH)
        graph = KnowledgeGraph.load(self.folder / KNOWLEDGE_GRAPH)
        self._refuse(KNOWLEDGE_GRAPH, graph.out_of_range(len(self.chunks)))
        return graph

    def _refuse(self, part: str, problems: list[str]) -> None:
        if problems:
            raise IndexFormatError(
                f"{self.folder / part}: {problems[0]}; the files were changed, build the index again"
            )

    def _require(self, part: str) -> None:
        if getattr(self.config, part) is None:
            raise MissingComponentError(
                f"{self.path}: built without its {part.replace('_', ' ')} ({part}: null in the configuration); "
                f"index the documents again with {part} set, for example with configs/index/local.yaml"
            )

    def check(self) -> list[str]:
        """Every inconsistency found in the whole index, empty if it is sound; also re-reads all checksums."""
        problems: list[str] = []
        try:
            verify_files(self.folder, self.manifest.files, digests=True)
        except IndexFormatError as error:
            problems.append(str(error))
            return problems
        count = len(self.chunks)
        covered = {chunk.document_id for chunk in self.chunks}
        expected = {document.id for document in self.documents.unique}
        problems += [f"document {id!r} has no chunk" for id in sorted(expected - covered)]
        problems += [f"chunks of {id!r} have no document" for id in sorted(covered - expected)]
        problems += [
            f"{part}: {size} entries for {count} chunks"
            for part, size in {PASSAGES: len(self.passages.vectors), LEXICAL: self.lexical.size}.items()
            if size != count
        ]
        if self.config.query_graph is not None:
            problems += self.query_graph.check(count)
        if self.config.knowledge_graph is not None:
            problems += self.knowledge_graph.check(count)
        return problems
