"""JSON lines with errors that name the line."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from qgrag.errors import InputError

T = TypeVar("T")


def read_lines(path: Path, parse: Callable[[dict[str, Any]], T]) -> list[T]:
    """One value a line that is not blank.

    Args:
        path: a UTF-8 file.
        parse: makes the value from a line's object; a ValueError of its own is reported with the line's number.

    Raises:
        InputError: names the file, the line and what is wrong with it; or the file has no line.
    """
    values = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    values.append(_parse_line(line, parse, f"{path}, line {number}"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    if not values:
        raise InputError(f"{path}: holds no example")
    return values


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one object a line beside `path`, then rename; returns the number of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    count = 0
    with partial.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    partial.replace(path)
    return count


def text_field(row: Mapping[str, Any], name: str) -> str:
    """A text that is not blank; ValueError otherwise."""
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f'needs "{name}" with a text that is not blank, not {value!r}')
    return value


def texts_field(row: Mapping[str, Any], name: str, *, least: int = 0) -> tuple[str, ...]:
    """A list of texts, none of them blank; ValueError otherwise. A missing list is empty."""
    value = row.get(name, [])
    if not isinstance(value, list) or not all(isinstance(text, str) and text.strip() for text in value):
        raise ValueError(f'"{name}" has to be a list of texts that are not blank')
    if len(value) < least:
        raise ValueError(f'"{name}" needs at least {least} text')
    return tuple(value)


def _parse_line(line: str, parse: Callable[[dict[str, Any]], T], where: str) -> T:
    try:
        row = json.loads(line.strip())
    except json.JSONDecodeError as error:
        raise InputError(f"{where}, column {error.colno}: not JSON: {error.msg}") from error
    if not isinstance(row, dict):
        raise InputError(f"{where}: has to be an object, not a {type(row).__name__}")
    try:
        return parse(row)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error
