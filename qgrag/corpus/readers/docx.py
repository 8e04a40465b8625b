"""DOCX, through python-docx: one file, one document."""

import io
import zipfile
from typing import Any

from qgrag.corpus.decoding import Unreadable
from qgrag.corpus.readers.source import Entries, Entry, Source, import_extra
from qgrag.corpus.records import Document


def read_docx(source: Source) -> Entries:
    """Paragraphs, and tables row by row, in the order of the document, one line for each."""
    docx = import_extra("docx", "python-docx")
    broken = (docx.opc.exceptions.OpcError, zipfile.BadZipFile, LookupError, OSError, SyntaxError, ValueError)
    try:
        document = docx.Document(io.BytesIO(source.data))
        lines = [line for block in document.iter_inner_content() for line in _lines(block)]
        title = document.core_properties.title or _first_heading(document)
    except broken as error:
        raise Unreadable(f"python-docx cannot read it: {error or type(error).__name__}") from error
    yield Entry("", Document(source.name, "\n".join(lines), title, {"source": source.name}))


def _lines(block: Any) -> list[str]:
    if hasattr(block, "rows"):
        return [" | ".join(cell.text for cell in row.cells) for row in block.rows]
    return [block.text]


def _first_heading(document: Any) -> str:
    styled = (
        p.text for p in document.paragraphs if p.style is not None and p.style.name.startswith(("Heading", "Title"))
    )
    return next(styled, "")
