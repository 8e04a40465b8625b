"""Documents out of JSON objects: which field is what."""

import json
from collections.abc import Mapping
from typing import Any

from qgrag.corpus.decoding import Unreadable

ID_FIELDS = ("id", "_id")
TITLE_FIELDS = ("title", "corpus_name")
TEXT_FIELDS = ("text", "context", "content")


def parse_json(text: str, first_line: int = 1) -> Any:
    """Parse JSON; `first_line` is the number of its first line in the file.

    Raises:
        Unreadable: with the line and column at which the text stops being JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Unreadable(
            f"broken JSON: {error.msg}", f"line {error.lineno + first_line - 1}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise Unreadable("JSON nested too deeply to be a document") from error


def text_field(record: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The value of the first of `names` that is there and not null; numbers become text.

    Raises:
        Unreadable: if that value is no string (nor number).
    """
    for name in names:
        value = record.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise Unreadable(f"field {name!r} is of type {type(value).__name__}; it must be a string")
        return str(value)
    return None


def require_text(record: Any) -> str:
    """The text of a JSON record.

    Raises:
        Unreadable: if `record` is no object or has no text field.
    """
    if not isinstance(record, dict):
        raise Unreadable(f"expected an object with a field 'text', found {type(record).__name__}")
    text = text_field(record, TEXT_FIELDS)
    if text is None:
        raise Unreadable(f"no field 'text'; the fields are {', '.join(map(repr, record)) or 'none'}")
    return text


def metadata_of(record: Mapping[str, Any], source: str) -> dict[str, str]:
    """The other fields: strings as they are, other values as JSON, nulls left out."""
    groups = (ID_FIELDS, TITLE_FIELDS, TEXT_FIELDS)
    known = {next((name for name in group if record.get(name) is not None), "") for group in groups}
    metadata = {"source": source}
    for name, value in record.items():
        if name not in known and value is not None:
            metadata[name] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return metadata
