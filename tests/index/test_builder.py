import multiprocessing
import subprocess
import sys
import time

import pytest
import torch

from qgrag.corpus.chunking import ChunkConfig
from qgrag.corpus.records import Document
from qgrag.errors import IndexFormatError, IndexLockedError, InputError
from qgrag.index import reuse
from qgrag.index.builder import _lock, build_index, plan_index
from qgrag.index.config import IndexConfig
from qgrag.index.query_graph import QueryGraphConfig
from qgrag.index.reader import Index
from qgrag.models.embedder import LocalEmbedder

QUERIES = ["Where was Mahler born?", "Which river crosses ten countries?"]


def same_index(a: Index, b: Index) -> None:
    """Assert that two indexes hold the same documents, chunks, graphs and vectors."""
    assert a.documents == b.documents
    assert a.chunks == b.chunks
    torch.testing.assert_close(a.passages.vectors, b.passages.vectors, atol=2e-6, rtol=0)
    torch.testing.assert_close(a.lexical.scores(QUERIES), b.lexical.scores(QUERIES))
    left, right = a.query_graph, b.query_graph
    assert left.keys == right.keys
    assert left.pairs.drop_columns("similarity") == right.pairs.drop_columns("similarity")
    torch.testing.assert_close(left.vectors.vectors, right.vectors.vectors, atol=2e-6, rtol=0)
    assert torch.equal(left.neighbours.index, right.neighbours.index)
    torch.testing.assert_close(left.neighbours.score, right.neighbours.score, atol=2e-6, rtol=0)
    assert a.manifest.counts == b.manifest.counts


def test_nothing_changed_does_no_work(notes, tmp_path, counting):
    build_index(notes, tmp_path / "i", embedder=counting)
    counting.seen.clear()
    before = (tmp_path / "i" / "manifest.json").read_bytes()
    report = build_index(list(reversed(notes)), tmp_path / "i", embedder=counting)
    assert not report.done
    assert counting.seen == []
    assert (tmp_path / "i" / "manifest.json").read_bytes() == before


def test_growing_processes_only_what_is_new_and_equals_a_fresh_build(notes, tmp_path, counting):
    changed = Document("people/euler", "Leonhard Euler lost his sight and still wrote hundreds of papers.", "Euler")
    target = [*notes[1:5], changed, Document("people/aaa", "Anton Bruckner taught in Vienna. He played the organ.")]
    build_index(notes, tmp_path / "grown", embedder=counting)
    counting.seen.clear()
    report = build_index(target, tmp_path / "grown", embedder=counting)
    assert report.changes.added == ("people/aaa",)
    assert report.changes.changed == ("people/euler",)
    assert report.changes.removed == ("rivers/rhine",)
    assert report.changes.unchanged == 4
    assert report.new["chunks"] == report.new["questions"] == report.new["facts"] == 2
    assert not [text for text in counting.seen if "Rhine" in text or "Danube" in text]

    build_index(target, tmp_path / "fresh", embedder=counting)
    grown, fresh = Index.open(tmp_path / "grown"), Index.open(tmp_path / "fresh")
    same_index(grown, fresh)
    assert grown.check() == []
    assert not any("Rhine" in key for key in grown.query_graph.pairs["sentence"].to_pylist() if "Basel" not in key)


def test_one_by_one_equals_at_once(notes, tmp_path, counting):
    for count in range(1, len(notes) + 1):
        build_index(notes[:count], tmp_path / "grown", embedder=counting)
    build_index(notes, tmp_path / "fresh", embedder=counting)
    same_index(Index.open(tmp_path / "grown"), Index.open(tmp_path / "fresh"))


def test_same_text_under_two_ids_is_embedded_once_and_citable_under_both(notes, tmp_path, counting):
    twin = Document("a/twin", notes[0].text, notes[0].title)
    build_index([*notes, twin], tmp_path / "i", embedder=counting)
    assert sum(text.endswith(twin.text) for text in counting.seen) == 1
    index = Index.open(tmp_path / "i")
    assert index.manifest.counts["duplicates"] == 1
    row = next(i for i, chunk in enumerate(index.chunks) if chunk.text == twin.text)
    assert index.document_ids[row] == ("a/twin", "rivers/rhine")

    build_index(notes, tmp_path / "i", embedder=counting)
    again = Index.open(tmp_path / "i")
    row = next(i for i, chunk in enumerate(again.chunks) if chunk.text == twin.text)
    assert again.document_ids[row] == ("rivers/rhine",)


@pytest.mark.parametrize("calls", [1, 2, 4])
def test_killed_run_resumes_without_repeating_finished_batches(notes, tmp_path, counting, monkeypatch, calls):
    monkeypatch.setattr(reuse, "VECTOR_BATCH", 5)
    counting.calls_left = calls
    with pytest.raises(KeyboardInterrupt):
        build_index(notes, tmp_path / "i", embedder=counting)
    assert not (tmp_path / "i" / "manifest.json").exists()
    with pytest.raises(IndexFormatError, match="first build has not finished"):
        Index.open(tmp_path / "i")
    finished = set(counting.seen)

    counting.seen.clear()
    counting.calls_left = 10**9
    build_index(notes, tmp_path / "i", embedder=counting)
    assert finished
    assert not finished & set(counting.seen)
    build_index(notes, tmp_path / "fresh", embedder=counting)
    same_index(Index.open(tmp_path / "i"), Index.open(tmp_path / "fresh"))
    assert not (tmp_path / "i" / ".journal").exists()


def test_failed_growth_leaves_the_old_index_whole(notes, tmp_path, counting):
    build_index(notes[:3], tmp_path / "i", embedder=counting)
    counting.calls_left = 0
    with pytest.raises(KeyboardInterrupt):
        build_index(notes, tmp_path / "i", embedder=counting)
    index = Index.open(tmp_path / "i")
    assert len(index.documents.documents) == 3
    assert index.check() == []


def test_reader_keeps_its_snapshot_while_the_index_grows(notes, tmp_path, counting):
    build_index(notes[:3], tmp_path / "i", embedder=counting)
    reader = Index.open(tmp_path / "i")
    vectors = reader.passages.vectors
    before = vectors.clone()
    build_index(notes, tmp_path / "i", embedder=counting)
    assert torch.equal(vectors, before)
    assert len(Index.open(tmp_path / "i").chunks) == len(notes)


def _hold_lock(folder, held, release):
    with _lock(folder):
        held.set()
        release.wait(30)


def test_second_writer_is_refused(notes, tmp_path, counting):
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    writer = context.Process(target=_hold_lock, args=(tmp_path / "i", held, release))
    writer.start()
    try:
        assert held.wait(60)
        with pytest.raises(IndexLockedError, match="another process is building"):
            build_index(notes, tmp_path / "i", embedder=counting)
    finally:
        release.set()
        writer.join()
    assert build_index(notes, tmp_path / "i", embedder=counting).done


def test_folder_with_other_things_is_refused(notes, tmp_path, counting):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(IndexFormatError, match=r"thesis\.txt"):
        build_index(notes, tmp_path, embedder=counting)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "no documents"),
        ([Document("a", "x"), Document("a", "y")], "two documents have the id 'a'"),
        ([Document("a", " \n")], "document 'a' has no text"),
    ],
)
def test_unusable_documents_are_named(documents, message, tmp_path, counting):
    with pytest.raises(InputError, match=message):
        build_index(documents, tmp_path / "i", embedder=counting)


def test_plan_says_what_would_be_done_and_writes_nothing(notes, tmp_path, counting):
    plan = plan_index(notes, tmp_path / "i")
    assert (plan.chunks, plan.new_chunks, plan.duplicates) == (6, 6, 0)
    assert not (tmp_path / "i").exists()
    build_index(notes[:4], tmp_path / "i", embedder=counting)
    files = sorted(tmp_path.rglob("*"))
    plan = plan_index(notes[1:], tmp_path / "i")
    assert plan.new_chunks == 2
    assert plan.changes.removed == ("rivers/rhine",)
    assert sorted(tmp_path.rglob("*")) == files


def test_changed_configuration_rebuilds_and_reuses_vectors(notes, tmp_path, counting):
    build_index(notes, tmp_path / "i", embedder=counting)
    counting.seen.clear()
    config = IndexConfig(query_graph=QueryGraphConfig(alpha=0.4, neighbours=2))
    assert build_index(notes, tmp_path / "i", config, embedder=counting).done
    assert counting.seen == []
    build_index(notes, tmp_path / "fresh", config, embedder=counting)
    same_index(Index.open(tmp_path / "i"), Index.open(tmp_path / "fresh"))


def test_long_documents_have_several_chunks_with_exact_spans(tmp_path, counting):
    text = " ".join(f"Sentence number {i} tells of town {i}." for i in range(200))
    config = IndexConfig(chunks=ChunkConfig(tokens=60, overlap=10), query_graph=None, knowledge_graph=None)
    build_index([Document("long", text)], tmp_path / "i", config, embedder=counting)
    chunks = Index.open(tmp_path / "i").chunks
    assert len(chunks) > 20
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert [chunk.id for chunk in chunks[:2]] == ["long-0", "long-1"]


def test_ids_may_hold_any_character(tmp_path, counting):
    ids = ["../../etc/passwd", "a\nb", "点\u202e", "x" * 500, " ", "nul\x00"]
    documents = [Document(id, f"Text number {i} is about a lake.") for i, id in enumerate(ids)]
    build_index(documents, tmp_path / "i", IndexConfig(query_graph=None, knowledge_graph=None), embedder=counting)
    assert {d.id for d in Index.open(tmp_path / "i").documents.documents} == set(ids)
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


KILLED_BUILD = """
import sys
from qgrag.corpus.records import Document
from qgrag.index import reuse
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig

reuse.VECTOR_BATCH = 4
documents = [Document(str(i), f"Lighthouse {i} stands on cape {i}.") for i in range(400)]
build_index(documents, sys.argv[1], IndexConfig(query_graph=None, knowledge_graph=None))
"""


def test_a_process_killed_without_warning_leaves_batches_that_the_next_run_uses(tmp_path, counting):
    folder = tmp_path / "i"
    process = subprocess.Popen([sys.executable, "-c", KILLED_BUILD, str(folder)])
    deadline = time.monotonic() + 120
    while len(list(folder.glob(".journal/vectors-*"))) < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not (folder / "manifest.json").exists()
    done = 4 * len(list(folder.glob(".journal/vectors-*.parquet")))
    documents = [Document(str(i), f"Lighthouse {i} stands on cape {i}.") for i in range(400)]
    build_index(documents, folder, IndexConfig(query_graph=None, knowledge_graph=None), embedder=counting)
    assert len(counting.seen) == 400 - done
    assert Index.open(folder).check() == []


def test_chunks_that_are_reused_keep_the_header_of_their_table(tmp_path, counting):
    rows = "\n".join(f"| lake {i} | {i} metres |" for i in range(80))
    table = Document("lakes", f"| name | depth |\n| --- | --- |\n{rows}\n", "Lakes")
    config = IndexConfig(chunks=ChunkConfig(tokens=120, overlap=0), query_graph=None, knowledge_graph=None)
    build_index([table], tmp_path / "i", config, embedder=counting)
    before = Index.open(tmp_path / "i").chunks
    assert before[-1].header
    build_index([table, Document("other", "A short text.")], tmp_path / "i", config, embedder=counting)
    assert Index.open(tmp_path / "i").chunks[: len(before)] == before


def generations(folder):
    return sorted(path.name for path in folder.glob("g*"))


def test_an_open_index_keeps_its_files_across_updates_and_the_next_build_cleans_up(notes, tmp_path, counting):
    folder = tmp_path / "i"
    config = IndexConfig(query_graph=None, knowledge_graph=None)
    for count in (2, 3):
        build_index(notes[:count], folder, config, embedder=counting)
    assert generations(folder) == ["g000002"]
    reader = Index.open(folder, embedder=counting)
    twin = Index.open(folder, embedder=counting)
    for count in (4, 5):
        build_index(notes[:count], folder, config, embedder=counting)
    assert generations(folder) == ["g000002", "g000004"]
    assert len(reader.chunks) == len(reader.passages.vectors) == 3
    assert reader.check() == []
    reader.close()
    assert not build_index(notes[:5], folder, config, embedder=counting).done
    assert generations(folder) == ["g000002", "g000004"]
    del twin
    assert not build_index(notes[:5], folder, config, embedder=counting).done
    assert generations(folder) == ["g000004"]


class BrokenEmbedder(LocalEmbedder):
    """An embedder of a user's own, which gives no direction for one text."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def encode(self, texts, *, description="Embedding"):
        vectors = super().encode(texts, description=description)
        vectors[0] = self.value
        return vectors

    def encode_queries(self, queries):
        vectors = super().encode_queries(queries)
        vectors[-1] = self.value
        return vectors


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_vectors_of_a_custom_embedder_are_checked(notes, tmp_path, value):
    with pytest.raises(InputError, match=r"1 of \d+ vectors cannot be used, at positions 0 "):
        build_index(notes, tmp_path / "i", embedder=BrokenEmbedder(value))
    assert not (tmp_path / "i" / "manifest.json").exists()
