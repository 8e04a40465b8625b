"""Training of the evidence reward model."""

from typing import Any, Literal

import torch
from pytorch_lightning import LightningModule
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.models.evidence import EvidenceConfig, EvidenceModel
from qgrag.training.checks import check_checkpoint, check_finite, mark_checkpoint
from qgrag.training.evidence_data import EvidenceBatch
from qgrag.training.evidence_pools import EvidencePools
from qgrag.training.optimizer import OptimizerConfig, make_optimizer
from qgrag.training.seeding import seed_step

TOP = 5


class EvidenceModule(LightningModule):
    """Trains an `EvidenceModel` on pools with gold.

    The loss is listwise, the cross entropy between the softmax over a pool and equal shares for its gold candidates,
    plus `calibration` times the binary cross entropy of each candidate, by which the logits become probabilities;
    pools without gold have a part in the second alone. Validation logs `recall` and `all_evidence`, over candidates, at
    5, as the mean over the files.

    Args:
        text: whether the model reads token states and sentences, which the pools must hold (`qgrag data evidence
            --text`).
        heads: of the attention over sentences.
        head_width: of each of them.
        width: of a candidate's state.
        layers: of attention among candidates.
        pool_heads: of each.
        dropout: of states and attention.
        calibration: weight of the binary cross entropy, per candidate.
        optimizer: learning rate and schedule.
        seed: of weights and dropout.
    """

    def __init__(
        self,
        text: Literal["attention", "none"] = "none",
        heads: int = 4,
        head_width: int = 32,
        width: int = 96,
        layers: int = 2,
        pool_heads: int = 4,
        dropout: float = 0.1,
        calibration: float = 0.1,
        optimizer: OptimizerConfig = OptimizerConfig(learning_rate=1e-3, weight_decay=0.02),  # noqa: B008
        seed: int = 0,
    ) -> None:
        super().__init__()
        if calibration < 0:
            raise ConfigError(f"model.calibration must be 0 or more, not {calibration}")
        self.shape: dict[str, Any] = {
            "text": text,
            "heads": heads,
            "head_width": head_width,
            "width": width,
            "layers": layers,
            "pool_heads": pool_heads,
            "dropout": dropout,
        }
        self.calibration, self.optimizer_config, self.seed = calibration, optimizer, seed
        self.model: EvidenceModel

    def configure_model(self) -> None:
        """The model as the pools need it, with the scale of the training pools' features."""
        if hasattr(self, "model"):
            return
        data: Any = self.trainer.datamodule  # type: ignore[attr-defined]
        first: EvidencePools = data.first
        if self.shape["text"] == "attention" and not first.has_text:
            raise ConfigError(
                "model.text is attention, but the pools hold no texts; draw them with qgrag data evidence --text"
            )
        torch.manual_seed(self.seed)
        dimension = first.items.shape[-1] if first.items is not None else EvidenceConfig.dimension
        config = EvidenceConfig(
            first.candidate.shape[-1], first.question.shape[-1], first.pair.shape[-1], dimension=dimension, **self.shape
        )
        self.model = EvidenceModel(config)
        if train := data.pools["train"]:
            values = torch.cat([pools.candidate[pools.mask].float() for pools in train])
            self.model.mean.copy_(values.mean(0))
            self.model.deviation.copy_(values.std(0, correction=0).clamp(min=1e-2))

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        seed_step(self)

    def training_step(self, batch: EvidenceBatch, batch_idx: int) -> Tensor:
        logits = self.model(batch.inputs)
        loss = evidence_loss(logits, batch.gold > 0, batch.inputs.mask, self.calibration)
        check_finite(loss, self.global_step)
        self.log("train/loss", loss, prog_bar=True, batch_size=len(batch.gold))
        return loss

    def validation_step(self, batch: EvidenceBatch, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._evaluate(batch, "val", dataloader_idx)

    def test_step(self, batch: EvidenceBatch, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._evaluate(batch, "test", dataloader_idx)

    def on_validation_epoch_start(self) -> None:
        self._recalls: dict[int, list[Tensor]] = {}

    def on_validation_epoch_end(self) -> None:
        self._log_means("val")

    def on_test_epoch_start(self) -> None:
        self._recalls = {}

    def on_test_epoch_end(self) -> None:
        self._log_means("test")

    def _evaluate(self, batch: EvidenceBatch, name: str, corpus: int) -> None:
        recall = pool_recall(self.model(batch.inputs), batch.gold, batch.wanted)
        self._recalls.setdefault(corpus, []).append(recall)

    def _log_means(self, name: str) -> None:
        """Mean recall of each file, and its mean over files."""
        means = []
        for corpus, parts in sorted(self._recalls.items()):
            recall = torch.cat(parts)
            own = torch.stack([recall.mean(), (recall >= 1).float().mean()])
            self.log(f"{name}/recall/{corpus}", own[0], sync_dist=True)
            self.log(f"{name}/all_evidence/{corpus}", own[1], sync_dist=True)
            means.append(own)
        if means:
            recall, everything = torch.stack(means).mean(0)
            self.log(f"{name}/recall", recall, prog_bar=True, sync_dist=True)
            self.log(f"{name}/all_evidence", everything, prog_bar=True, sync_dist=True)

    def configure_optimizers(self) -> Any:
        steps = int(self.trainer.estimated_stepping_batches)
        return make_optimizer(self.named_parameters(), self.optimizer_config, steps)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        mark_checkpoint(checkpoint, "evidence", str(self.model.config))

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        check_checkpoint(checkpoint, "evidence", str(self.model.config), self)


def evidence_loss(logits: Tensor, gold: Tensor, mask: Tensor, calibration: float) -> Tensor:
    """Listwise cross entropy over pools with gold, plus `calibration` times the binary one over all candidates.

    Args:
        logits: float [B, K], -inf in the padding.
        gold: bool [B, K].
        mask: bool [B, K].
        calibration: weight of the second.

    Returns:
        A scalar: mean over pools; the binary part is summed over a pool's candidates.
    """
    finite = logits.masked_fill(~mask, -1e4)
    share = gold.float()
    held = share.sum(1)
    listwise = -(finite.log_softmax(1) * share).sum(1) / held.clamp(min=1)
    listwise = listwise.sum() / (held > 0).sum().clamp(min=1)
    binary = torch.nn.functional.binary_cross_entropy_with_logits(finite.masked_fill(~mask, 0), share, reduction="none")
    return listwise + calibration * (binary * mask).sum(1).mean()


def pool_recall(logits: Tensor, gold: Tensor, wanted: Tensor, k: int = TOP) -> Tensor:
    """Share of each question's gold documents among its `k` best candidates, float32 [B].

    Args:
        logits: float [B, K].
        gold: int16 [B, K], numbers of gold documents from 1; 0 for none.
        wanted: int16 [B], gold documents in all.
        k: candidates that count.
    """
    best = logits.topk(min(k, logits.shape[1]), dim=1).indices
    numbers = gold.long().gather(1, best)
    found = torch.zeros(len(gold), int(wanted.max()) + 1, device=logits.device)
    found.scatter_(1, numbers, 1.0)
    return found[:, 1:].sum(1) / wanted.clamp(min=1)
