"""What scores the subgraphs of QMKGF: a trained reward model, or cosine."""

import logging
from pathlib import Path
from typing import NamedTuple

from qgrag.errors import ConfigError, ModelNotFoundError
from qgrag.models.embedder import Embedder
from qgrag.models.reward import RewardModel
from qgrag.models.reward_checkpoint import default_checkpoint

logger = logging.getLogger(__name__)

AUTO = "auto"


class SubgraphScorer(NamedTuple):
    """The reward model, None for cosine, and how evidence calls it."""

    model: RewardModel | None
    name: str


COSINE = SubgraphScorer(None, "cosine")


def load_scorer(reward: str, embedder: Embedder) -> SubgraphScorer:
    """The scorer that a configuration names.

    Args:
        reward: folder of a trained reward model; `auto` for the one that comes with the package where it was
            trained on this embedder's vectors, and cosine where not; empty for cosine.
        embedder: whose vectors are scored.

    Raises:
        ModelNotFoundError: the folder holds no reward model.
        ConfigError: its files are damaged, or it reads other vectors than the embedder gives, or token states.
    """
    if not reward:
        return COSINE
    if reward == AUTO:
        return _shipped(embedder)
    model = RewardModel.from_folder(Path(reward), dimension=embedder.dimension)
    if model.config.items != "triples":
        raise ConfigError(
            f"{reward}: reads the {model.config.items} of a subgraph's text, but qmkgf has vectors of its triples; "
            "train one with items: triples, as in configs/train/reward-triples.yaml"
        )
    if model.encoder.fingerprint not in ("", embedder.fingerprint):
        logger.warning(
            "%s was trained on vectors of %r (fingerprint %s), but the index has those of %r (%s): its scores may "
            "mean little",
            reward,
            model.encoder.name,
            model.encoder.fingerprint,
            embedder.name,
            embedder.fingerprint,
        )
    return SubgraphScorer(model, f"reward model {reward}")


def _shipped(embedder: Embedder) -> SubgraphScorer:
    try:
        folder = default_checkpoint()
    except ModelNotFoundError:
        return SubgraphScorer(None, "cosine (no reward model came with this installation)")
    model = RewardModel.from_folder(folder)
    if model.encoder.fingerprint != embedder.fingerprint:
        return SubgraphScorer(None, f"cosine ({folder.name} was trained on vectors of another model)")
    return SubgraphScorer(model, f"reward model {folder.name}")
