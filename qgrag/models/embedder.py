"""Texts to unit vectors, with texts longer than the model's window embedded in windows and pooled."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import Tensor

from qgrag.corpus.chunking import TokenSpans, split_texts
from qgrag.corpus.tokens import TokenizerSpans
from qgrag.errors import ConfigError
from qgrag.graph.segments import reduce_segments
from qgrag.models.resolve import resolve_model
from qgrag.models.vectors import checked_vectors
from qgrag.progress import progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

FINGERPRINT_SUFFIXES = {".json", ".safetensors", ".txt", ".model", ".bin"}


@dataclass(frozen=True)
class EmbedderConfig:
    """How texts become vectors.

    Args:
        model: a local folder, or a name that `resolve_model` finds.
        window: what becomes of a text longer than the model's window: `mean` or `max` pool its windows,
            `truncate` keeps the first window only, as the papers' code does.
        query_prompt: text put before each query.
        passage_prompt: text put before each window of a passage.
        device: `auto`, or a torch device such as `cpu` or `cuda:1`.
        dtype: weights and activations of the model; vectors are always float32.
        batch_size: windows per forward pass.
    """

    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    window: Literal["mean", "max", "truncate"] = "mean"
    query_prompt: str = ""
    passage_prompt: str = ""
    device: str = "auto"
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    batch_size: int = 64

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ConfigError(f"embedder.batch_size must be at least 1, not {self.batch_size}")


@dataclass(frozen=True)
class TokenStates:
    """States of the tokens of B texts, special tokens left out.

    Args:
        vectors: float32 [B, L, d], L2-normalised; 0 in the padding.
        mask: bool [B, L], True for a token.
    """

    vectors: Tensor
    mask: Tensor


class Embedder(Protocol):
    """What an index needs of an embedding model."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same text would get another vector."""
        ...

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Sequence[str], *, description: str = "Embedding") -> Tensor:
        """Vectors of passages, float32 [len(texts), dimension], L2-normalised, on the CPU."""
        ...

    def encode_queries(self, queries: Sequence[str]) -> Tensor:
        """Vectors of queries, same shape and type as `encode`."""
        ...


class LocalEmbedder:
    """A sentence-transformers model, or a plain transformer with mean pooling, run in this process."""

    def __init__(self, config: EmbedderConfig | None = None) -> None:
        self.config = config or EmbedderConfig()
        self.folder = resolve_model(self.config.model)
        self.device = pick_device(self.config.device)
        self._said: set[str] = set()

    @property
    def name(self) -> str:
        return self.config.model

    @cached_property
    def fingerprint(self) -> str:
        return f"{folder_fingerprint(self.folder)}-{self.config.window}-{self._prompt_key()}-{self.config.dtype}"

    @property
    def dimension(self) -> int:
        return int(self._model.get_embedding_dimension() or 0)

    @property
    def max_tokens(self) -> int:
        """Tokens of text that one window holds, special tokens and the passage prompt apart."""
        return self._room(self.config.passage_prompt)

    def _room(self, prompt: str) -> int:
        """Tokens that the window leaves for a text behind a prompt."""
        tokenizer = self._model.tokenizer
        limit = self._model.max_seq_length or tokenizer.model_max_length
        return int(limit) - tokenizer.num_special_tokens_to_add() - len(tokenizer.tokenize(prompt))

    @cached_property
    def _model(self) -> "SentenceTransformer":
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        model = SentenceTransformer(str(self.folder), device=self.device, local_files_only=True)
        return model.to(getattr(torch, self.config.dtype)).eval()

    def encode(self, texts: Sequence[str], *, description: str = "Embedding") -> Tensor:
        """See `Embedder.encode`. Cost grows with the number of tokens; windows are sorted by length."""
        if not texts:
            return torch.empty(0, self.dimension)
        windows, owner = self._windows(texts)
        if self.config.window == "truncate":
            self._say_what_is_cut(texts, "passages", self.config.passage_prompt)
        vectors = self._encode_windows([self.config.passage_prompt + w for w in windows], description)
        return torch.nn.functional.normalize(_pool(vectors, owner, len(texts), self.config.window), dim=1)

    def encode_queries(self, queries: Sequence[str]) -> Tensor:
        if not queries:
            return torch.empty(0, self.dimension)
        self._say_what_is_cut(queries, "queries", self.config.query_prompt)
        return self._encode_windows([self.config.query_prompt + q for q in queries], "Embedding queries")

    def _say_what_is_cut(self, texts: Sequence[str], kind: str, prompt: str) -> None:
        """Warn of texts beyond the window, once for each kind."""
        if kind in self._said:
            return
        room = self._room(prompt)
        long = [text for text in texts if len(text) > room]
        if not long:
            return
        tokens = self._model.tokenizer(long, add_special_tokens=False, verbose=False)["input_ids"]
        cut = sum(len(ids) > room for ids in tokens)
        if cut:
            self._said.add(kind)
            logger.warning(
                "%d of %d %s are longer than the %d tokens that %s reads; their ends are ignored (said once)",
                cut,
                len(texts),
                kind,
                room,
                self.name,
            )

    def encode_query_tokens(self, queries: Sequence[str], max_tokens: int = 64) -> TokenStates:
        """States of the tokens of each query before pooling, its prompt included, on the CPU.

        Args:
            queries: B texts.
            max_tokens: tokens kept of each.
        """
        texts = [self.config.query_prompt + query for query in queries]
        found: Any = self._model.encode(
            texts, batch_size=self.config.batch_size, output_value="token_embeddings", show_progress_bar=False
        )
        special = self._model.tokenizer.num_special_tokens_to_add() // 2
        rows = [states[special : len(states) - special][:max_tokens].float().cpu() for states in found]
        vectors = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True) if rows else torch.empty(0, 0, self.dimension)
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.long)
        mask = torch.arange(vectors.shape[1]) < lengths.unsqueeze(1)
        return TokenStates(torch.nn.functional.normalize(vectors, dim=-1), mask)

    def _windows(self, texts: Sequence[str]) -> tuple[list[str], Tensor]:
        """Windows of all texts in order, and the index of the text that each belongs to."""
        if self.config.window == "truncate":
            return list(texts), torch.arange(len(texts))
        spans = split_texts(texts, self._token_spans, self.max_tokens)
        windows = [[text[start:end] for start, end in parts] or [text] for text, parts in zip(texts, spans)]
        owner = torch.repeat_interleave(torch.tensor([len(parts) for parts in windows]))
        return [window for parts in windows for window in parts], owner

    @cached_property
    def _token_spans(self) -> TokenSpans:
        return TokenizerSpans(self.folder)

    def _encode_windows(self, texts: Sequence[str], description: str) -> Tensor:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]), reverse=True)
        parts = []
        step = self.config.batch_size * 8
        with progress(description, len(texts)) as bar:
            for start in range(0, len(order), step):
                batch = [texts[i] for i in order[start : start + step]]
                parts.append(
                    self._model.encode(
                        batch,
                        batch_size=self.config.batch_size,
                        convert_to_tensor=True,
                        normalize_embeddings=True,
                        show_progress_bar=False,
                    )
                    .float()
                    .cpu()
                )
                bar.advance(len(batch))
        out = torch.empty(len(texts), self.dimension)
        out[torch.tensor(order)] = torch.cat(parts)
        return checked_vectors(out, texts, self.name)

    def _prompt_key(self) -> str:
        prompts = f"{self.config.query_prompt}\x00{self.config.passage_prompt}"
        return hashlib.blake2b(prompts.encode(), digest_size=4).hexdigest()


def folder_fingerprint(folder: Path) -> str:
    """16 hex digits over the names and bytes of a model folder's weights, tokenizer and configuration."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in FINGERPRINT_SUFFIXES and path.name != "README.md":
            digest.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()


def pick_device(name: str) -> str:
    """`auto` becomes `cuda`, `mps` or `cpu`, whichever is there first; any other name has to be here.

    Raises:
        ConfigError: torch knows no such device, or this machine has none.
    """
    cuda = torch.cuda.device_count()
    mps = torch.backends.mps.is_available()
    if name == "auto":
        return "cuda" if cuda else "mps" if mps else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device {name!r} is unknown; use auto, cpu, cuda, cuda:1 or mps") from None
    here = {"cuda": cuda, "mps": int(mps)}
    if (device.index or 0) >= here.get(device.type, 1):
        raise ConfigError(f"device {name!r} is not on this machine; use auto or cpu")
    return str(device)


def _pool(vectors: Tensor, owner: Tensor, count: int, how: str) -> Tensor:
    """Window vectors [W, d] to text vectors [count, d] by mean or max over each text's windows."""
    if len(vectors) == count:
        return vectors
    return reduce_segments(vectors, owner, count, "max" if how == "max" else "mean")
