"""The LiHua-World archive: chat records whose first line is the time that questions cite as evidence."""

import io
import re
import zipfile
import zlib
from pathlib import PurePosixPath

from qgrag.corpus.decoding import Unreadable, decode
from qgrag.corpus.readers.source import Entries, Entry, Rejection, Source
from qgrag.corpus.records import Document

MAX_MEMBER_BYTES = 64 * 2**20
_TIME = re.compile(r"^Time:[ \t]*(\d{8}_\d{2}:\d{2})[ \t]*\r?$", re.MULTILINE)
_NAME = re.compile(r"(\d{8}_\d{2})(\d{2})")
_BROKEN_MEMBER = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError)


def read_lihuaworld(source: Source) -> Entries:
    """Yield one document per chat record, by member name. Nothing is extracted to disk.

    The id, and metadata `time`, is `20260921_16:00`: from its line `Time:` or, without one, from its name.
    Metadata `folder` is the name of the folder in the archive.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(source.data))
    except zipfile.BadZipFile as error:
        raise Unreadable(f"not a readable zip archive: {error}") from error
    with archive:
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            if not info.is_dir():
                try:
                    content = _read_member(archive, info, source)
                except Unreadable as error:
                    place = f" ({error.location})" if error.location else ""
                    content = Rejection(error.reason + place)
                yield Entry(info.filename, content)


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, source: Source) -> Document | Rejection:
    path = PurePosixPath(info.filename.replace("\\", "/"))
    if path.suffix.lower() != ".txt" or path.name.startswith("."):
        return Rejection("not a chat record", "ignored")
    if path.is_absolute() or ".." in path.parts:
        raise Unreadable("the member's name leads out of the archive")
    if info.file_size > MAX_MEMBER_BYTES:
        raise Unreadable(f"{info.file_size} bytes unpacked, more than {MAX_MEMBER_BYTES} for one chat record")
    try:
        data = archive.read(info)
    except _BROKEN_MEMBER as error:
        raise Unreadable(f"cannot be unpacked: {error}") from error
    text = decode(data, source.encoding)
    time = _time(text, path.stem)
    metadata = {"source": f"{source.name}!{info.filename}", "time": time, "folder": path.parent.name}
    return Document(time, text, metadata=metadata)


def _time(text: str, stem: str) -> str:
    if line := _TIME.search(text):
        return line.group(1)
    if name := _NAME.fullmatch(stem):
        return f"{name.group(1)}:{name.group(2)}"
    raise Unreadable("no line 'Time: YYYYMMDD_HH:MM' and no such time in its name")
