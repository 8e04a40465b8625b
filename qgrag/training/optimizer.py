"""AdamW with a warm-up and a linear or constant schedule, for both modules."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from qgrag.errors import ConfigError


@dataclass(frozen=True)
class OptimizerConfig:
    """How weights are moved.

    Args:
        learning_rate: at its peak.
        weight_decay: of every weight but biases and normalisation layers.
        warmup: share of all steps in which the rate rises from 0.
        schedule: what it does then: `linear` falls to 0 at the last step, `constant` stays.
    """

    learning_rate: float = 1e-5
    weight_decay: float = 0.01
    warmup: float = 0.1
    schedule: Literal["linear", "constant"] = "linear"

    def __post_init__(self) -> None:
        if self.learning_rate <= 0 or self.weight_decay < 0 or not 0 <= self.warmup < 1:
            raise ConfigError(
                "optimizer: learning_rate must be above 0, weight_decay at least 0 and warmup from 0 to below 1, "
                f"not {self.learning_rate}, {self.weight_decay} and {self.warmup}"
            )


def make_optimizer(
    parameters: Iterable[tuple[str, nn.Parameter]], config: OptimizerConfig, steps: int
) -> dict[str, Any]:
    """What `LightningModule.configure_optimizers` returns.

    Args:
        parameters: named ones; those without gradients are left out.
        config: rates.
        steps: optimizer steps in the whole run.
    """
    trained = [(name, p) for name, p in parameters if p.requires_grad]
    groups = [
        {"params": [p for _, p in trained if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for _, p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=config.learning_rate)
    warm = round(config.warmup * steps)

    def rate(step: int) -> float:
        if step < warm:
            return (step + 1) / (warm + 1)
        return 1.0 if config.schedule == "constant" else max(0.0, (steps - step) / max(1, steps - warm))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}
