"""Plain text and Markdown: one file, one document."""

import re

from qgrag.corpus.decoding import Unreadable, decode
from qgrag.corpus.readers.source import Entries, Entry, Source
from qgrag.corpus.records import Document

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*\r?$", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", re.MULTILINE | re.DOTALL)


def read_text(source: Source) -> Entries:
    """A text file without a title; its id is its relative path."""
    yield Entry("", Document(source.name, _decode_text(source), metadata={"source": source.name}))


def read_markdown(source: Source) -> Entries:
    """A Markdown file; its title is its first heading outside of fenced code."""
    text = _decode_text(source)
    heading = _HEADING.search(_FENCE.sub("", text))
    title = heading.group(1).strip() if heading else ""
    yield Entry("", Document(source.name, text, title, {"source": source.name}))


def _decode_text(source: Source) -> str:
    text = decode(source.data, source.encoding)
    zero = text.find("\x00")
    if zero >= 0:
        raise Unreadable(
            "NUL character: a binary file, or UTF-16 without a byte order mark (then name its encoding)",
            f"character {zero}",
        )
    return text
