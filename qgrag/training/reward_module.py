"""Training of the query-aware reward model (QMKGF, section 3.3)."""

from functools import cached_property
from typing import Any, Literal

import torch
from pytorch_lightning import LightningModule
from torch import Tensor

from qgrag.errors import ConfigError, InputError
from qgrag.models.embedder import EmbedderConfig, LocalEmbedder
from qgrag.models.reward import RewardConfig, RewardModel, pad_ragged
from qgrag.training.checks import check_checkpoint, check_finite, mark_checkpoint
from qgrag.training.optimizer import OptimizerConfig, make_optimizer
from qgrag.training.reward_batches import TextBatch, VectorBatch
from qgrag.training.reward_losses import RewardLoss, chance_choice, regret, reward_loss, top_choice
from qgrag.training.seeding import seed_step
from qgrag.training.text_encoder import TextEncoder, TextEncoderConfig

Encoding = Literal["cached", "frozen", "trained"]


class RewardModule(LightningModule):
    """Trains a `RewardModel` to prefer the subgraph that helps most.

    Validation logs `top1`, how often the best-scored subgraph is the most useful, beside `top1_cosine` (the
    subgraph whose mean triple vector is nearest to the query) and `top1_chance`, and `regret`, the reward lost by the
    choice; over questions whose subgraphs differ.

    Args:
        reward: shape of the model.
        encoder: the embedding model.
        encoding: `cached` looks vectors up that were made once; `frozen` and `trained` run the encoder in every
            step.
        loss: `regression`, `pairwise` or `listwise`.
        temperature: of `pairwise` and `listwise`.
        optimizer: learning rate and schedule.
        seed: of dropout.
    """

    def __init__(
        self,
        reward: RewardConfig = RewardConfig(),  # noqa: B008
        encoder: TextEncoderConfig = TextEncoderConfig(),  # noqa: B008
        encoding: Encoding = "cached",
        loss: RewardLoss = "listwise",
        temperature: float = 0.1,
        optimizer: OptimizerConfig = OptimizerConfig(),  # noqa: B008
        seed: int = 0,
    ) -> None:
        super().__init__()
        if encoding == "cached" and reward.items == "tokens":
            raise ConfigError("token states are not cached; set model.encoding to frozen or trained")
        if temperature <= 0:
            raise ConfigError(f"model.temperature has to be above 0, not {temperature}")
        self.loss, self.temperature = loss, temperature
        self.optimizer_config, self.seed = optimizer, seed
        self.model = RewardModel(reward)
        self.encoding, self.encoder_config = encoding, encoder
        if encoding != "cached":
            self.encoder = TextEncoder(encoder)
            self.encoder.requires_grad_(encoding == "trained")
            self.check_width(self.encoder.dimension)

    def check_width(self, dimension: int) -> None:
        """Raise ConfigError unless the model reads vectors of `dimension`."""
        if dimension != self.model.config.dimension:
            raise ConfigError(
                f"model.reward.dimension is {self.model.config.dimension}, but {self.encoder_config.model} gives "
                f"vectors of {dimension}"
            )

    @cached_property
    def embedder(self) -> LocalEmbedder:
        """The encoder as an index uses it, before training; its vectors are those that are cached."""
        c = self.encoder_config
        return LocalEmbedder(EmbedderConfig(c.model, query_prompt=c.query_prompt, passage_prompt=c.passage_prompt))

    def score(self, batch: VectorBatch | TextBatch) -> tuple[Tensor, VectorBatch]:
        """Scores [S] of a batch, and the batch as vectors."""
        vectors = batch if isinstance(batch, VectorBatch) else self._encode(batch)
        if len(vectors.labels.reward) == 0:
            raise InputError("a training batch holds no subgraph")
        return self.model(vectors.q, vectors.items, vectors.mask), vectors

    def _encode(self, batch: TextBatch) -> VectorBatch:
        with torch.set_grad_enabled(self.encoding == "trained" and torch.is_grad_enabled()):
            q = self.encoder(batch.queries)[batch.labels.question]
            if self.model.config.items == "tokens":
                items, mask = self.encoder.token_states(batch.texts)
            else:
                items, mask = pad_ragged(self.encoder(batch.texts), batch.ptr)
        return VectorBatch(q, items, mask, batch.labels)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        seed_step(self)
        if self.encoding == "frozen":
            self.encoder.eval()

    def training_step(self, batch: VectorBatch | TextBatch, batch_idx: int) -> Tensor:
        score, vectors = self.score(batch)
        reward, question = vectors.labels
        loss = reward_loss(self.loss, score, reward, question, self.temperature)
        check_finite(loss, self.global_step)
        questions = int(question[-1]) + 1
        self.log("train/loss", loss, prog_bar=True, batch_size=questions)
        self.log("train/top1", top_choice(score.detach(), reward, question).mean(), batch_size=questions)
        return loss

    def validation_step(self, batch: VectorBatch | TextBatch, batch_idx: int) -> None:
        self._evaluate(batch, "val")

    def test_step(self, batch: VectorBatch | TextBatch, batch_idx: int) -> None:
        self._evaluate(batch, "test")

    def _evaluate(self, batch: VectorBatch | TextBatch, name: str) -> None:
        score, vectors = self.score(batch)
        reward, question = vectors.labels
        cosine = cosine_scores(vectors)
        values = {
            "top1": top_choice(score, reward, question).mean(),
            "top1_cosine": top_choice(cosine, reward, question).mean(),
            "top1_chance": chance_choice(reward, question).mean(),
            "regret": regret(score, reward, question).mean(),
            "regret_cosine": regret(cosine, reward, question).mean(),
            "loss": reward_loss(self.loss, score, reward, question, self.temperature),
        }
        size = int(question[-1]) + 1
        self.log_dict({f"{name}/{key}": v for key, v in values.items()}, batch_size=size, sync_dist=True, on_epoch=True)

    def configure_optimizers(self) -> Any:
        steps = int(self.trainer.estimated_stepping_batches)
        return make_optimizer(self.named_parameters(), self.optimizer_config, steps)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        mark_checkpoint(checkpoint, "reward", self._architecture())

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        check_checkpoint(checkpoint, "reward", self._architecture(), self)

    def _architecture(self) -> str:
        c = self.model.config
        shape = f"{c.heads} heads of width {c.attention_width} over {c.items} of {c.dimension} dimensions, {c.scorer}"
        if self.encoding == "trained":
            return shape
        return f"{shape}, on vectors with fingerprint {self.embedder.fingerprint}"


def cosine_scores(batch: VectorBatch) -> Tensor:
    """Cosine of each query with the mean of its subgraph's items, float [S]."""
    total = batch.items.masked_fill(~batch.mask.unsqueeze(-1), 0).sum(1)
    return torch.nn.functional.cosine_similarity(batch.q, total, dim=1)
