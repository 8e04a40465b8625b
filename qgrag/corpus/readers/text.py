"""Plain text, reStructuredText and source code: one file, one document."""

import re
from pathlib import PurePosixPath

from qgrag.corpus.decoding import Unreadable, decode
from qgrag.corpus.readers.source import Entries, Entry, Source
from qgrag.corpus.records import Document

_SECTION = re.compile(r"^ ?(?P<title>\S[^\r\n]*?)[ \t]*\r?\n(?P<line>(?P<mark>[^\w\s])(?P=mark)*)[ \t]*\r?$", re.M)


def read_text(source: Source) -> Entries:
    """A text file without a title; its id is its relative path."""
    yield Entry("", Document(source.name, decode_text(source), metadata={"source": source.name}))


def read_code(source: Source) -> Entries:
    """Source code; its title is the name of its file."""
    title = PurePosixPath(source.name).name
    yield Entry("", Document(source.name, decode_text(source), title, {"source": source.name}))


def read_rst(source: Source) -> Entries:
    """A reStructuredText file; its title is that of its first section: a line with punctuation of its length below."""
    text = decode_text(source)
    titles = (m["title"] for m in _SECTION.finditer(text) if len(m["line"]) >= max(3, len(m["title"])))
    title = next((title for title in titles if any(map(str.isalnum, title))), "")
    yield Entry("", Document(source.name, text, title, {"source": source.name}))


def decode_text(source: Source) -> str:
    """The text of a file.

    Raises:
        Unreadable: the bytes are no text in the file's encoding, or hold a NUL character.
    """
    text = decode(source.data, source.encoding)
    zero = text.find("\x00")
    if zero >= 0:
        raise Unreadable(
            "NUL character: a binary file, or UTF-16 without a byte order mark (then name its encoding)",
            f"character {zero}",
        )
    return text
