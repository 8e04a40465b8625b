"""Documents to an index on disk: only what is new is processed, and an index is whole or absent."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import filelock
from torch import Tensor

from qgrag.corpus.chunking import chunk_documents
from qgrag.corpus.records import Chunk, Document, text_key
from qgrag.errors import IndexFormatError, IndexLockedError, InputError
from qgrag.files import whole_folder
from qgrag.index.config import IndexConfig, load_embedder
from qgrag.index.documents import DocumentSet, compare, save_chunks
from qgrag.index.extractions import LLM_CACHE, Extractors, open_extractors, save_stored
from qgrag.index.journal import Journal
from qgrag.index.knowledge.build import KnowledgeGraphConfig, build_knowledge_graph
from qgrag.index.lexical import LexicalIndex
from qgrag.index.manifest import MANIFEST, Manifest, write_manifest
from qgrag.index.previous import Reuse
from qgrag.index.query_graph import QueryGraphConfig
from qgrag.index.query_graph_build import QueryGraphInputs, build_query_graph
from qgrag.index.reader import CHUNKS, DOCUMENTS, KNOWLEDGE_GRAPH, LEXICAL, PASSAGES, QUERY_GRAPH, Index
from qgrag.index.reports import BuildPlan, BuildReport
from qgrag.index.reuse import CachedEncoder
from qgrag.index.snapshot import remove_others
from qgrag.index.spending import Spending, counted
from qgrag.index.storage import checksums
from qgrag.index.tally import Tally
from qgrag.index.vectors import VectorIndex
from qgrag.llm.usage import sum_usages
from qgrag.models.embedder import Embedder, pick_device
from qgrag.models.tokenizer import token_spans

JOURNAL = ".journal"
LOCK = ".lock"


def plan_index(
    documents: Sequence[Document], path: str | Path, config: IndexConfig | None = None, *, llm_cache: bool = True
) -> BuildPlan:
    """What `build_index` would do with the same arguments; writes nothing, computes no vector, asks no model."""
    config = config or IndexConfig()
    folder = Path(path)
    new = DocumentSet.of(documents)
    reuse = Reuse(Index.open(folder, verify=False) if (folder / MANIFEST).is_file() else None)
    chunks = chunk_documents(new.unique, config.chunks, token_spans(config.chunks.tokenizer))
    known = reuse.passage_keys()
    cache = folder / LLM_CACHE
    with open_extractors(config, cache if llm_cache and cache.is_file() else None) as extractors:
        estimates = extractors.estimate(chunks, Journal(folder / JOURNAL), reuse.extractions)
    return BuildPlan(
        compare(reuse.hashes, new.hashes),
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
    the index again; the first build after they have closed it removes its files.

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
        reuse = Reuse(Index.open(folder, embedder=embedder) if (folder / MANIFEST).is_file() else None)
        changes = compare(reuse.hashes, document_set.hashes)
        if reuse.index and not changes and reuse.is_finished(config, opened.fingerprints()):
            reuse.close()
            remove_others(folder, reuse.index.manifest.generation)
            return BuildReport(folder, changes, False, reuse.counts)
        build = _Build(document_set, config, embedder, opened, reuse, Journal(folder / JOURNAL))
        tally = Tally()
        generation = reuse.next_generation
        with whole_folder(_emptied(folder / generation)) as aside:
            with counted(build.journal, opened.answers) as spending:
                _write_snapshot(build, aside, tally)
            with tally.stage("checksums"):
                files = checksums(aside)
        write_manifest(folder, _manifest(build, generation, tally, spending, files))
        reuse.close()
        remove_others(folder, generation)
        build.journal.clear()
    return BuildReport(
        folder,
        changes,
        True,
        tally.counts,
        tally.new,
        tally.seconds,
        tuple(tally.failures),
        tuple(tally.empty),
        spending.run,
        tally.extraction,
    )


@dataclass(frozen=True)
class _Build:
    """What the stages of one build read.

    Args:
        documents: all that the index is to hold.
        config: what it is to hold of them.
        embedder: makes the vectors.
        extractors: make the question-answer pairs and the facts.
        reuse: what was made before.
        journal: keeps what is made now until the build is done.
    """

    documents: DocumentSet
    config: IndexConfig
    embedder: Embedder
    extractors: Extractors
    reuse: Reuse
    journal: Journal


def _write_snapshot(build: _Build, aside: Path, tally: Tally) -> None:
    """All stages in their order; each writes its files into `aside`."""
    chunks = _write_chunks(build, aside, tally)
    encode = CachedEncoder(build.embedder, build.journal)
    passages = _write_passages(build, aside, tally, chunks, encode)
    with tally.stage("lexical"):
        LexicalIndex.build([c.passage for c in chunks], build.config.lexical).save(aside / LEXICAL)
    if build.config.query_graph is not None:
        _write_query_graph(build, build.config.query_graph, aside, tally, chunks, passages, encode)
    if build.config.knowledge_graph is not None:
        _write_knowledge_graph(build, build.config.knowledge_graph, aside, tally, chunks, encode)
    tally.counts["failed"] = len(tally.failures)


def _write_chunks(build: _Build, aside: Path, tally: Tally) -> list[Chunk]:
    """Chunks of all documents; those of documents with the same content as before are not cut again."""
    unique, config = build.documents.unique, build.config.chunks
    with tally.stage("chunks"):
        known = build.reuse.chunks(config)
        fresh = [document for document in unique if document.content_hash not in known]
        made: dict[str, list[Chunk]] = {document.id: [] for document in fresh}
        for chunk in chunk_documents(fresh, config, token_spans(config.tokenizer)):
            made[chunk.document_id].append(chunk)
        chunks = [
            replace(chunk, document_id=document.id, title=document.title)
            for document in unique
            for chunk in made.get(document.id, known.get(document.content_hash, []))
        ]
    build.documents.save(aside / DOCUMENTS)
    save_chunks(aside / CHUNKS, chunks, build.documents)
    tally.new["chunks"] = sum(map(len, made.values()))
    tally.counts |= {
        "documents": len(build.documents.documents),
        "duplicates": len(build.documents.documents) - len(unique),
        "chunks": len(chunks),
    }
    return chunks


def _write_passages(build: _Build, aside: Path, tally: Tally, chunks: Sequence[Chunk], encode: CachedEncoder) -> Tensor:
    """Vectors of the passages, float32 [len(chunks), d]; from here on `encode` knows all vectors made before."""
    with tally.stage("passages"):
        for keys, vectors in build.reuse.vectors():
            encode.add(keys, vectors)
        passages = encode([chunk.passage for chunk in chunks], "Embedding passages")
    VectorIndex.build(passages, build.config.vectors).save(aside / PASSAGES)
    tally.new["passages"] = encode.encoded
    return passages


def _write_query_graph(
    build: _Build,
    config: QueryGraphConfig,
    aside: Path,
    tally: Tally,
    chunks: Sequence[Chunk],
    passages: Tensor,
    encode: CachedEncoder,
) -> None:
    pairs = _extract(build, "questions", aside, tally, chunks)
    before = encode.encoded
    with tally.stage("query graph"):
        inputs = QueryGraphInputs(
            chunks, passages, pairs, build.reuse.similarities(config), build.reuse.query_graph(config)
        )
        graph = build_query_graph(
            inputs,
            config,
            build.config.lexical,
            build.config.vectors,
            encode,
            pick_device(build.config.embedder.device),
        )
        graph.save(aside / QUERY_GRAPH)
    tally.counts |= {"question_pairs": graph.pairs.num_rows, "question_nodes": graph.size}
    tally.new["question_nodes"] = encode.encoded - before


def _write_knowledge_graph(
    build: _Build,
    config: KnowledgeGraphConfig,
    aside: Path,
    tally: Tally,
    chunks: Sequence[Chunk],
    encode: CachedEncoder,
) -> None:
    facts = _extract(build, "facts", aside, tally, chunks)
    before = encode.encoded
    with tally.stage("knowledge graph"):
        graph = build_knowledge_graph(chunks, facts, config, encode)
        graph.save(aside / KNOWLEDGE_GRAPH)
    tally.counts |= graph.counts()
    tally.new["entities"] = encode.encoded - before


def _extract(build: _Build, kind: str, aside: Path, tally: Tally, chunks: Sequence[Chunk]) -> list[Any]:
    """The value of each chunk; what was extracted before is not extracted again."""
    with tally.stage(kind):
        extraction = build.extractors.cached(kind, build.journal, build.reuse.extractions(kind))
        outcomes = extraction(chunks)
        save_stored(aside, kind, extraction.stored(chunks))
    tally.new[kind] = extraction.extracted
    tally.add_outcomes(kind, chunks, outcomes)
    return [outcome.value for outcome in outcomes]


def _manifest(
    build: _Build, generation: str, tally: Tally, spending: Spending, files: dict[str, dict[str, Any]]
) -> Manifest:
    return Manifest(
        generation=generation,
        config=asdict(build.config),
        embedder={
            "name": build.embedder.name,
            "fingerprint": build.embedder.fingerprint,
            "dimension": build.embedder.dimension,
        },
        extractors=build.extractors.fingerprints(),
        counts=tally.counts,
        seconds={stage: round(seconds, 3) for stage, seconds in tally.seconds.items()},
        files=files,
        qgrag=version("qgrag"),
        usage=sum_usages(build.reuse.usage, spending.stopped, spending.run),
        extraction=tally.extraction,
    )


def _emptied(folder: Path) -> Path:
    """A snapshot folder without what a build left there that was killed before its manifest was written."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


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
