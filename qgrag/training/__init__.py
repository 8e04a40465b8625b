"""Lightning modules and data modules that train embedders and reward models."""

from typing import TYPE_CHECKING

from qgrag.lazy import lazy_names

if TYPE_CHECKING:
    from qgrag.training.contrastive import ContrastiveLoss, info_nce
    from qgrag.training.embedding_data import PairData
    from qgrag.training.embedding_module import EmbeddingModule
    from qgrag.training.export import export_embedding_model
    from qgrag.training.mining import MiningConfig, mine_hard_negatives
    from qgrag.training.optimizer import OptimizerConfig
    from qgrag.training.pairs import TrainingPair, read_pairs, write_pairs
    from qgrag.training.reward_data import SubgraphData
    from qgrag.training.reward_losses import reward_loss
    from qgrag.training.reward_module import RewardModule
    from qgrag.training.text_encoder import LoRA, TextEncoder, TextEncoderConfig

__all__ = [
    "ContrastiveLoss",
    "EmbeddingModule",
    "LoRA",
    "MiningConfig",
    "OptimizerConfig",
    "PairData",
    "RewardModule",
    "SubgraphData",
    "TextEncoder",
    "TextEncoderConfig",
    "TrainingPair",
    "export_embedding_model",
    "info_nce",
    "mine_hard_negatives",
    "read_pairs",
    "reward_loss",
    "write_pairs",
]

__getattr__ = lazy_names(
    __name__,
    {
        "contrastive": ["ContrastiveLoss", "info_nce"],
        "embedding_data": ["PairData"],
        "embedding_module": ["EmbeddingModule"],
        "export": ["export_embedding_model"],
        "mining": ["MiningConfig", "mine_hard_negatives"],
        "optimizer": ["OptimizerConfig"],
        "pairs": ["TrainingPair", "read_pairs", "write_pairs"],
        "reward_data": ["SubgraphData"],
        "reward_losses": ["reward_loss"],
        "reward_module": ["RewardModule"],
        "text_encoder": ["LoRA", "TextEncoder", "TextEncoderConfig"],
    },
)
