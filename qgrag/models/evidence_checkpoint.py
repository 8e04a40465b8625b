"""An evidence model on disk: `evidence.json` says what it is and reads, `model.safetensors` holds its weights."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from qgrag.config import from_plain
from qgrag.errors import ConfigError, ModelNotFoundError
from qgrag.files import whole_file
from qgrag.models.evidence import EvidenceConfig, EvidenceModel
from qgrag.models.reward import load_weights

FORMAT = "qgrag-evidence-model"
VERSION = 1
DESCRIPTION_FILE = "evidence.json"
WEIGHTS_FILE = "model.safetensors"


@dataclass(frozen=True)
class EvidenceCheckpoint:
    """A model with what it was trained to read.

    Args:
        model: in evaluation mode.
        members: names of the retrievers whose rankings made its pools, in the order of its features.
        features: names of the columns of `EvidenceInputs.candidate`.
        depth: chunks taken of each member.
        size: candidates of a pool, at most.
    """

    model: EvidenceModel
    members: tuple[str, ...]
    features: tuple[str, ...]
    depth: int
    size: int


def write_evidence_model(folder: Path, checkpoint: EvidenceCheckpoint) -> None:
    """Write both files into `folder`, made if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    described = {
        "format": FORMAT,
        "version": VERSION,
        "config": asdict(checkpoint.model.config),
        "members": list(checkpoint.members),
        "features": list(checkpoint.features),
        "depth": checkpoint.depth,
        "size": checkpoint.size,
    }
    weights = {name: value.detach().cpu().contiguous() for name, value in checkpoint.model.state_dict().items()}
    with whole_file(folder / WEIGHTS_FILE) as aside:
        save_file(weights, aside)
    with whole_file(folder / DESCRIPTION_FILE) as aside:
        aside.write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def read_evidence_model(folder: Path) -> EvidenceCheckpoint:
    """Load what `write_evidence_model` wrote, in evaluation mode on the CPU.

    Args:
        folder: of the checkpoint.

    Raises:
        ModelNotFoundError: the folder holds no evidence model.
        ConfigError: damaged files, or weights of another architecture.
    """
    path = folder / DESCRIPTION_FILE
    if not path.is_file():
        raise ModelNotFoundError(f"{folder}: no evidence model (it has no {DESCRIPTION_FILE})")
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        weights = load_file(folder / WEIGHTS_FILE)
    except (json.JSONDecodeError, UnicodeDecodeError, SafetensorError, OSError) as error:
        raise ConfigError(f"{folder}: cannot be read as an evidence model: {error}") from error
    if not isinstance(plain, dict) or (plain.get("format"), plain.get("version")) != (FORMAT, VERSION):
        raise ConfigError(f"{path}: is no evidence model of version {VERSION}")
    shape = plain.get("config")
    if not isinstance(shape, dict):
        raise ConfigError(f"{path}: config has to hold the model's shape, not {shape!r}")
    config = from_plain(EvidenceConfig, shape, where=str(path))
    named = {key: plain.get(key) for key in ("members", "features")}
    for key, value in named.items():
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise ConfigError(f"{path}: {key} has to be a list of names, not {value!r}")
    sizes = {key: plain.get(key) for key in ("depth", "size")}
    for key, number in sizes.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise ConfigError(f"{path}: {key} has to be a number of at least 1, not {number!r}")
    known = tuple(plain["features"])
    if len(known) != config.candidate_features:
        raise ConfigError(f"{path}: names {len(known)} features for a model of {config.candidate_features}")
    model = EvidenceModel(config)
    load_weights(model, weights, str(folder))
    return EvidenceCheckpoint(model.eval(), tuple(plain["members"]), known, plain["depth"], plain["size"])
