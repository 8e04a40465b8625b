import os
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest

from qgrag.corpus.readers import read_corpus
from qgrag.corpus.records import Document
from qgrag.index.builder import build_index
from qgrag.index.reader import Index
from qgrag.models.embedder import LocalEmbedder

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture(scope="session")
def demo_documents() -> list[Document]:
    from qgrag.demo import demo_path

    return list(read_corpus(demo_path()).documents)


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory, demo_documents, embedder) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "index"
    build_index(demo_documents, folder, embedder=embedder)
    return folder


@pytest.fixture(scope="session")
def demo_index(demo_folder, embedder) -> Index:
    return Index.open(demo_folder, embedder=embedder)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Published data sets, which are not part of the project: tests that want them are skipped where they are not."""
    folder = Path(os.environ.get("QGRAG_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"published data sets are not at {folder}; set QGRAG_DATA to their folder")
    return folder
