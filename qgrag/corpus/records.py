"""The records that a corpus is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b


@dataclass(frozen=True, slots=True)
class Document:
    """One source text.

    Args:
        id: identity given by the user or the reader (a relative path, a data set's id); any characters.
        text: the text exactly as read; chunk spans are character offsets into it.
        title: a name for the document, empty if it has none. Part of what is embedded, not of `text`.
        metadata: string values carried through to hits (`source` holds the file that it came from).
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def content_hash(self) -> str:
        """32 hex digits over title and text: equal documents under two ids share it."""
        return text_key(f"{self.title}\x00{self.text}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A window of a document: `document.text[start:end] == text`.

    Its id is `{document_id}-{position}`, as in QCG-RAG's case study.

    Args:
        document_id: the document's id.
        position: number of the window in its document, from 0.
        start: first character of the window in the document's text.
        end: one past the last.
        text: the window's text.
        title: the document's title.
        header: header row of the table in whose rows the window starts, empty where it starts in none.
    """

    document_id: str
    position: int
    start: int
    end: int
    text: str
    title: str = ""
    header: str = ""

    @property
    def id(self) -> str:
        return f"{self.document_id}-{self.position}"

    @property
    def passage(self) -> str:
        """The text that is embedded and indexed: the title, where there is one, above `readable`."""
        return f"{self.title}\n{self.readable}" if self.title else self.readable

    @property
    def readable(self) -> str:
        """The chunk's text, below the header of the table that it continues."""
        return f"{self.header}\n{self.text}" if self.header else self.text


def text_key(text: str) -> str:
    """Content key of a text: 32 hex digits of BLAKE2b over its UTF-8 bytes."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
