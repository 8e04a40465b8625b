"""Fine-tuning of an embedding model (QMKGF, section 3.1, equation 1)."""

from typing import Any

import torch
import torch.distributed as dist
from pytorch_lightning import LightningModule
from pytorch_lightning.utilities.rank_zero import rank_zero_info
from torch import Tensor

from qgrag.errors import ConfigError, InputError
from qgrag.training.checks import check_checkpoint, check_finite, mark_checkpoint
from qgrag.training.collectives import gather_passages
from qgrag.training.contrastive import ContrastiveLoss, check_temperature, false_negatives, info_nce
from qgrag.training.embedding_data import PairData
from qgrag.training.optimizer import OptimizerConfig, make_optimizer
from qgrag.training.pair_batches import PairBatch
from qgrag.training.search_metrics import gold_ranks, search_metrics
from qgrag.training.search_set import SearchBatch
from qgrag.training.seeding import seed_step
from qgrag.training.text_encoder import TextEncoder, TextEncoderConfig

QUERIES, PASSAGES = range(2)


class EmbeddingModule(LightningModule):
    """Trains a `TextEncoder` by InfoNCE over the passages of the whole batch, on all processes.

    Args:
        encoder: the model, its prompts and lengths, LoRA.
        optimizer: learning rate and schedule.
        temperature: m of equation 1.
        mini_batch: texts encoded at a time (gradient caching), so that a batch may outgrow the memory; 0 for all
            at once.
        seed: of dropout.
    """

    def __init__(
        self,
        encoder: TextEncoderConfig = TextEncoderConfig(),  # noqa: B008
        optimizer: OptimizerConfig = OptimizerConfig(),  # noqa: B008
        temperature: float = 0.05,
        mini_batch: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.temperature = check_temperature(temperature)
        self.optimizer_config, self.mini_batch, self.seed = optimizer, mini_batch, seed
        self.encoder = TextEncoder(encoder)
        self._vectors: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def on_train_start(self) -> None:
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        if isinstance(data, PairData):
            total, own = data.batch_size * self.trainer.world_size, data.negatives
            rank_zero_info(
                f"each query meets up to {total - 1} positives of other queries and {total * own} given negatives "
                f"(batch {data.batch_size} on {self.trainer.world_size} process(es)); equal texts and documents among "
                "them are left out, train/negatives is what remains"
            )

    def on_train_batch_start(self, batch: PairBatch, batch_idx: int) -> None:
        seed_step(self)

    def training_step(self, batch: PairBatch, batch_idx: int) -> Tensor:
        result = self.contrast(batch)
        check_finite(result.loss, self.global_step)
        self.log("train/loss", result.loss, prog_bar=True)
        self.log("train/negatives", result.negatives)
        self.log("train/correct", result.correct)
        return result.loss

    def contrast(self, batch: PairBatch) -> ContrastiveLoss:
        """The loss of one batch against the passages of all processes."""
        if len(batch.positive) == 0:
            raise InputError("a training batch holds no query")
        q = self.encoder(batch.queries, self.mini_batch)
        d, keys, offset = gather_passages(self.encoder(batch.passages, self.mini_batch), batch.keys)
        return info_nce(q, d, batch.positive + offset, false_negatives(batch.known, keys), self.temperature)

    def validation_step(self, batch: SearchBatch, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._vectors.setdefault(dataloader_idx, []).append((batch.rows, self.encoder(batch.features).float()))

    def test_step(self, batch: SearchBatch, batch_idx: int, dataloader_idx: int = 0) -> None:
        self.validation_step(batch, batch_idx, dataloader_idx)

    def on_validation_epoch_end(self) -> None:
        self._log_search("val")

    def on_test_epoch_end(self) -> None:
        self._log_search("test")

    def _log_search(self, name: str) -> None:
        found, self._vectors = self._vectors, {}
        if self.trainer.sanity_checking or getattr(self.trainer, "fast_dev_run", False) or not found:
            return
        task = self.trainer.datamodule.task(name)  # type: ignore[attr-defined]
        q = _assemble(found.get(QUERIES, []), len(task.queries), self.encoder.dimension)
        d = _assemble(found.get(PASSAGES, []), len(task.passages), self.encoder.dimension)
        ranks = gold_ranks(q, d, task.query.to(q.device), task.passage.to(q.device))
        values = search_metrics(ranks, task.query)
        self.log_dict({f"{name}/{measure}": value for measure, value in values.items()}, sync_dist=False)

    def configure_optimizers(self) -> Any:
        steps = int(self.trainer.estimated_stepping_batches)
        return make_optimizer(self.named_parameters(), self.optimizer_config, steps)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        mark_checkpoint(checkpoint, "embedding", self._architecture())

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        check_checkpoint(checkpoint, "embedding", self._architecture(), self)

    def _architecture(self) -> str:
        lora = self.encoder.config.lora
        adapters = f" with LoRA of rank {lora.rank}" if lora else ""
        return f"{self.encoder.transformer.config.model_type} of {self.encoder.dimension} dimensions{adapters}"


def _assemble(parts: list[tuple[Tensor, Tensor]], size: int, dimension: int) -> Tensor:
    """Vectors float32 [size, dimension] of all processes in their order.

    Raises:
        ConfigError: some were not encoded.
    """
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        shares: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(shares, [(rows.cpu(), vectors.cpu()) for rows, vectors in parts])
        parts = [part for share in shares for part in share]
    out = torch.full((size, dimension), torch.nan)
    for rows, vectors in parts:
        out[rows.cpu()] = vectors.cpu()
    if out.isnan().any():
        raise ConfigError("not every text was encoded; leave trainer.limit_val_batches and limit_test_batches alone")
    return out
