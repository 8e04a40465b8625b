"""QMKGF's query-aware reward model: how much a subgraph helps a query (section 3.3)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from qgrag.config import from_plain
from qgrag.errors import ConfigError, InputError
from qgrag.models.reward_checkpoint import Encoder, RewardCheckpoint, read_checkpoint, write_checkpoint

BLUR = 0.05
"""Two cosines this far apart differ by a factor e in the attention that an untrained `product` model gives them."""


@dataclass(frozen=True)
class RewardConfig:
    """Shape of a reward model.

    Args:
        dimension: d, width of the encoder's vectors.
        heads: h; has to divide `width`.
        width: of the attention space, all heads together; 0 takes `dimension`, as the paper does.
        dropout: of attention weights and of what they gather, while training.
        scorer: what the last linear layer reads. `linear`: the attended vector, as in the paper, so that the
            query acts through the attention weights alone. `product`: also its product with the projected
            query, and of each head the log of the sum that its softmax divides by: how much in the subgraph
            answers to the query, which a softmax hides.
        items: what a subgraph is to the model: vectors of its `triples`, or states of the `tokens` of its text.
    """

    dimension: int = 384
    heads: int = 8
    width: int = 0
    dropout: float = 0.1
    scorer: Literal["linear", "product"] = "linear"
    items: Literal["triples", "tokens"] = "triples"

    def __post_init__(self) -> None:
        if self.dimension < 1 or self.width < 0:
            raise ConfigError(
                f"reward: dimension must be at least 1 and width at least 0, not {self.dimension} and {self.width}"
            )
        if not 1 <= self.heads <= 64 or self.attention_width % self.heads:
            raise ConfigError(
                f"reward.heads must lie in 1 to 64 and divide the width {self.attention_width}, not {self.heads}"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"reward.dropout must be at least 0 and below 1, not {self.dropout}")

    @property
    def attention_width(self) -> int:
        return self.width or self.dimension


class RewardModel(nn.Module):
    """Multi-head attention of a query over the items of a subgraph, and a linear layer that makes the score.

    The paper writes a subgraph as one vector, over which a softmax is constant; here the keys and values are the
    subgraph's items: the vectors of its triples, or the token states of its serialised text.

    Args:
        config: shape of the model.
        encoder: whose vectors the model is made for.
    """

    def __init__(self, config: RewardConfig | None = None, encoder: Encoder | None = None) -> None:
        super().__init__()
        self.config = c = config or RewardConfig()
        self.encoder = encoder or Encoder()
        self.W_Q = nn.Linear(c.dimension, c.attention_width, bias=False)
        self.W_K = nn.Linear(c.dimension, c.attention_width, bias=False)
        self.W_V = nn.Linear(c.dimension, c.attention_width, bias=False)
        self.W_O = nn.Linear(c.attention_width, c.attention_width, bias=False)
        self.dropout = nn.Dropout(c.dropout)
        self.score = nn.Linear(c.attention_width if c.scorer == "linear" else 2 * c.attention_width + c.heads, 1)
        self._begin_as_similarity()

    def _begin_as_similarity(self) -> None:
        """Projections begin as the identity, so that training starts from the similarity that the encoder knows:
        attention by cosine, and with `product` a score that is the mean over heads of
        log sum_i exp(h cos_i / `BLUR`), a smooth maximum that grows with the number of good triples."""
        c = self.config
        with torch.no_grad():
            for projection in (self.W_Q, self.W_K, self.W_V, self.W_O):
                noise = 0.02 * torch.randn_like(projection.weight) / projection.in_features**0.5
                projection.weight.copy_(torch.eye(*projection.weight.shape) + noise)
            self.score.bias.zero_()
            if c.scorer == "product":
                self.W_K.weight *= c.heads / BLUR * (c.attention_width // c.heads) ** 0.5
                self.score.weight.zero_()
                self.score.weight[:, 2 * c.attention_width :] = BLUR / c.heads

    def attention(self, q: Tensor, items: Tensor, mask: Tensor) -> Tensor:
        """Weights of each head over the items (equation 7, scaled by the width of a head).

        Args:
            q: float [B, d], query vectors.
            items: float [B, n, d], padded; what stands in the padding does not matter.
            mask: bool [B, n], True for a real item.

        Returns:
            float [B, h, n], each row adding up to 1; all 0 for a subgraph without items.
        """
        return self._logits(self.W_Q(q), items, mask).softmax(-1).masked_fill(~mask.unsqueeze(1), 0)

    def _logits(self, projected: Tensor, items: Tensor, mask: Tensor) -> Tensor:
        """What the softmax of equation 7 takes, float [B, h, n], at its lowest in the padding."""
        K = self._heads(self.W_K(items.masked_fill(~mask.unsqueeze(-1), 0)))
        logits = torch.einsum("bhk,bnhk->bhn", self._heads(projected), K) / K.shape[-1] ** 0.5
        return logits.masked_fill(~mask.unsqueeze(1), torch.finfo(logits.dtype).min)

    def forward(self, q: Tensor, items: Tensor, mask: Tensor) -> Tensor:
        """Scores of B subgraphs for their queries.

        Args:
            q: float [B, d], query vectors.
            items: float [B, n, d], padded.
            mask: bool [B, n], True for a real item.

        Returns:
            float [B]; higher is better, and padding has no part in it. O(B n d width). In the precision of the
            weights, in mixed precision too: bfloat16 would round the scores of close subgraphs to one.

        Raises:
            InputError: the shapes do not fit, or the vectors come from an encoder of another width.
        """
        self._check(q, items, mask)
        dtype = self.W_Q.weight.dtype
        with torch.autocast(q.device.type, enabled=False):
            return self._score(q.to(dtype), items.to(dtype), mask)

    def _score(self, q: Tensor, items: Tensor, mask: Tensor) -> Tensor:
        Q = self.W_Q(q)
        V = self._heads(self.W_V(items.masked_fill(~mask.unsqueeze(-1), 0)))
        logits = self._logits(Q, items, mask)
        weights = self.dropout(logits.softmax(-1).masked_fill(~mask.unsqueeze(1), 0))
        attended = self.dropout(self.W_O(torch.einsum("bhn,bnhk->bhk", weights, V).flatten(1)))
        if self.config.scorer == "product":
            found = logits.logsumexp(-1).masked_fill(~mask.any(1, keepdim=True), 0)
            attended = torch.cat([attended, attended * Q, found], dim=1)
        return self.score(attended).squeeze(1)

    @torch.no_grad()
    def score_subgraphs(
        self, query_vectors: Tensor, triple_vectors: Tensor, ptr: Tensor, *, batch_size: int = 1024
    ) -> Tensor:
        """Scores of subgraphs given one after another, with dropout off.

        Args:
            query_vectors: float32 [B, d], the query of each subgraph.
            triple_vectors: float32 [M, d], items of all subgraphs.
            ptr: int64 [B + 1]; subgraph b has the items ptr[b] to ptr[b + 1] - 1.
            batch_size: subgraphs padded together; bounds memory.

        Returns:
            float32 [B] on the device of `query_vectors`; -inf for a subgraph without items, so that one with
            items is preferred to it.

        Raises:
            InputError: the shapes do not fit, or the vectors come from an encoder of another width.
        """
        if len(ptr) != len(query_vectors) + 1:
            raise InputError(f"{len(query_vectors)} queries need a ptr of {len(query_vectors) + 1}, not {len(ptr)}")
        training, device = self.training, self.W_Q.weight.device
        self.eval()
        parts = []
        for start in range(0, len(query_vectors), batch_size):
            piece = ptr[start : start + batch_size + 1]
            values = triple_vectors[int(piece[0]) : int(piece[-1])]
            items, mask = pad_ragged(values.to(device), (piece - piece[0]).to(device))
            scores = self(query_vectors[start : start + batch_size].to(device), items, mask)
            parts.append(scores.masked_fill(~mask.any(1), -torch.inf))
        self.train(training)
        return torch.cat(parts).to(query_vectors.device) if parts else query_vectors.new_empty(0)

    def save(self, folder: str | Path) -> None:
        """Write `reward.json` and `model.safetensors` into `folder`."""
        write_checkpoint(Path(folder), RewardCheckpoint(asdict(self.config), self.state_dict(), self.encoder))

    @classmethod
    def from_folder(cls, folder: str | Path, *, dimension: int | None = None) -> "RewardModel":
        """Load what `save` wrote, in evaluation mode on the CPU.

        Args:
            folder: a checkpoint's folder.
            dimension: width of the vectors that it is going to read, where known.

        Raises:
            ModelNotFoundError: the folder holds no reward model.
            ConfigError: damaged files, weights of another architecture, or an encoder of another width.
        """
        folder = Path(folder)
        checkpoint = read_checkpoint(folder)
        config = from_plain(RewardConfig, dict(checkpoint.config), where=str(folder))
        if dimension is not None and dimension != config.dimension:
            raise ConfigError(
                f"{folder}: reads vectors of {config.dimension} dimensions (encoder {checkpoint.encoder.name!r}), but "
                f"the embedding model gives {dimension}; train a reward model on that embedding model"
            )
        model = cls(config, checkpoint.encoder)
        load_weights(model, checkpoint.weights, str(folder))
        return model.eval()

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.config.heads, -1))

    def _check(self, q: Tensor, items: Tensor, mask: Tensor) -> None:
        d = self.config.dimension
        if q.shape[-1] != d or items.shape[-1] != d:
            raise InputError(
                f"this reward model reads vectors of {d} dimensions, but got queries of {q.shape[-1]} and items of "
                f"{items.shape[-1]}; use the encoder that it was trained on ({self.encoder.name or 'not recorded'})"
            )
        if q.shape[:1] != items.shape[:1] or mask.shape != items.shape[:2]:
            raise InputError(
                f"queries [B, d], items [B, n, d] and mask [B, n] do not fit: "
                f"{tuple(q.shape)}, {tuple(items.shape)} and {tuple(mask.shape)}"
            )


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Fill `model` with `weights`, which have to be exactly its own.

    Raises:
        ConfigError: a name is missing or unknown, or a shape differs.
    """
    own = model.state_dict()
    missing, unknown = sorted(own.keys() - weights.keys()), sorted(weights.keys() - own.keys())
    shapes = [n for n in own.keys() & weights.keys() if own[n].shape != weights[n].shape]
    if missing or unknown or shapes:
        found = [f"lacks {missing[0]!r}"] if missing else []
        found += [f"has {unknown[0]!r}, which the model does not know"] if unknown else []
        found += [
            f"{name!r} is {tuple(weights[name].shape)} where the model has {tuple(own[name].shape)}"
            for name in sorted(shapes)[:1]
        ]
        raise ConfigError(f"{where}: weights of another architecture: {'; '.join(found)}")
    model.load_state_dict(weights)


def pad_ragged(values: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """A ragged batch as a padded one.

    Args:
        values: float [M, d].
        ptr: int64 [B + 1], rising from 0 to M.

    Returns:
        float [B, n, d], 0 in the padding, and bool [B, n], True for a real item; n is the longest row, at least 1.
    """
    counts = ptr.diff()
    n = max(1, int(counts.max())) if len(counts) else 1
    mask = torch.arange(n, device=values.device) < counts.unsqueeze(1)
    padded = values.new_zeros(len(counts), n, values.shape[-1])
    padded[mask] = values
    return padded, mask
