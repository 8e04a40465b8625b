"""PDF, through pypdf: one file, one document."""

import io
import struct
import zlib

from qgrag.corpus.decoding import Unreadable
from qgrag.corpus.readers.source import Entries, Entry, Source, import_extra
from qgrag.corpus.records import Document

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
    """A PDF's text, pages separated by a blank line; the title is the one in its properties."""
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
    document = Document(
        source.name,
        _join_surrogates("\n\n".join(pages)),
        _join_surrogates(str(title)),
        {"source": source.name, "pages": str(len(pages))},
    )
    yield Entry("", document)


def _join_surrogates(text: str) -> str:
    """Join the halves of surrogate pairs that fonts map glyphs to; replace those that have no other half."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
