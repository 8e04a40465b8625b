import pytest

from qgrag.corpus.chunking import ChunkConfig, chunk_documents
from qgrag.corpus.records import Document
from qgrag.corpus.tables import header_above, tables
from qgrag.corpus.tokens import TokenizerSpans

MARKDOWN = "intro\n\n| name | year |\n| --- | --- |\n| A | 1 |\n| B | 2 |\n\nafter | it\n"
FENCED = "````\n| x | y |\n|---|---|\n| 1 | 2 |\n````\n"
ROWS = "text\nname | year\nA | 1\nB | 2\nafter"


@pytest.mark.parametrize(
    ("text", "row", "header"),
    [
        (MARKDOWN, "| B | 2 |", "| name | year |"),
        (MARKDOWN.replace("\n", "\r\n"), "| B | 2 |", "| name | year |"),
        ("name|year\n-|-\nA|1\nB|2", "B|2", "name|year"),
        (ROWS, "B | 2", "name | year"),
        (MARKDOWN, "| name", ""),
        (MARKDOWN, "after", ""),
        (FENCED, "| 1 |", ""),
        ("Home | About\ntext\nA | B\nC | D", "C | D", ""),
        ("x" * 501 + " | b\nA | 1\nB | 2", "B | 2", ""),
    ],
)
def test_the_header_above_a_row(text: str, row: str, header: str) -> None:
    assert header_above(tables(text), text.index(row)) == header


@pytest.mark.parametrize("head", ["| city | inhabitants |\n| --- | --- |\n", "city | inhabitants\n"])
def test_a_piece_of_a_table_carries_its_header_row(head: str, token_spans: TokenizerSpans) -> None:
    text = head + "".join(f"city {n} | {n}000\n" for n in range(60))
    chunks = chunk_documents([Document("d", text, "Cities")], ChunkConfig(tokens=60, overlap=0), token_spans)
    row = head.split("\n")[0]
    assert len(chunks) > 2
    assert [chunk.header for chunk in chunks] == ["", *[row] * (len(chunks) - 1)]
    for chunk in chunks:
        assert chunk.passage.startswith(f"Cities\n{row}")
        assert text[chunk.start : chunk.end] == chunk.text
