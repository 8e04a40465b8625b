"""The file that says what an index is: `manifest.json`, the last thing that a build writes."""

from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from qgrag.errors import IndexFormatError
from qgrag.index.storage import read_json, write_json

FORMAT = "qgrag-index"
VERSION = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index holds and what made it.

    Args:
        generation: folder inside the index that holds the current files.
        config: the `IndexConfig` that built it, as nested plain values.
        embedder: `name`, `fingerprint` and `dimension` of the embedding model.
        extractors: fingerprint of what made the question-answer pairs and the facts, by kind.
        counts: documents, chunks, nodes, edges by name.
        seconds: time of each stage of the last build.
        usage: LLM calls and tokens by step, summed over all builds.
        extraction: what was counted in extracting from the chunks that are in the index (dropped, repaired), by kind.
        files: size and checksum of each file of the generation.
        qgrag: the version of the package that wrote it.
    """

    generation: str
    config: dict[str, Any]
    embedder: dict[str, Any]
    extractors: dict[str, str]
    counts: dict[str, int]
    seconds: dict[str, float]
    files: dict[str, dict[str, Any]]
    qgrag: str
    usage: dict[str, Any] = field(default_factory=dict)
    extraction: dict[str, dict[str, int]] = field(default_factory=dict)
    format: str = FORMAT
    version: int = VERSION


def write_manifest(folder: Path, manifest: Manifest) -> None:
    write_json(folder / MANIFEST, asdict(manifest))


def read_manifest(folder: Path) -> Manifest:
    """Read and check `folder/manifest.json`.

    Raises:
        IndexFormatError: no index there, a foreign or damaged manifest, or one of a newer format.
    """
    path = folder / MANIFEST
    if not folder.is_dir():
        raise IndexFormatError(f"{folder}: no such folder; build an index there with: qgrag index DOCS --out {folder}")
    if not path.is_file():
        raise IndexFormatError(
            f"{folder}: holds no {MANIFEST}, so it is no index, or one whose first build has not finished; "
            f"run: qgrag index DOCS --out {folder}"
        )
    raw = read_json(path)
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise IndexFormatError(f"{path}: not a qgrag index (its 'format' is not {FORMAT!r})")
    if not isinstance(raw.get("version"), int) or raw["version"] > VERSION:
        raise IndexFormatError(
            f"{path}: format version {raw.get('version')!r}, but this qgrag reads up to {VERSION}; upgrade qgrag"
        )
    missing = {f.name for f in fields(Manifest) if f.default_factory is MISSING} - set(raw)
    if missing:
        raise IndexFormatError(f"{path}: lacks {', '.join(sorted(missing))}; the manifest is damaged")
    if Path(raw["generation"]).name != raw["generation"]:
        raise IndexFormatError(f"{path}: 'generation' {raw['generation']!r} is not a plain folder name")
    return Manifest(**{f.name: raw[f.name] for f in fields(Manifest) if f.name in raw})
