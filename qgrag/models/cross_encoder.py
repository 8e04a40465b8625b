"""Cross-encoders: how well a text answers a query, read by one model together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from qgrag.corpus.chunking import split_texts
from qgrag.corpus.tokens import TokenizerSpans
from qgrag.errors import ConfigError
from qgrag.graph.segments import reduce_segments
from qgrag.models.embedder import pick_device
from qgrag.models.resolve import resolve_model

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


@dataclass(frozen=True)
class CrossEncoderConfig:
    """How (query, text) pairs are scored.

    Args:
        model: a local folder, or a name that `resolve_model` finds; a sequence classifier with one output.
        max_tokens: of query and text together, special tokens included.
        query_tokens: kept for the query; a text has the rest of `max_tokens`.
        window: what becomes of a text longer than that: `max` scores its windows and takes the best, `truncate` keeps
            the first, as the papers' code does.
        device: `auto`, or a torch device such as `cpu` or `cuda:1`.
        dtype: of weights and activations; scores are always float32.
        batch_size: pairs a forward pass.
    """

    model: str = "BAAI/bge-reranker-large"
    max_tokens: int = 512
    query_tokens: int = 64
    window: Literal["max", "truncate"] = "max"
    device: str = "auto"
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    batch_size: int = 32

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError("cross_encoder.model is empty; name a cross-encoder, such as BAAI/bge-reranker-base")
        if self.batch_size < 1 or self.query_tokens < 1:
            raise ConfigError(
                "cross_encoder.batch_size and query_tokens must be at least 1, "
                f"not {self.batch_size} and {self.query_tokens}"
            )
        if self.max_tokens < self.query_tokens + 8:
            raise ConfigError(
                f"cross_encoder.max_tokens must leave a text 8 tokens at least beside the query's {self.query_tokens}, "
                f"not {self.max_tokens}"
            )


class LocalCrossEncoder:
    """A sentence-transformers cross-encoder, run in this process.

    Raises:
        ModelNotFoundError: its weights are not there.
    """

    def __init__(self, config: CrossEncoderConfig | None = None) -> None:
        self.config = config or CrossEncoderConfig()
        self.folder = resolve_model(self.config.model)
        self.device = pick_device(self.config.device)

    @property
    def name(self) -> str:
        return self.config.model

    @cached_property
    def _model(self) -> "CrossEncoder":
        from sentence_transformers import CrossEncoder
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        model = CrossEncoder(
            str(self.folder), device=self.device, local_files_only=True, max_length=self.config.max_tokens
        )
        if model.num_labels != 1:
            raise ConfigError(
                f"{self.folder}: classifies into {model.num_labels} labels; a re-ranker needs a model with one output"
            )
        return model.to(getattr(torch, self.config.dtype)).eval()

    @cached_property
    def _token_spans(self) -> TokenizerSpans:
        return TokenizerSpans(self.folder)

    def score(self, queries: Sequence[str], texts: Sequence[str]) -> Tensor:
        """Logit of each pair (queries[i], texts[i]), float32 [n] on the CPU; higher is better.

        Pairs are sorted by length and scored in batches. Cost grows with the tokens of all pairs.
        """
        if not texts:
            return torch.empty(0)
        windows, owner = self._windows(texts)
        asked = self._shortened(queries)
        pairs = [(asked[i], window) for i, window in zip(owner.tolist(), windows, strict=True)]
        scores = self._model.predict(
            pairs,
            batch_size=self.config.batch_size,
            show_progress_bar=False,
            activation_fn=torch.nn.Identity(),
            convert_to_tensor=True,
        )
        return reduce_segments(scores.float().view(-1).cpu(), owner, len(texts), "max")

    def _windows(self, texts: Sequence[str]) -> tuple[list[str], Tensor]:
        """Windows of all texts in order, and the row of the text that each belongs to."""
        if self.config.window == "truncate":
            return list(texts), torch.arange(len(texts))
        room = self.config.max_tokens - self.config.query_tokens - 4
        spans = split_texts(texts, self._token_spans, room)
        windows = [[text[start:end] for start, end in parts] or [text] for text, parts in zip(texts, spans)]
        owner = torch.repeat_interleave(torch.tensor([len(parts) for parts in windows]))
        return [window for parts in windows for window in parts], owner

    def _shortened(self, queries: Sequence[str]) -> list[str]:
        """Queries cut to their share of the window, so that texts keep theirs."""
        distinct = list(dict.fromkeys(queries))
        spans = split_texts(distinct, self._token_spans, self.config.query_tokens)
        short = {query: query[: parts[0][1]] if parts else query for query, parts in zip(distinct, spans)}
        return [short[query] for query in queries]
