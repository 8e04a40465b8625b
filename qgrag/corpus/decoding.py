"""Bytes to text: byte order marks, a named encoding, and the offset of the byte that fails."""

import codecs
from collections.abc import Iterator

from qgrag.corpus.binary import binary_kind
from qgrag.errors import ConfigError

# The UTF-32 marks begin with the UTF-16 ones, so they are tried first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Unreadable(Exception):
    """Input that cannot be turned into text; carries the reason and the place."""

    def __init__(self, reason: str, location: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.location = location


def check_encoding(encoding: str | None) -> None:
    """Raise ConfigError if `encoding` names no codec for text that Python knows."""
    if encoding is None:
        return
    try:
        b"a".decode(encoding)
    except UnicodeError:
        return
    except LookupError as error:
        raise ConfigError(
            f"encoding {encoding!r} is unknown, or none of text; use a name such as 'utf-8' or 'gb18030'"
        ) from error


def find_encoding(data: bytes, encoding: str | None = None) -> tuple[str, int]:
    """The codec of `data` and the length of its byte order mark: the mark, else `encoding`, else UTF-8."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name, len(mark)
    return encoding or "utf-8", 0


def decode(data: bytes, encoding: str | None = None) -> str:
    """Decode a whole file strictly.

    Raises:
        Unreadable: naming the codec and the offset of the first byte that it refuses, or the kind of binary file.
    """
    name, skip = find_encoding(data, encoding)
    try:
        return _decode(data[skip:], name, skip)
    except Unreadable as error:
        if not skip and not _is_wide(name) and (kind := binary_kind(data)):
            raise Unreadable(f"a binary file ({kind}), not text", error.location) from error
        raise


def decode_lines(data: bytes, encoding: str | None = None) -> Iterator[tuple[int, str | Unreadable]]:
    """Yield (line number from 1, text or what is wrong with it) for every line that ends in a line feed.

    The other lines are decoded where one cannot be, except in UTF-16 and UTF-32, which are decoded as a whole.

    Raises:
        Unreadable: the file is a binary one, or is in UTF-16 or UTF-32 and cannot be decoded.
    """
    name, skip = find_encoding(data, encoding)
    if _is_wide(name):
        yield from enumerate(decode(data, encoding).split("\n"), start=1)
        return
    offset = skip
    for number, line in enumerate(data[skip:].split(b"\n"), start=1):
        try:
            yield number, _decode(line, name, offset)
        except Unreadable as error:
            if not skip and (kind := binary_kind(data)):
                raise Unreadable(f"a binary file ({kind}), not text", error.location) from error
            yield number, error
        offset += len(line) + 1


def _is_wide(name: str) -> bool:
    """Whether the codec gives characters two or four bytes, so that a line feed or a NUL byte says nothing."""
    return codecs.lookup(name).name.startswith(("utf-16", "utf-32"))


def _decode(data: bytes, name: str, offset: int) -> str:
    try:
        return data.decode(name)
    except UnicodeDecodeError as error:
        raise Unreadable(
            f"not {name}: {error.reason} (0x{data[error.start]:02x}); save it as UTF-8 or name its encoding",
            f"byte {offset + error.start}",
        ) from error
    except UnicodeError as error:  # some codecs, such as punycode, give no position
        raise Unreadable(f"not {name}: {error}; save it as UTF-8 or name its encoding") from error
