"""JSON lines: each line is an object with `id` (or `_id`), `text` and, optionally, `title`."""

from qgrag.corpus.decoding import Unreadable, decode_lines
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


def read_json_lines(source: Source) -> Entries:
    """Yield one document per line; other fields become metadata. A bad line is rejected on its own."""
    for number, line in decode_lines(source.data, source.encoding):
        if isinstance(line, str) and not line.strip():
            continue
        try:
            if isinstance(line, Unreadable):
                raise line
            document = _document(line, number, source.name)
        except Unreadable as error:
            place = f"line {number}"
            if error.location:
                place = error.location if error.location.startswith("line") else f"{place}, {error.location}"
            yield Entry(place, Rejection(error.reason))
        else:
            yield Entry(f"line {number}", document)


def _document(line: str, number: int, name: str) -> Document:
    record = parse_json(line, number)
    text = require_text(record)
    identity = text_field(record, ID_FIELDS)
    if identity is None:
        raise Unreadable("no field 'id' (or '_id')")
    return Document(identity, text, text_field(record, TITLE_FIELDS) or "", metadata_of(record, name))
