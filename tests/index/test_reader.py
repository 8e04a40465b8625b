import json

import pytest

from qgrag.errors import IndexFormatError, MissingComponentError, UntrustedAddressError
from qgrag.index.builder import build_index
from qgrag.index.config import IndexConfig
from qgrag.index.documents import CHUNKS_SCHEMA
from qgrag.index.reader import Index
from qgrag.index.storage import checksums, read_table, read_tensors, write_table, write_tensors
from qgrag.models.embedder import EmbedderConfig, LocalEmbedder
from tests.llm.server import fail, serving


@pytest.fixture(scope="module")
def built(tmp_path_factory, shared_counting_embedder):
    from qgrag.corpus.records import Document

    folder = tmp_path_factory.mktemp("built") / "i"
    documents = [Document("a", "The Rhine flows through Basel."), Document("b", "Euler was born in Basel in 1707.")]
    build_index(documents, folder, IndexConfig(knowledge_graph=None), embedder=shared_counting_embedder)
    return folder


@pytest.fixture
def index_copy(built, tmp_path):
    import shutil

    shutil.copytree(built, tmp_path / "i")
    return tmp_path / "i"


def edit_manifest(folder, **values):
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def biggest_file(folder):
    return max(folder.rglob("*.safetensors"), key=lambda path: path.stat().st_size)


def test_torn_file_is_named(index_copy):
    path = biggest_file(index_copy)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(IndexFormatError, match=rf"{path.name}: \d+ bytes where the manifest says"):
        Index.open(index_copy)


def test_flipped_byte_is_named(index_copy):
    path = biggest_file(index_copy)
    data = bytearray(path.read_bytes())
    data[-50] ^= 1
    path.write_bytes(data)
    with pytest.raises(IndexFormatError, match=f"{path.name}: its checksum differs"):
        Index.open(index_copy)
    assert f"{path.name}: its checksum differs" in Index.open(index_copy, verify=False).check()[0]


def test_missing_file_is_named(index_copy):
    biggest_file(index_copy).unlink()
    with pytest.raises(IndexFormatError, match="missing; the index is incomplete"):
        Index.open(index_copy)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": "other"}, "not a qgrag index"),
        ({"version": 99}, "format version 99, but this qgrag reads up to 1; upgrade qgrag"),
        ({"generation": "../elsewhere"}, "not a plain folder name"),
        ({"files": {"../../secret": {"bytes": 1, "blake2b": ""}}}, "outside the index"),
        ({"files": {"/etc/passwd": {"bytes": 1, "blake2b": ""}}}, "outside the index"),
        ({"files": {"nul\0": {"bytes": 1, "blake2b": ""}}}, "no file's name"),
        ({"files": ["a"]}, "'files' has to be an object"),
        ({"files": {"a": {"blake2b": ""}}}, "needs 'bytes' and 'blake2b' for 'a'"),
        ({"generation": 7}, "'generation' 7 is not a plain folder name"),
        ({"config": 3}, "'config' has to be an object, not 3"),
        ({"config": {"chunks": {"tokens": "many"}}}, "'config' is damaged"),
        ({"embedder": {}}, "'embedder' has no usable 'name'"),
        ({"counts": {"chunks": -1}}, "'counts' holds -1"),
        ({"seconds": {"chunks": True}}, "'seconds' holds True"),
        ({"usage": {"step": 3}}, "'usage' holds 3"),
        ({"version": True}, "format version True"),
    ],
)
def test_foreign_newer_and_escaping_manifests_are_refused(index_copy, values, message):
    edit_manifest(index_copy, **values)
    with pytest.raises(IndexFormatError, match=message):
        Index.open(index_copy)


def test_damaged_manifest_is_named(index_copy):
    (index_copy / "manifest.json").write_text('{"format": "qgrag-ind')
    with pytest.raises(IndexFormatError, match=r"manifest\.json: cannot be read"):
        Index.open(index_copy)
    (index_copy / "manifest.json").write_text('{"format": "qgrag-index", "version": 1}')
    with pytest.raises(IndexFormatError, match=r"lacks .*counts"):
        Index.open(index_copy)


def test_no_index_says_how_to_make_one(tmp_path):
    with pytest.raises(IndexFormatError, match="qgrag index DOCS --out"):
        Index.open(tmp_path / "none")
    with pytest.raises(IndexFormatError, match="holds no manifest"):
        Index.open(tmp_path)


def test_other_embedding_model_is_refused_by_name(index_copy):
    other = LocalEmbedder(EmbedderConfig(window="max"))
    with pytest.raises(IndexFormatError, match=r"built with embedding model .*all-MiniLM-L6-v2.* fingerprint"):
        Index.open(index_copy, embedder=other)
    with pytest.raises(IndexFormatError, match=r"manifest\.json"):
        build_index(Index.open(index_copy).documents.documents, index_copy, embedder=other)


def test_part_that_was_left_out_is_named(built):
    with pytest.raises(MissingComponentError, match="knowledge_graph"):
        _ = Index.open(built).knowledge_graph


def test_checks_find_orphans(built):
    from dataclasses import replace

    graph = Index.open(built).query_graph
    assert graph.check(2) == []
    without = replace(graph, pairs=graph.pairs.slice(1))
    assert "belong to no chunk" in without.check(2)[0]
    assert any("of 1" in problem for problem in graph.check(1))


def test_index_survives_being_moved(index_copy, tmp_path):
    moved = index_copy.rename(tmp_path / "moved")
    assert Index.open(moved).check() == []


@pytest.mark.parametrize("content", ["[" * 200_000, '{"version": ' + "9" * 5000 + "}", "\0"])
def test_a_manifest_that_no_parser_takes_is_named(index_copy, content):
    (index_copy / "manifest.json").write_text(content)
    with pytest.raises(IndexFormatError, match=r"manifest\.json: cannot be read"):
        Index.open(index_copy)


def test_a_huge_manifest_is_not_read(index_copy):
    with (index_copy / "manifest.json").open("ab") as file:
        file.truncate(2**30)
    with pytest.raises(IndexFormatError, match="more than the 16777216"):
        Index.open(index_copy)


def test_links_and_files_that_are_not_listed_are_refused(index_copy, tmp_path):
    snapshot = next(index_copy.glob("g*"))
    extra = snapshot / "passages" / "vectors.faiss"
    extra.write_bytes(b"")
    with pytest.raises(IndexFormatError, match=r"vectors\.faiss: a link, or a file that the manifest does not list"):
        Index.open(index_copy, verify=False)
    extra.unlink()
    extra.symlink_to(tmp_path)
    with pytest.raises(IndexFormatError, match=r"vectors\.faiss: a link"):
        Index.open(index_copy, verify=False)
    extra.unlink()
    snapshot.rename(tmp_path / "elsewhere")
    snapshot.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IndexFormatError, match="no plain folder"):
        Index.open(index_copy)


def test_no_key_goes_to_an_address_that_only_the_index_names(index_copy, monkeypatch):
    manifest = json.loads((index_copy / "manifest.json").read_text())
    with serving(lambda call: fail(500)) as server:
        remote = {"model": "e", "base_url": server.url, "pace": {"max_retries": 0}}
        edit_manifest(index_copy, config={**manifest["config"], "remote_embedder": remote})
        monkeypatch.setenv("QGRAG_LLM_API_KEY", "secret")
        index = Index.open(index_copy)
        assert index.check() == []
        with pytest.raises(UntrustedAddressError, match=f"{server.url} .*set QGRAG_EMBEDDER_BASE_URL={server.url}"):
            _ = index.embedder
        assert server.calls == []
        monkeypatch.setenv("QGRAG_EMBEDDER_BASE_URL", server.url)
        Index.open(index_copy)
        assert [call.headers["authorization"] for call in server.calls] == ["Bearer secret"]


@pytest.mark.parametrize(
    ("file", "tensor", "part"),
    [
        ("query_graph/neighbours.safetensors", "index", "query_graph"),
        ("lexical/postings.safetensors", "text", "lexical"),
        ("lexical/postings.safetensors", "ptr", "lexical"),
    ],
)
def test_ids_that_lead_nowhere_are_refused(index_copy, file, tensor, part):
    snapshot = next(index_copy.glob("g*"))
    tensors = {name: values.clone() for name, values in read_tensors(snapshot / file).items()}
    tensors[tensor].view(-1)[-1] = 10**6
    write_tensors(snapshot / file, tensors)
    edit_manifest(index_copy, files=checksums(snapshot))
    with pytest.raises(IndexFormatError, match="changed, build the index again"):
        getattr(Index.open(index_copy), part)


def test_chunks_outside_their_documents_are_refused(index_copy):
    snapshot = next(index_copy.glob("g*"))
    for column, value in (("document", 9), ("end", 10**6), ("start", -1)):
        table = read_table(snapshot / "chunks.parquet").to_pydict()
        kept = list(table[column])
        table[column][0] = value
        write_table(snapshot / "chunks.parquet", table, CHUNKS_SCHEMA)
        edit_manifest(index_copy, files=checksums(snapshot))
        with pytest.raises(IndexFormatError, match="which are not there"):
            _ = Index.open(index_copy).chunks
        write_table(snapshot / "chunks.parquet", {**table, column: kept}, CHUNKS_SCHEMA)
