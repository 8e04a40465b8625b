"""Readers on input that no one meant for them: a document or a reason, never an exception of another package."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qgrag.corpus.readers import FORMATS, read_corpus
from qgrag.corpus.searchable import is_blank

PIECES = st.sampled_from(
    [
        *("# a\n", "---\n", "title: b\n", "| a | b |\n", "|---|---|\n", "```\n", "> ", "- ", "1. ", "=====\n"),
        *("<p>", "</p>", "<table><tr><td>", "<meta charset=hex>", "a,b\n", '"', ";", "\t", "{", "}", "[", ":", ","),
        *('"text": ', '"x"', '"documents": ', '"data": ', '"id": 1', "null", "\u200b", "\x00", "\r", "é", "字"),
        *("%PDF-1.4\n", "PK\x03\x04", "\ud83d"),
    ]
)
FIELDS = st.sampled_from(["id", "text", "content", "title", "documents", "data", "paragraphs", "x"])
TEXTS = st.lists(PIECES | st.text(max_size=8), max_size=14).map(lambda parts: "".join(parts).encode("utf-8", "replace"))
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "text", "content", "title", "documents", "data", "paragraphs", "x"]), part
        )
    ),
    max_leaves=12,
).map(lambda value: json.dumps(value).encode())


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=TEXTS | JSONS | st.binary(max_size=60))
def test_any_bytes_give_documents_or_reasons(tmp_path: Path, format: str, data: bytes) -> None:
    for module in ("pypdf", "docx", "bs4"):
        pytest.importorskip(module)
    (tmp_path / "a.md").write_bytes(data)
    report = read_corpus(tmp_path / "a.md", format=format, on_error="skip")
    assert all(not is_blank(document.text) for document in report.documents)
    assert len({document.id for document in report.documents}) == len(report.documents)
    assert not [problem for problem in report.problems if problem.reason.startswith("its reader failed")]


def test_a_damaged_docx_gives_a_document_or_a_reason(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    buffer = io.BytesIO()
    document = docx.Document()
    document.add_paragraph("text")
    document.save(buffer)
    whole = buffer.getvalue()
    for at in range(0, len(whole), max(1, len(whole) // 40)):
        (tmp_path / "a.docx").write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        report = read_corpus(tmp_path / "a.docx", format="docx", on_error="skip")
        assert len(report.documents) + len(report.problems) == 1
