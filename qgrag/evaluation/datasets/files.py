"""Reading question files: every error names the file, the entry and the field."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgrag import files
from qgrag.errors import InputError


@dataclass(frozen=True, slots=True)
class Entry:
    """One JSON object of a question file, with the place it came from for error messages."""

    path: Path
    label: str
    values: Mapping[str, Any]

    def error(self, field: str, problem: str) -> InputError:
        return InputError(f"{self.path}, {self.label}: field {field!r} {problem}")

    def get(self, field: str, kind: type, description: str) -> Any:
        """The value of a field that has to be there and of this JSON type."""
        if field not in self.values:
            raise self.error(field, f"is missing; it has to hold {description}")
        value = self.values[field]
        if not isinstance(value, kind):
            raise self.error(field, f"has to hold {description}, not {value!r}")
        return value

    def text(self, field: str) -> str:
        """A string with something in it."""
        value: str = self.get(field, str, "a text")
        if not value.strip():
            raise self.error(field, "is empty")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        """A list of strings."""
        values = self.get(field, list, "a list of texts")
        for value in values:
            if not isinstance(value, str):
                raise self.error(field, f"has to hold a list of texts, but one of them is {value!r}")
        return tuple(values)

    def one_or_more_texts(self, field: str) -> tuple[str, ...]:
        """A string or a list of strings without the blank ones; nothing if the field is absent."""
        value = self.values.get(field)
        if value is None:
            return ()
        return tuple(text for text in ((value,) if isinstance(value, str) else self.texts(field)) if text.strip())

    def groups(self, field: str) -> tuple[tuple[str, ...], ...]:
        """A list of strings and of lists of strings; a string is a group of its own. No string is in two groups."""
        values = self.get(field, list, "a list of texts, or of lists of texts")
        groups: dict[tuple[str, ...], None] = {}
        for value in values:
            group = [value] if isinstance(value, str) else value
            if not isinstance(group, list) or not group or not all(isinstance(name, str) for name in group):
                raise self.error(field, f"has to hold texts and lists of texts, but one entry is {value!r}")
            groups[tuple(dict.fromkeys(group))] = None
        names = [name for group in groups for name in group]
        for name in names:
            if names.count(name) > 1:
                raise self.error(field, f"names {name!r} in two groups; a document can be in one group only")
        return tuple(groups)

    def entries(self, field: str) -> "Iterator[Entry]":
        """The objects of a list."""
        return entries(self.path, self.get(field, list, "a list of objects"), f"{self.label}, {field} ")


def entries(path: Path, values: Sequence[Any], label: str) -> Iterator[Entry]:
    """Each object of a JSON list as an `Entry`, labelled `{label}{position}` from 1.

    Raises:
        InputError: an item is not an object.
    """
    for position, value in enumerate(values, start=1):
        if not isinstance(value, Mapping):
            raise InputError(f"{path}, {label}{position}: expected an object, not {value!r}")
        yield Entry(path, f"{label}{position}", value)


def read_text(path: Path) -> str:
    """A question file's text: UTF-8, with or without a byte order mark.

    Raises:
        InputError: the file is missing or not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; name the file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start} ({error.reason})") from error


def read_json(path: Path, kind: type, description: str) -> Any:
    """A JSON file whose top level is of the given type.

    Raises:
        InputError: the file is missing, not UTF-8, not JSON, or of another shape.
    """
    try:
        value = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: not JSON at line {error.lineno}, column {error.colno} ({error.msg})") from error
    if not isinstance(value, kind):
        raise InputError(f"{path}: expected {description}, found a JSON {type(value).__name__}")
    return value


def read_json_lines(path: Path) -> Iterator[Entry]:
    """The objects of a JSON lines file; blank lines are passed over.

    Raises:
        InputError: the file is missing, not UTF-8, or a line is not a JSON object.
    """
    for number, value in files.read_json_lines(path):
        yield Entry(path, f"line {number}", value)


def find_file(folder: Path, patterns: Sequence[str], what: str, option: str) -> Path:
    """The file in `folder` that matches the first of `patterns` that any file matches.

    Args:
        folder: where to look; not below.
        patterns: names, or shell patterns.
        what: is sought, for the message.
        option: of the command line that names it instead, for the message.

    Raises:
        InputError: no file matches, or several match one pattern.
    """
    for pattern in patterns:
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise InputError(f"{folder}: expected one {what}, found {names}; name the file ({option})")
        if found:
            return found[0]
    raise InputError(f"{folder}: found no {what} (looked for {', '.join(patterns)}); name the file ({option})")


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder, over its files' relative paths and hashes in order of path."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    digest = hashlib.sha256()
    for file_path in sorted(p for p in path.rglob("*") if p.is_file()):
        name = file_path.relative_to(path).as_posix()
        digest.update(f"{name}\x00{sha256_of(file_path)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
