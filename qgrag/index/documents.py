"""The documents and chunks of an index as tables, and what changed between two sets of documents."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from qgrag.corpus.records import Chunk, Document
from qgrag.corpus.searchable import is_blank
from qgrag.errors import IndexFormatError, InputError
from qgrag.index.storage import read_table, write_table

DOCUMENTS_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("title", pa.string()),
        ("text", pa.large_string()),
        ("metadata", pa.string()),
        ("content_hash", pa.string()),
        ("canonical", pa.int32()),
    ]
)
CHUNKS_SCHEMA = pa.schema(
    [
        ("document", pa.int32()),
        ("position", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("header", pa.string()),
    ]
)
"""`header` is empty for most chunks; it is not there in indexes whose chunks were made without headers."""


@dataclass(frozen=True)
class DocumentSet:
    """Documents sorted by id.

    Of documents with equal title and text the first by id is canonical: it alone has chunks.

    Args:
        documents: sorted by id.
        canonical: for each document the row of the canonical document with its content, itself for most.
    """

    documents: list[Document]
    canonical: list[int]

    @classmethod
    def of(cls, documents: Sequence[Document]) -> "DocumentSet":
        """Sort and group.

        Raises:
            InputError: two documents share an id, or one has no text.
        """
        ordered = sorted(documents, key=lambda document: document.id)
        for earlier, later in pairwise(ordered):
            if earlier.id == later.id:
                raise InputError(f"two documents have the id {later.id!r}; give each document its own id")
        for document in ordered:
            if is_blank(document.text):
                raise InputError(f"document {document.id!r} has no text; leave empty documents out")
        first: dict[str, int] = {}
        canonical = [first.setdefault(d.content_hash, row) for row, d in enumerate(ordered)]
        return cls(ordered, canonical)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Content hash by document id."""
        return {document.id: document.content_hash for document in self.documents}

    @cached_property
    def aliases(self) -> dict[int, tuple[str, ...]]:
        """Every id of each canonical row, the canonical id first."""
        groups: dict[int, list[str]] = {}
        for row, target in enumerate(self.canonical):
            groups.setdefault(target, []).append(self.documents[row].id)
        return {row: tuple(ids) for row, ids in groups.items()}

    @cached_property
    def unique(self) -> list[Document]:
        return [self.documents[row] for row in self.aliases]

    def save(self, path: Path) -> None:
        columns = {
            "id": [d.id for d in self.documents],
            "title": [d.title for d in self.documents],
            "text": [d.text for d in self.documents],
            "metadata": [json.dumps(dict(d.metadata), ensure_ascii=False, sort_keys=True) for d in self.documents],
            "content_hash": [d.content_hash for d in self.documents],
            "canonical": self.canonical,
        }
        write_table(path, columns, DOCUMENTS_SCHEMA)

    @classmethod
    def load(cls, path: Path) -> "DocumentSet":
        rows = read_table(path).to_pylist()
        documents = [Document(r["id"], r["text"], r["title"], json.loads(r["metadata"])) for r in rows]
        return cls(documents, [r["canonical"] for r in rows])


@dataclass(frozen=True, slots=True)
class Changes:
    """How a new set of documents differs from the indexed one, by id."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def compare(old: Mapping[str, str], new: Mapping[str, str]) -> Changes:
    """Compare content hashes by id."""
    common = old.keys() & new.keys()
    changed = tuple(sorted(id for id in common if old[id] != new[id]))
    return Changes(
        tuple(sorted(new.keys() - old.keys())),
        changed,
        tuple(sorted(old.keys() - new.keys())),
        len(common) - len(changed),
    )


def save_chunks(path: Path, chunks: Sequence[Chunk], documents: DocumentSet) -> None:
    row_of = {document.id: row for row, document in enumerate(documents.documents)}
    columns = {
        "document": [row_of[c.document_id] for c in chunks],
        "position": [c.position for c in chunks],
        "start": [c.start for c in chunks],
        "end": [c.end for c in chunks],
        "header": [c.header for c in chunks],
    }
    write_table(path, columns, CHUNKS_SCHEMA)


def load_chunks(path: Path, documents: DocumentSet) -> list[Chunk]:
    chunks = []
    for row in read_table(path).to_pylist():
        start, end = row["start"], row["end"]
        document = documents.documents[row["document"]] if 0 <= row["document"] < len(documents.documents) else None
        if document is None or not 0 <= start < end <= len(document.text):
            raise IndexFormatError(
                f"{path}: a chunk has characters {start} to {end} of document {row['document']}, which are not there; "
                "the file was changed, build the index again"
            )
        text, header = document.text[start:end], row.get("header", "")
        chunks.append(Chunk(document.id, row["position"], start, end, text, document.title, header))
    return chunks
