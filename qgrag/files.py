"""Files and folders that are there whole or not at all, and files of JSON lines."""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qgrag.errors import InputError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place beside `path` to write a file to; once the block has ended well, the file is on disk under its name.

    The file gets the mode that the umask allows, whatever wrote it. A block that fails leaves nothing behind. A device
    or a pipe at `path` is itself the place to write to.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    aside = path.with_name(f"{path.name}.partial")
    aside.unlink(missing_ok=True)
    mode = _new_file_mode(aside)
    try:
        yield aside
        aside.chmod(mode)
        sync(aside)
        aside.replace(path)
        sync(path.parent)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside `path` to write to; once the block has ended well, it is on disk under the name `path`.

    Its files get the mode that the umask allows, whatever wrote them. A block that fails leaves nothing behind.

    Raises:
        OSError: the block has ended and there is a file, or a folder with something in it, at `path`.
    """
    aside = path.with_name(f"{path.name}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    probe = aside / "mode"
    mode = _new_file_mode(probe)
    probe.unlink()
    try:
        yield aside
        for inner in aside.rglob("*"):
            if inner.is_file():
                inner.chmod(mode)
            sync(inner)
        sync(aside)
        aside.replace(path)
        sync(path.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def sync(path: Path) -> None:
    """Return once a file's content, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def json_object(text: str, where: str) -> dict[str, Any]:
    """The JSON object that a text holds.

    Args:
        text: one line of a file.
        where: the file and the line, for messages.

    Raises:
        InputError: it is no JSON, or no object.
    """
    try:
        value = json.loads(text.strip())
    except json.JSONDecodeError as error:
        raise InputError(f"{where}, column {error.colno}: not JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number of too many digits
        raise InputError(f"{where}: not JSON that can be read: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected an object, not {text.strip()[:80]}")
    return value


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number from 1, object) for every line of a UTF-8 file that is not blank.

    Raises:
        InputError: names the file, the line and what is wrong with it.
    """
    try:
        with path.open("rb") as file:
            for number, data in enumerate(file, start=1):
                where = f"{path}, line {number}"
                try:
                    line = data.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"{where}: not UTF-8 at byte {error.start} of the line; save it as UTF-8"
                    ) from error
                if line.strip():
                    yield number, json_object(line, where)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one object per line, the file whole or not at all; returns the number of lines.

    Raises:
        ValueError: a row holds a number that is not finite.
    """
    count = 0
    with whole_file(path) as aside, aside.open("wb") as file:
        for row in rows:
            file.write(_line(row))
            count += 1
    return count


def append_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add one object per line; they are on disk when this returns.

    Raises:
        ValueError: a row holds a number that is not finite.
    """
    lines = b"".join(map(_line, rows))
    with path.open("ab") as file:
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())


def _line(row: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 cannot carry and an escape can
        return json.dumps(row, allow_nan=False).encode() + b"\n"


def _new_file_mode(path: Path) -> int:
    """Make an empty file to see the mode that the umask gives."""
    path.touch(exist_ok=False)
    return path.stat().st_mode & 0o777
