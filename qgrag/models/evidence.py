"""The evidence reward model: which candidates of a pool are evidence for a question, each seen beside the others.

Two parts read a candidate. Query-aware multi-head attention (QMKGF, section 3.3, equation 7, turned round: the tokens
of the question ask, the candidate's sentences answer) gives what the candidate says about each part of the question.
Features tell who found it, at which place, and how it relates to the question and to the candidates found first.
Layers of attention among the candidates of a pool then let a second hop be scored given the first: their biases come
from what one candidate says beside another.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from qgrag.errors import ConfigError


@dataclass(frozen=True)
class EvidenceConfig:
    """Shape of the evidence reward model.

    Args:
        candidate_features: F, numbers per candidate.
        question_features: G, numbers per question.
        pair_features: P, numbers per pair of candidates.
        text: `attention` reads vectors of the question's tokens and of the candidates' sentences; `none` reads the
            features alone, and so fits an index of any embedding model.
        dimension: d, width of these vectors.
        heads: of the attention over sentences.
        head_width: of each of them.
        width: of a candidate's state.
        layers: of attention among candidates; 0 scores each candidate by itself.
        pool_heads: of each such layer.
        dropout: of states and attention.
    """

    candidate_features: int = 1
    question_features: int = 1
    pair_features: int = 1
    text: Literal["attention", "none"] = "attention"
    dimension: int = 384
    heads: int = 8
    head_width: int = 32
    width: int = 96
    layers: int = 2
    pool_heads: int = 4
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("candidate_features", "dimension", "heads", "head_width", "width", "pool_heads"):
            if getattr(self, name) < 1:
                raise ConfigError(f"evidence.{name} must be at least 1, not {getattr(self, name)}")
        if self.layers < 0 or not 0 <= self.dropout < 1:
            raise ConfigError(
                f"evidence.layers must be 0 or more and dropout from 0 to below 1, not {self.layers}, {self.dropout}"
            )
        if self.width % self.pool_heads:
            raise ConfigError(f"evidence.width ({self.width}) must be a multiple of pool_heads ({self.pool_heads})")


class EvidenceInputs(NamedTuple):
    """What the model reads of B questions with K candidates each.

    Args:
        candidate: float32 [B, K, F].
        pair: float32 [B, K, K, P].
        question: float32 [B, G].
        mask: bool [B, K], True for a candidate.
        tokens: float32 [B, L, d], states of the question's tokens; None for a model of features alone.
        token_mask: bool [B, L].
        items: float32 [B, K, n, d], vectors of the candidates' sentences.
        item_mask: bool [B, K, n].
    """

    candidate: Tensor
    pair: Tensor
    question: Tensor
    mask: Tensor
    tokens: Tensor | None = None
    token_mask: Tensor | None = None
    items: Tensor | None = None
    item_mask: Tensor | None = None

    def with_text(self, tokens: Tensor, token_mask: Tensor, items: Tensor, item_mask: Tensor) -> "EvidenceInputs":
        """The same with the states of the question's tokens and the candidates' sentences."""
        return self._replace(tokens=tokens, token_mask=token_mask, items=items, item_mask=item_mask)

    def with_candidate(self, candidate: Tensor, question: Tensor | None = None) -> "EvidenceInputs":
        """The same with other features of the candidates, and of the question where given."""
        return self._replace(candidate=candidate, question=self.question if question is None else question)


class SentenceAttention(nn.Module):
    """Multi-head attention of a question's tokens over a candidate's sentences.

    Each head has a projection of tokens and of sentences, begun alike, so that before training the logits are cosines.
    A token's match with a candidate is the highest cosine of a head over the candidate's sentences.
    """

    def __init__(self, config: EvidenceConfig) -> None:
        super().__init__()
        self.heads, inner = config.heads, config.heads * config.head_width
        self.W_Q = nn.Linear(config.dimension, inner, bias=False)
        self.W_K = nn.Linear(config.dimension, inner, bias=False)
        self.weigh = nn.Linear(config.dimension, config.heads)
        self.sharpness = nn.Parameter(torch.full((config.heads,), 2.0))
        with torch.no_grad():
            nn.init.orthogonal_(self.W_Q.weight)
            self.W_K.weight.copy_(self.W_Q.weight)
            self.weigh.weight.zero_()

    def forward(self, inputs: EvidenceInputs) -> tuple[Tensor, Tensor]:
        """Match of each token, float32 [B, K, L, h], and the tokens' weights, float32 [B, L, h], adding up to 1."""
        assert inputs.tokens is not None
        assert inputs.token_mask is not None
        assert inputs.items is not None
        assert inputs.item_mask is not None
        Q = self._projected(self.W_Q(inputs.tokens))
        K = self._projected(self.W_K(inputs.items))
        cosine = torch.einsum("blhe,bknhe->bklhn", Q, K)
        absent = ~inputs.item_mask[:, :, None, None, :]
        attention = (cosine * self.sharpness.exp()[:, None]).masked_fill(absent, -1e4).softmax(-1)
        match = (attention * cosine.masked_fill(absent, 0)).sum(-1)
        weight = self.weigh(inputs.tokens).masked_fill(~inputs.token_mask.unsqueeze(-1), -1e4).softmax(1)
        return match, weight

    def _projected(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(x.unflatten(-1, (self.heads, -1)), dim=-1)


class PoolLayer(nn.Module):
    """Attention among the candidates of a pool, biased by what is known of each pair, and a feed-forward step."""

    def __init__(self, width: int, heads: int, pair: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.bias = nn.Sequential(nn.Linear(pair, 2 * heads), nn.GELU(), nn.Linear(2 * heads, heads))
        self.carry = nn.Linear(pair, heads)
        self.out = nn.Linear(width + heads, width)
        self.feed = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(2 * width, width),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, pair: Tensor, mask: Tensor) -> Tensor:
        """Args: x float32 [B, K, w]; pair float32 [B, K, K, P]; mask bool [B, K]. Returns [B, K, w]."""
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in self.project(self.before(x)).chunk(3, -1))
        logits = torch.einsum("bihe,bjhe->bhij", q, k) / q.shape[-1] ** 0.5
        logits = logits + self.bias(pair).permute(0, 3, 1, 2)
        weight = self.dropout(logits.masked_fill(~mask[:, None, None, :], -1e4).softmax(-1))
        read = torch.einsum("bhij,bjhe->bihe", weight, v).flatten(-2)
        carried = torch.einsum("bhij,bijh->bih", weight, self.carry(pair))
        x = x + self.dropout(self.out(torch.cat([read, carried], -1)))
        return x + self.dropout(self.feed(x))


class EvidenceModel(nn.Module):
    """Scores the candidates of a pool together.

    Args:
        config: shape of the model.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, config: EvidenceConfig) -> None:
        super().__init__()
        self.config = c = config
        self.attention = SentenceAttention(c) if c.text == "attention" else None
        read = c.heads if c.text == "attention" else 0
        self.register_buffer("mean", torch.zeros(c.candidate_features))
        self.register_buffer("deviation", torch.ones(c.candidate_features))
        self.enter = nn.Sequential(
            nn.Linear(c.candidate_features + c.question_features + 2 * read, 2 * c.width),
            nn.GELU(),
            nn.Dropout(c.dropout),
            nn.Linear(2 * c.width, c.width),
        )
        pair = c.pair_features + read
        self.layers = nn.ModuleList(PoolLayer(c.width, c.pool_heads, pair, c.dropout) for _ in range(c.layers))
        self.leave = nn.Sequential(nn.LayerNorm(c.width), nn.Linear(c.width, 1))

    def forward(self, inputs: EvidenceInputs) -> Tensor:
        """Logits of 'this candidate is evidence', float32 [B, K]; -inf where there is no candidate."""
        mask, pair = inputs.mask, inputs.pair
        features = ((inputs.candidate - self.mean) / self.deviation).clamp(-5, 5)
        question = inputs.question.unsqueeze(1).expand(-1, mask.shape[1], -1)
        parts = [features, question]
        if self.attention is not None:
            match, weight = self.attention(inputs)
            said = torch.einsum("bklh,blh->bkh", match, weight)
            parts += [said, said - _mean_of(said, mask)]
            pair = torch.cat([pair, _beyond(match, weight)], -1)
        x = self.enter(torch.cat(parts, -1))
        for layer in self.layers:
            x = layer(x, pair, mask)
        return self.leave(x).squeeze(-1).masked_fill(~mask, -torch.inf)


def _mean_of(values: Tensor, mask: Tensor) -> Tensor:
    inside = mask.unsqueeze(-1)
    return values.masked_fill(~inside, 0).sum(1, keepdim=True) / inside.sum(1, keepdim=True).clamp(min=1)


def _beyond(match: Tensor, weight: Tensor) -> Tensor:
    """What column candidate says of the question that row candidate leaves open, float32 [B, K, K, h].

    Per head the sum over tokens of how much the column's match exceeds the row's, by the tokens' weights; a token at a
    time, so that memory is that of the result.
    """
    out = match.new_zeros(*match.shape[:2], match.shape[1], match.shape[3])
    for token in range(match.shape[2]):
        here = match[:, :, token]
        out = out + (here.unsqueeze(1) - here.unsqueeze(2)).clamp(min=0) * weight[:, token, None, None, :]
    return out
