import pytest

from qgrag.cli.main import main
from qgrag.corpus.records import Document
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.knowledge.build import KnowledgeGraphConfig
from qgrag.index.knowledge.entity_merge import EntityMergeConfig
from qgrag.index.reader import Index

TEXTS = {
    "a": "Barbara Liskov taught at the Massachusetts Institute of Technology. She met Alan Turing in London.",
    "b": "Barbara Liskow wrote a book on programs. Barbara Liskov read it in London.",
}


def config(**merge):
    return IndexConfig(query_graph=None, knowledge_graph=KnowledgeGraphConfig(merge=EntityMergeConfig(**merge)))


@pytest.fixture
def folder(tmp_path, embedder):
    build_index([Document(name, text) for name, text in TEXTS.items()], tmp_path / "index", config(), embedder=embedder)
    return tmp_path / "index"


def test_preview_names_what_a_build_would_merge_and_changes_nothing(folder, embedder, capsys):
    documents = [Document(name, text) for name, text in TEXTS.items()]
    before = (folder / "manifest.json").read_bytes()
    assert main(["merges", str(folder), "--similarity", "0.8"]) == 0
    printed = capsys.readouterr().out
    assert "Barbara Liskow" in printed
    assert "1 pairs would be merged" in printed
    assert (folder / "manifest.json").read_bytes() == before
    assert main(["merges", str(folder)]) == 0
    assert "0 names merged" in capsys.readouterr().out

    build_index(documents, folder, config(similarity=0.8), embedder=embedder)
    assert main(["merges", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "1 names merged" in printed
    assert "Barbara Liskow" in printed
    assert "Barbara Liskow" not in Index.open(folder, embedder=embedder).knowledge_graph.names

    build_index(
        documents, folder, config(similarity=0.8, apart=(("Barbara Liskow", "Barbara Liskov"),)), embedder=embedder
    )
    assert "Barbara Liskow" in Index.open(folder, embedder=embedder).knowledge_graph.names


def test_index_without_a_knowledge_graph_says_how_to_get_one(tmp_path, embedder, capsys):
    bare = IndexConfig(query_graph=None, knowledge_graph=None)
    build_index([Document("a", "Note.")], tmp_path / "index", bare, embedder=embedder)
    assert main(["merges", str(tmp_path / "index"), "--similarity", "0.9"]) == 2
    assert "knowledge_graph set" in capsys.readouterr().err
