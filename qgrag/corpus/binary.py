"""What kind of binary file some bytes are, so that nobody is told that a picture is badly encoded text."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"RIFF", "a RIFF file (WebP, WAV or AVI)"),
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a zip archive, or an Office document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document of the old format"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"\x80\x04\x95", "a pickle"),
    (b"ID3", "an MP3 file"),
    (b"OggS", "an Ogg file"),
    (b"fLaC", "a FLAC file"),
    (b"\x1aE\xdf\xa3", "a Matroska video"),
    (b"wOF2", "a font"),
    (b"\x00\x01\x00\x00\x00", "a font"),
)
_TEXT_CONTROLS = frozenset(b"\t\n\x0b\f\r\x1b")
_MAX_CONTROL_SHARE = 0.1
_HEAD_BYTES = 4096


def binary_kind(data: bytes) -> str:
    """What binary file `data` looks like; empty where it looks like text.

    It is for bytes that are no text in the expected encoding: a text may well begin as some binary files do.
    """
    for signature, kind in _SIGNATURES:
        if data.startswith(signature):
            return kind
    if data[4:8] == b"ftyp":
        return "an MP4 or HEIC file"
    head = data[:_HEAD_BYTES]
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in head)
    return "unknown kind" if controls > _MAX_CONTROL_SHARE * len(head) else ""
