"""Examples out of JSON lines: one value per line, and fields that hold texts."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from qgrag.errors import InputError
from qgrag.files import read_json_lines

T = TypeVar("T")


def read_lines(path: Path, parse: Callable[[dict[str, Any]], T]) -> list[T]:
    """One value per line that is not blank.

    Args:
        path: a UTF-8 file.
        parse: makes the value from a line's object; a ValueError of its own is reported with the line's number.

    Raises:
        InputError: names the file, the line and what is wrong with it; or the file has no line.
    """
    values = []
    for number, row in read_json_lines(path):
        try:
            values.append(parse(row))
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
    if not values:
        raise InputError(f"{path}: holds no example")
    return values


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
