"""PDF, through pypdf: one file, one document."""

import io
import re
import struct
import zlib

from qgrag.corpus.decoding import Unreadable
from qgrag.corpus.readers.source import Entries, Entry, Rejection, Source, import_extra
from qgrag.corpus.records import Document

MAX_UNMAPPED_SHARE = 0.1
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_UNMAPPED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ue000-\uf8ff\ufffd]|\(cid:\d+\)|/g(?:id)?\d{2,}")
_NO_TEXT_MAP = (
    "its fonts do not say which characters they draw; make the text readable by OCR, for example with ocrmypdf"
)
_BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


def read_pdf(source: Source) -> Entries:
    """A PDF's text, pages separated by a blank line; the title is the one in its properties.

    A page whose fonts do not say which characters they draw is rejected on its own, by its number from 1.
    """
    pypdf = import_extra("pypdf", "pypdf")
    broken = (pypdf.errors.PyPdfError, pypdf.errors.DependencyError, *_BROKEN)
    try:
        reader = pypdf.PdfReader(io.BytesIO(source.data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("encrypted; remove its password first")
        pages = [page.extract_text() for page in reader.pages]
        title = (reader.metadata.title if reader.metadata else None) or ""
    except broken as error:
        raise Unreadable(f"pypdf cannot read it: {error or type(error).__name__}") from error
    readable = [_join_surrogates(page) for page in pages]
    for number, page in enumerate(readable, start=1):
        if _is_unmapped(page):
            yield Entry(f"page {number}", Rejection(_NO_TEXT_MAP))
            readable[number - 1] = ""
    document = Document(
        source.name,
        "\n\n".join(_CONTROLS.sub("", page) for page in readable),
        _join_surrogates(str(title)),
        {"source": source.name, "pages": str(len(pages))},
    )
    yield Entry("", document)


def _is_unmapped(text: str) -> bool:
    """Whether so many characters are controls, private ones or placeholders that the rest is no text either."""
    visible = sum(not character.isspace() for character in text)
    return sum(map(len, _UNMAPPED.findall(text))) > MAX_UNMAPPED_SHARE * visible


def _join_surrogates(text: str) -> str:
    """Join the halves of surrogate pairs that fonts map glyphs to; replace those that have no other half."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
