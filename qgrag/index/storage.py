"""Files of an index: written whole, read without pickle, never outside their folder."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qgrag.errors import IndexFormatError
from qgrag.files import whole_file

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor


def write_json(path: Path, value: Any) -> None:
    """Write UTF-8 JSON whole, so that a reader sees the old file or the new one."""
    with whole_file(path) as aside, aside.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=1, sort_keys=True)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise IndexFormatError(f"{path}: cannot be read: {error}") from error


def write_tensors(path: Path, tensors: "Mapping[str, Tensor]", metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors by name, the file whole or not at all."""
    from safetensors.torch import save_file

    with whole_file(path) as aside:
        save_file({name: t.contiguous() for name, t in tensors.items()}, str(aside), metadata=dict(metadata or {}))


def read_tensors(path: Path) -> "dict[str, Tensor]":
    """Tensors by name, backed by the file's memory map."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise IndexFormatError(f"{path}: cannot be read: {error}") from error


def write_table(path: Path, columns: Mapping[str, Any], schema: "pa.Schema") -> None:
    """Write a Parquet table whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with whole_file(path) as aside:
        pq.write_table(pa.table(dict(columns), schema=schema), aside, compression="zstd")


def read_table(path: Path) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, memory_map=True) as file:  # pq.read_table would import pyarrow.dataset, 0.2 s
            return file.read()
    except (OSError, pa.ArrowInvalid) as error:
        raise IndexFormatError(f"{path}: cannot be read: {error}") from error


def checksums(folder: Path) -> dict[str, dict[str, Any]]:
    """Size in bytes and BLAKE2b of every file under `folder`, by relative path with forward slashes."""
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "blake2b": file_digest(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def verify_files(folder: Path, expected: Mapping[str, Mapping[str, Any]], *, digests: bool) -> None:
    """Compare the files of `folder` with what the manifest says of them.

    Raises:
        IndexFormatError: names the first file that is missing, of another size, or (with `digests`) of other bytes;
            or one that the manifest does not list, or a link.
    """
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_dir() or name in expected):
            raise IndexFormatError(
                f"{path}: a link, or a file that the manifest does not list; the index was changed by hand, so remove "
                "it or build the index again"
            )
    for name, entry in expected.items():
        path = folder / name
        if not path.is_file():
            raise IndexFormatError(f"{path}: missing; the index is incomplete, build it again")
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise IndexFormatError(
                f"{path}: {size} bytes where the manifest says {entry['bytes']}; "
                "the file is torn, build the index again"
            )
        if digests and file_digest(path) != entry["blake2b"]:
            raise IndexFormatError(
                f"{path}: its checksum differs from the manifest's; the file was damaged, build the index again"
            )
