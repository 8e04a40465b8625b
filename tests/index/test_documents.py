import pyarrow as pa

from qgrag.corpus.records import Chunk, Document
from qgrag.index.documents import CHUNKS_SCHEMA, DocumentSet, load_chunks, save_chunks
from qgrag.index.storage import read_table, write_table

DOCUMENTS = DocumentSet.of([Document("a", "name | year\nA | 1\nB | 2", "T")])


def test_chunks_come_back_with_the_headers_of_their_tables(tmp_path):
    chunks = [Chunk("a", 0, 0, 17, "name | year\nA | 1", "T"), Chunk("a", 1, 18, 23, "B | 2", "T", "name | year")]
    save_chunks(tmp_path / "chunks.parquet", chunks, DOCUMENTS)
    assert load_chunks(tmp_path / "chunks.parquet", DOCUMENTS) == chunks
    assert chunks[1].passage == "T\nname | year\nB | 2"


def test_chunks_of_an_older_index_have_none(tmp_path):
    path = tmp_path / "chunks.parquet"
    schema = pa.schema([field for field in CHUNKS_SCHEMA if field.name != "header"])
    write_table(path, {"document": [0], "position": [0], "start": [18], "end": [23]}, schema)
    assert "header" not in read_table(path).column_names
    assert load_chunks(path, DOCUMENTS) == [Chunk("a", 0, 18, 23, "B | 2", "T")]
