"""A reward model on disk: `reward.json` says what it is, `model.safetensors` holds its weights. No pickle."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from qgrag.errors import ConfigError, ModelNotFoundError
from qgrag.files import whole_file

FORMAT = "qgrag-reward-model"
VERSION = 1
DESCRIPTION_FILE = "reward.json"
WEIGHTS_FILE = "model.safetensors"
DEFAULT_NAME = "reward-minilm"


@dataclass(frozen=True, slots=True)
class Encoder:
    """The embedding model whose vectors a reward model reads.

    Args:
        name: as in `EmbedderConfig.model`; empty where none was recorded.
        fingerprint: `Embedder.fingerprint`; empty where none was recorded.
    """

    name: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class RewardCheckpoint:
    """What a checkpoint folder holds.

    Args:
        config: fields of `RewardConfig`.
        weights: the model's state by name.
        encoder: whose vectors it was trained on.
    """

    config: Mapping[str, Any]
    weights: Mapping[str, Tensor]
    encoder: Encoder = field(default_factory=Encoder)


def default_checkpoint() -> Path:
    """Folder of the reward model that comes with the package.

    Raises:
        ModelNotFoundError: this installation carries none; the message says how to train one.
    """
    folder = Path(str(files("qgrag"))) / "checkpoints" / DEFAULT_NAME
    if not (folder / DESCRIPTION_FILE).is_file():
        raise ModelNotFoundError(
            f"{folder}: this installation carries no reward model; train one with "
            "'qgrag train reward fit --config configs/train/reward-triples.yaml' and name its folder"
        )
    return folder


def write_checkpoint(folder: Path, checkpoint: RewardCheckpoint) -> None:
    """Write both files into `folder`, which is made if missing; the description comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in checkpoint.weights.items()}
    description = {
        "format": FORMAT,
        "version": VERSION,
        "config": dict(checkpoint.config),
        "encoder": asdict(checkpoint.encoder),
    }
    with whole_file(folder / WEIGHTS_FILE) as aside:
        save_file(weights, str(aside))
    with whole_file(folder / DESCRIPTION_FILE) as aside:
        aside.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


def read_checkpoint(folder: Path) -> RewardCheckpoint:
    """Read what `write_checkpoint` wrote.

    Raises:
        ModelNotFoundError: no such folder, or one without a reward model.
        ConfigError: foreign, newer or damaged files.
    """
    path = folder / DESCRIPTION_FILE
    if not path.is_file():
        raise ModelNotFoundError(f"{folder}: holds no {DESCRIPTION_FILE}, so it is no reward model's folder")
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise ConfigError(f"{path}: not a reward model (its 'format' is not {FORMAT!r})")
    if not isinstance(description.get("version"), int) or description["version"] > VERSION:
        raise ConfigError(
            f"{path}: version {description.get('version')!r}, but this qgrag reads up to {VERSION}; upgrade qgrag"
        )
    config, encoder = description.get("config"), description.get("encoder")
    if not isinstance(config, dict) or not isinstance(encoder, dict) or encoder.keys() != {"name", "fingerprint"}:
        raise ConfigError(f"{path}: its 'config' or 'encoder' is damaged")
    try:
        weights = load_file(str(folder / WEIGHTS_FILE))
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"{folder / WEIGHTS_FILE}: cannot be read: {error}") from error
    return RewardCheckpoint(config, weights, Encoder(**encoder))
