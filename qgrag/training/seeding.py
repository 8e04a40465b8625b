"""Dropout that does not depend on where a run began."""

import torch
from pytorch_lightning import LightningModule


def seed_step(module: LightningModule) -> None:
    """Seed torch by the module's seed, the number of the batch and the process, so that a resumed run draws what
    an unbroken one draws."""
    batch = module.trainer.fit_loop.epoch_loop.total_batch_idx
    mixed = (int(module.seed) * 1_000_003 + batch) * 4099 + module.global_rank  # type: ignore[arg-type]
    torch.manual_seed(mixed % 2**63)
