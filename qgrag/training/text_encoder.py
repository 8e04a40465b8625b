"""A sentence-transformers model that can be trained: texts to unit vectors with gradients, LoRA, and export."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from qgrag.errors import ConfigError
from qgrag.models.resolve import resolve_model

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Features = dict[str, Tensor]


@dataclass(frozen=True)
class LoRA:
    """Low-rank adapters in place of full training; merged into the weights on export.

    Args:
        rank: of each adapter.
        alpha: scale of the adapters; their output is multiplied by alpha / rank.
        dropout: before each adapter.
        target_modules: names of the layers that get one; empty: every linear layer.
    """

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    target_modules: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha <= 0 or not 0 <= self.dropout < 1:
            raise ConfigError(
                "lora: rank must be at least 1, alpha above 0 and dropout from 0 to below 1, "
                f"not {self.rank}, {self.alpha} and {self.dropout}"
            )


@dataclass(frozen=True)
class TextEncoderConfig:
    """The model to train, and what it reads.

    Args:
        model: a sentence-transformers folder or a plain transformer's (which gets mean pooling and
            normalisation), or a name that `resolve_model` finds.
        query_prompt: text put before each query.
        passage_prompt: text put before each passage.
        query_tokens: longest query in tokens, prompt included; the rest is cut off.
        passage_tokens: longest passage, likewise.
        lora: adapters; null trains all weights.
    """

    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    query_prompt: str = ""
    passage_prompt: str = ""
    query_tokens: int = 64
    passage_tokens: int = 256
    lora: LoRA | None = None

    def __post_init__(self) -> None:
        if self.query_tokens < 3 or self.passage_tokens < 3:
            raise ConfigError(
                f"encoder.query_tokens and passage_tokens must be at least 3, "
                f"not {self.query_tokens} and {self.passage_tokens}"
            )


class TextEncoder(nn.Module):
    """Tokenizer, transformer, pooling and normalisation.

    Args:
        config: the model and the lengths.

    Raises:
        ModelNotFoundError: see `resolve_model`.
        ConfigError: a length is above what the model can read.
    """

    def __init__(self, config: TextEncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = load_sentence_transformer(resolve_model(config.model))
        positions = getattr(self.transformer.config, "max_position_embeddings", None)
        longest = max(config.query_tokens, config.passage_tokens)
        if positions and longest > positions:
            raise ConfigError(f"encoder: {longest} tokens asked for, but {config.model} has {positions} positions")
        if config.lora is not None:
            first: Any = self.model[0]
            first.model = with_adapters(first.model, config.lora)
        for name, parameter in self.model.named_parameters():
            if "pooler" in name.split("."):
                parameter.requires_grad_(False)
        self.train()

    @property
    def transformer(self) -> Any:
        """The transformer alone, wrapped by its adapters where it has some."""
        first: Any = self.model[0]
        return first.auto_model

    @property
    def dimension(self) -> int:
        return int(self.model.get_embedding_dimension() or 0)

    def tokenize_queries(self, texts: Sequence[str]) -> Features:
        """Token ids and masks [B, n] of queries, prompts added, long ones cut."""
        return self._tokenize([self.config.query_prompt + text for text in texts], self.config.query_tokens)

    def tokenize_passages(self, texts: Sequence[str]) -> Features:
        return self._tokenize([self.config.passage_prompt + text for text in texts], self.config.passage_tokens)

    def _tokenize(self, texts: Sequence[str], longest: int) -> Features:
        encoded = self.model.tokenizer(
            list(texts), padding=True, truncation=True, max_length=longest, return_tensors="pt"
        )
        return dict(encoded)

    def forward(self, features: Features, mini_batch: int = 0) -> Tensor:
        """Unit vectors, float [B, dimension].

        Args:
            features: as `tokenize_queries` and `tokenize_passages` give them.
            mini_batch: 0 encodes all at once. Otherwise so many texts at a time, each part's activations thrown
                away and computed again in the backward pass (gradient caching): the same gradients at the memory
                of one part, for a second forward pass.
        """
        size = len(features["input_ids"])
        if not mini_batch or size <= mini_batch or not torch.is_grad_enabled():
            return self._encode(features)
        parts = [
            checkpoint(self._encode, _shorten(features, start, start + mini_batch), use_reentrant=False)
            for start in range(0, size, mini_batch)
        ]
        return torch.cat(parts)

    def token_states(self, features: Features) -> tuple[Tensor, Tensor]:
        """States of all tokens, float [B, n, dimension], and which are real, bool [B, n]."""
        return self.model(dict(features))["token_embeddings"], features["attention_mask"].bool()

    def _encode(self, features: Features) -> Tensor:
        return nn.functional.normalize(self.model(dict(features))["sentence_embedding"], dim=-1)

    def merged(self) -> "SentenceTransformer":
        """The model as plain sentence-transformers loads it: on the CPU, in float32, adapters merged in.

        With adapters it is a copy, so that training can go on.
        """
        model = self.model
        if self.config.lora is not None:
            model = copy.deepcopy(model)
            first: Any = model[0]
            first.model = first.model.merge_and_unload()
        return model.to("cpu", torch.float32).eval()


def load_sentence_transformer(folder: Path) -> "SentenceTransformer":
    """The model in `folder`, on the CPU; a plain transformer gets mean pooling and normalisation."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    if not (folder / "modules.json").is_file():
        model.append(Normalize())
    return model


def with_adapters(transformer: Any, lora: LoRA) -> nn.Module:
    """A transformer with frozen weights and LoRA adapters.

    Raises:
        ConfigError: none of its layers has one of the names in `lora.target_modules`.
    """
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]
        lora_dropout=lora.dropout,
        target_modules=lora.target_modules or "all-linear",
        bias="none",
    )
    try:
        return get_peft_model(transformer, config)
    except ValueError as error:
        raise ConfigError(f"lora.target_modules: {error}") from error


def _shorten(features: Features, start: int, stop: int) -> Features:
    """Rows start to stop - 1, cut to the longest of them (padding is on the right)."""
    mask = features["attention_mask"][start:stop]
    filled = mask.any(0).nonzero()
    first, last = int(filled[0]), int(filled[-1]) + 1
    return {name: value[start:stop, first:last] for name, value in features.items()}
