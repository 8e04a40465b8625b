"""A JSON list of objects with `title` and `text`, on its own or as `documents` of an object."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from qgrag.corpus.decoding import Unreadable, decode
from qgrag.corpus.readers.fields import (
    ID_FIELDS,
    TITLE_FIELDS,
    metadata_of,
    parse_json,
    require_text,
    text_field,
)
from qgrag.corpus.readers.source import Entries, Entry, Rejection, Source
from qgrag.corpus.records import Document

WRAPPER = "documents"
"""Field of an object that holds the list."""


class UniqueNames:
    """Makes repeated names distinct: the second `Rose` becomes `Rose#2`, or has the next free number."""

    def __init__(self, names: Iterable[str]) -> None:
        self._taken = set(names)
        self._seen: Counter[str] = Counter()

    def __call__(self, name: str) -> str:
        self._seen[name] += 1
        if self._seen[name] == 1:
            return name
        while (unique := f"{name}#{self._seen[name]}") in self._taken:
            self._seen[name] += 1
        self._taken.add(unique)
        return unique


def read_json_list(source: Source) -> Entries:
    """Yield one document per object. Its id is its `id`, else its title (made unique), else its number."""
    records = parse_json(decode(source.data, source.encoding))
    if isinstance(records, dict):
        records = records[WRAPPER] if isinstance(records.get(WRAPPER), list) else [records]
    if not isinstance(records, list):
        raise Unreadable(f"expected a list of objects with a field 'text', found {type(records).__name__}")
    unique = UniqueNames(name for record in records if (name := _plain_title(record)))
    for number, record in enumerate(records):
        try:
            text = require_text(record)
            title = text_field(record, TITLE_FIELDS) or ""
            identity = text_field(record, ID_FIELDS)
            if identity is None:
                identity = unique(title) if title else str(number)
            document = Document(identity, text, title, metadata_of(record, source.name))
        except Unreadable as error:
            yield Entry(f"item {number}", Rejection(error.reason))
        else:
            yield Entry(f"item {number}", document)


def _plain_title(record: Any) -> str:
    title = next((record[name] for name in TITLE_FIELDS if name in record), "") if isinstance(record, dict) else ""
    return title if isinstance(title, str) else ""
