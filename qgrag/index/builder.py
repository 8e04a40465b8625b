"""Documents to an index on disk: only what is new is processed, and an index is whole or absent."""

import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import filelock

from qgrag.corpus.chunking import chunk_documents
from qgrag.corpus.records import Chunk, Document, text_key
from qgrag.errors import BuildStoppedError, IndexFormatError, IndexLockedError, InputError
from qgrag.extraction.records import Extracted
from qgrag.index.config import IndexConfig, load_embedder
from qgrag.index.documents import DocumentSet, compare, save_chunks
from qgrag.index.extractions import LLM_CACHE, Extractors, load_stored, open_extractors, save_stored
from qgrag.index.journal import Journal
from qgrag.index.knowledge.build import build_knowledge_graph
from qgrag.index.lexical import LexicalIndex
from qgrag.index.manifest import MANIFEST, Manifest, write_manifest
from qgrag.index.query_graph import build_query_graph
from qgrag.index.reader import CHUNKS, DOCUMENTS, KNOWLEDGE_GRAPH, LEXICAL, PASSAGES, QUERY_GRAPH, Index
from qgrag.index.reports import BuildPlan, BuildReport
from qgrag.index.reuse import CachedEncoder
from qgrag.index.storage import checksums
from qgrag.index.vectors import VectorIndex
from qgrag.llm.errors import LLMUnavailableError
from qgrag.llm.usage import Usages, measure, sum_usages
from qgrag.models.embedder import Embedder, pick_device
from qgrag.models.tokenizer import token_spans

logger = logging.getLogger(__name__)

JOURNAL = ".journal"
LOCK = ".lock"


def plan_index(
    documents: Sequence[Document], path: str | Path, config: IndexConfig | None = None, *, llm_cache: bool = True
) -> BuildPlan:
    """What `build_index` would do with the same arguments; writes nothing, computes no vector, asks no model."""
    config = config or IndexConfig()
    folder = Path(path)
    new = DocumentSet.of(documents)
    old = Index.open(folder, verify=False) if (folder / MANIFEST).is_file() else None
    chunks = chunk_documents(new.unique, config.chunks, token_spans(config.chunks.tokenizer))
    known = set() if old is None else {text_key(chunk.passage) for chunk in old.chunks}
    cache = folder / LLM_CACHE
    with open_extractors(config, cache if llm_cache and cache.is_file() else None) as extractors:
        estimates = extractors.estimate(chunks, Journal(folder / JOURNAL), old.folder if old else None)
    return BuildPlan(
        compare({} if old is None else old.documents.hashes, new.hashes),
        len(new.documents) - len(new.unique),
        len(chunks),
        sum(text_key(chunk.passage) not in known for chunk in chunks),
        estimates,
    )


def build_index(
    documents: Sequence[Document],
    path: str | Path,
    config: IndexConfig | None = None,
    *,
    embedder: Embedder | None = None,
    extractors: Extractors | None = None,
    llm_cache: bool = True,
) -> BuildReport:
    """Make the index in folder `path` hold exactly `documents`.

    Where an index stands there already, only chunks that it does not know are embedded and extracted, and what belongs
    to documents that are gone is dropped; the result equals a build from nothing. With nothing changed, nothing is
    done. A run that was killed goes on from its last finished batch. Readers keep the old snapshot until they open
    the index again.

    Args:
        documents: all of them, in any order.
        path: folder of the index, made if missing.
        config: what the index holds; a change against the index that stands there rebuilds what depends on it.
        embedder: in place of the one that `config` names.
        extractors: what makes question-answer pairs and facts, in place of those that `config` names.
        llm_cache: keep the answers of the language model in the folder, and ask nothing twice. Without it a
            stopped build keeps only whole batches of chunks.

    Raises:
        InputError: no documents, two with one id, or one without text.
        IndexFormatError: the folder holds something else, or an index of another embedding model.
        IndexLockedError: another process is building there.
        ConfigError: a language model is to be asked, and `config.llm` names none or cannot be used.
        BuildStoppedError: the language model or the embedding endpoint is not available, or the budget of
            `config.llm` is spent; the same call goes on from there.
    """
    config = config or IndexConfig()
    folder = Path(path)
    if not documents:
        raise InputError("there are no documents to index")
    document_set = DocumentSet.of(documents)
    _refuse_foreign(folder)
    embedder = embedder or load_embedder(config)
    cache = folder / LLM_CACHE if llm_cache else None
    with _lock(folder), nullcontext(extractors) if extractors else open_extractors(config, cache) as opened:
        previous = Index.open(folder, embedder=embedder) if (folder / MANIFEST).is_file() else None
        return _Build(document_set, folder, config, embedder, opened, previous).run()


class _Build:
    """One run of `build_index`."""

    def __init__(
        self,
        documents: DocumentSet,
        folder: Path,
        config: IndexConfig,
        embedder: Embedder,
        extractors: Extractors,
        previous: Index | None,
    ) -> None:
        self.documents = documents
        self.folder = folder
        self.config = config
        self.embedder = embedder
        self.extractors = extractors
        self.previous = previous
        self.journal = Journal(folder / JOURNAL)
        self.encode = CachedEncoder(embedder, self.journal)
        self.seconds: dict[str, float] = {}
        self.counts: dict[str, int] = {}
        self.new: dict[str, int] = {}
        self.failures: list[str] = []
        self.empty: list[str] = []
        self.usage: dict[str, dict[str, float]] = {}
        self.extraction: dict[str, dict[str, int]] = {}

    def run(self) -> BuildReport:
        old = self.previous.documents.hashes if self.previous else {}
        changes = compare(old, self.documents.hashes)
        if self.previous and not changes and self._same_config() and not self._failed_before():
            return BuildReport(self.folder, changes, False, self.previous.manifest.counts)
        generation = self._next_generation()
        aside = self.folder / f"{generation}.partial"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        with self._accounted():
            self._write(aside)
        self._commit(aside, generation)
        return BuildReport(
            self.folder,
            changes,
            True,
            self.counts,
            self.new,
            self.seconds,
            tuple(self.failures),
            tuple(self.empty),
            self.usage,
            self.extraction,
        )

    def _write(self, aside: Path) -> None:
        with self._stage("chunks"):
            chunks = self._chunks()
        with self._stage("passages"):
            self._remember_vectors()
            passages = self.encode([c.passage for c in chunks], "Embedding passages")
            self.new["passages"] = self.encode.encoded
        with self._stage("lexical"):
            LexicalIndex.build([c.passage for c in chunks], self.config.lexical).save(aside / LEXICAL)
        self.documents.save(aside / DOCUMENTS)
        save_chunks(aside / CHUNKS, chunks, self.documents)
        VectorIndex.build(passages, self.config.vectors).save(aside / PASSAGES)
        self.counts |= {
            "documents": len(self.documents.documents),
            "duplicates": len(self.documents.documents) - len(self.documents.unique),
            "chunks": len(chunks),
        }
        if self.config.query_graph is not None:
            self._write_query_graph(aside, chunks, passages)
        if self.config.knowledge_graph is not None:
            self._write_knowledge_graph(aside, chunks)
        self.counts["failed"] = len(self.failures)

    def _chunks(self) -> list[Chunk]:
        """Chunks of all documents, reusing those of documents that the earlier index knows."""
        unique = self.documents.unique
        old: dict[str, list[Chunk]] = {}
        if self.previous and self.previous.config.chunks == self.config.chunks:
            hashes = self.previous.documents.hashes
            for chunk in self.previous.chunks:
                old.setdefault(hashes[chunk.document_id], []).append(chunk)
        fresh = [document for document in unique if document.content_hash not in old]
        made: dict[str, list[Chunk]] = {document.id: [] for document in fresh}
        for chunk in chunk_documents(fresh, self.config.chunks, token_spans(self.config.chunks.tokenizer)):
            made[chunk.document_id].append(chunk)
        self.new["chunks"] = sum(map(len, made.values()))
        return [
            Chunk(document.id, c.position, c.start, c.end, c.text, document.title)
            for document in unique
            for c in made.get(document.id, old.get(document.content_hash, []))
        ]

    def _remember_vectors(self) -> None:
        if self.previous is None:
            return
        self.encode.add((text_key(c.passage) for c in self.previous.chunks), self.previous.passages.vectors)
        if self.previous.config.query_graph is not None:
            graph = self.previous.query_graph
            self.encode.add(graph.keys, graph.vectors.vectors)
        if self.previous.config.knowledge_graph is not None:
            for keys, vectors in self.previous.knowledge_graph.known_vectors():
                self.encode.add(keys, vectors)

    def _write_query_graph(self, aside: Path, chunks: Sequence[Chunk], passages: Any) -> None:
        config = self.config.query_graph
        assert config is not None
        with self._stage("questions"):
            outcomes = self._extract("questions", aside, chunks)
        before = self.encode.encoded
        with self._stage("query graph"):
            old = self.previous.config.query_graph if self.previous else None
            reuse = old is not None and old.nodes == config.nodes
            graph = build_query_graph(
                chunks,
                passages,
                [outcome.value for outcome in outcomes],
                config,
                self.config.lexical,
                self.config.vectors,
                self.encode,
                known=self.previous.query_graph.similarities(self.previous.chunks, config.nodes)
                if reuse and self.previous
                else {},
                previous=self.previous.query_graph
                if self.previous
                and old is not None
                and reuse
                and (old.neighbours, old.search) == (config.neighbours, config.search)
                else None,
                device=pick_device(self.config.embedder.device),
            )
            graph.save(aside / QUERY_GRAPH)
        self.counts |= {"question_pairs": graph.pairs.num_rows, "question_nodes": graph.size}
        self.new["question_nodes"] = self.encode.encoded - before

    def _write_knowledge_graph(self, aside: Path, chunks: Sequence[Chunk]) -> None:
        config = self.config.knowledge_graph
        assert config is not None
        with self._stage("facts"):
            outcomes = self._extract("facts", aside, chunks)
        before = self.encode.encoded
        with self._stage("knowledge graph"):
            graph = build_knowledge_graph(chunks, [o.value for o in outcomes], config, self.encode)
            graph.save(aside / KNOWLEDGE_GRAPH)
        self.counts |= graph.counts()
        self.new["entities"] = self.encode.encoded - before

    def _extract(self, kind: str, aside: Path, chunks: Sequence[Chunk]) -> list[Extracted[Any]]:
        known = load_stored(self.previous.folder, kind) if self.previous else {}
        extraction = self.extractors.cached(kind, self.journal, known)
        outcomes = extraction(chunks)
        save_stored(aside, kind, extraction.stored(chunks))
        self.new[kind] = extraction.extracted
        for chunk, outcome in zip(chunks, outcomes):
            if outcome.status != "ok":
                named = self.failures if outcome.status == "failed" else self.empty
                named.append(f"{kind} of {chunk.id}: {outcome.reason}")
        self.extraction[kind] = dict(sorted(sum((Counter(o.counts) for o in outcomes), Counter[str]()).items()))
        self.counts[f"empty_{kind}"] = sum(outcome.status == "empty" for outcome in outcomes)
        return outcomes

    def _commit(self, aside: Path, generation: str) -> None:
        with self._stage("checksums"):
            files = checksums(aside)
        target = self.folder / generation
        shutil.rmtree(target, ignore_errors=True)
        aside.replace(target)
        _sync(self.folder)
        write_manifest(
            self.folder,
            Manifest(
                generation=generation,
                config=asdict(self.config),
                embedder={
                    "name": self.embedder.name,
                    "fingerprint": self.embedder.fingerprint,
                    "dimension": self.embedder.dimension,
                },
                extractors=self.extractors.fingerprints(),
                counts=self.counts,
                seconds={stage: round(seconds, 3) for stage, seconds in self.seconds.items()},
                files=files,
                qgrag=version("qgrag"),
                usage=sum_usages(self.previous.manifest.usage if self.previous else {}, *self._spent()),
                extraction=self.extraction,
            ),
        )
        _sync(self.folder)
        for other in self.folder.glob("g[0-9]*"):
            if other.name != generation:
                shutil.rmtree(other, ignore_errors=True)
        self.journal.clear()

    def _same_config(self) -> bool:
        assert self.previous is not None
        return (
            self.previous.config.identity() == self.config.identity()
            and self.previous.manifest.extractors == self.extractors.fingerprints()
        )

    def _failed_before(self) -> bool:
        assert self.previous is not None
        return self.previous.manifest.counts.get("failed", 0) > 0

    def _next_generation(self) -> str:
        last = int(self.previous.manifest.generation[1:]) if self.previous else 0
        return f"g{last + 1:06d}"

    def _spent(self) -> tuple[Usages, Usages]:
        """What stopped runs of this build spent, and this one."""
        return self.journal.read_usage(), self.usage

    @contextmanager
    def _accounted(self) -> Iterator[None]:
        """Measure what language models are asked; what a run spends that ends early is kept with its work."""
        finished = False
        self._book_killed_run()
        with measure() as meter:
            try:
                yield
                finished = True
            except LLMUnavailableError as error:
                raise BuildStoppedError(
                    f"{error}. Finished work is kept; the same command goes on from there"
                ) from error
            finally:
                self.usage = meter.to_dict()
                if self.usage and not finished:
                    self.journal.write_usage(sum_usages(*self._spent()))
                if self.extractors.answers is not None:
                    self.extractors.answers.book()

    def _book_killed_run(self) -> None:
        """Take over what a run has spent that ended without warning, from the answers that it left."""
        answers = self.extractors.answers
        if answers is not None and (left := answers.unbooked()):
            spent = {step: usage.to_dict() for step, usage in left.items()}
            self.journal.write_usage(sum_usages(self.journal.read_usage(), spent))
            answers.book()

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise IndexLockedError(
            f"{folder}: another process is building this index; wait for it, or choose another folder"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _refuse_foreign(folder: Path) -> None:
    """Never write into a folder that holds anything but an index or an unfinished build of one."""
    if folder.is_file():
        raise IndexFormatError(f"{folder}: is a file; an index needs a folder")
    if not folder.is_dir() or (folder / MANIFEST).is_file():
        return
    foreign = [p.name for p in folder.iterdir() if not p.name.startswith((JOURNAL, LOCK, LLM_CACHE, "g0"))]
    if foreign:
        raise IndexFormatError(
            f"{folder}: holds {sorted(foreign)[0]!r}, which is no part of an index; choose an empty or new folder"
        )


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
