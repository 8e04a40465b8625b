"""Vectors from an OpenAI-compatible /v1/embeddings endpoint, under the same rules as a local model's."""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from qgrag.errors import ConfigError
from qgrag.llm.endpoint.faults import Fault
from qgrag.llm.endpoint.session import EndpointSession, OpenCall, OpenCalls, UnusableAnswerError
from qgrag.llm.errors import LLMUnavailableError
from qgrag.llm.tokens import estimate_tokens
from qgrag.models.remote_embedder_config import RemoteEmbedderConfig
from qgrag.models.vectors import bad_vectors, listed
from qgrag.progress import progress

PROBE = "dimension"
REMEDY = "check remote_embedder.model and remote_embedder.base_url, or use smaller chunks if a text is too long"


class RemoteEmbedder:
    """An `Embedder` over HTTP. Texts go as they are: what is too long for the model is the endpoint's to
    refuse."""

    def __init__(self, config: RemoteEmbedderConfig) -> None:
        if not config.model:
            raise ConfigError("remote_embedder.model is empty: name the embedding model that the endpoint serves")
        self.config = config
        self._session = EndpointSession(config.base_url, config.pace)
        self._dimension = 0

    @property
    def name(self) -> str:
        return self.config.model

    @cached_property
    def fingerprint(self) -> str:
        """Over the model's name, prompts and dimensions; the address does not count."""
        c = self.config
        parts = "\x00".join((c.model, c.query_prompt, c.passage_prompt, str(self.dimension)))
        return f"remote-{hashlib.blake2b(parts.encode(), digest_size=8).hexdigest()}"

    @cached_property
    def dimension(self) -> int:
        """Asked for with one short text, on first use."""
        return int(self._embed([PROBE], "Asking for the dimension").shape[1])

    def encode(self, texts: Sequence[str], *, description: str = "Embedding") -> Tensor:
        """See `Embedder.encode`.

        Raises:
            LLMUnavailableError: a batch could not be embedded, after all attempts.
        """
        return self._embed([self.config.passage_prompt + text for text in texts], description)

    def encode_queries(self, queries: Sequence[str]) -> Tensor:
        """See `Embedder.encode_queries`."""
        return self._embed([self.config.query_prompt + query for query in queries], "Embedding queries")

    def close(self) -> None:
        self._session.close()

    def _embed(self, texts: list[str], description: str) -> Tensor:
        if not texts:
            return torch.empty(0, self.dimension)
        size = self.config.batch_size
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        queue = iter(enumerate(batches))
        parts: dict[int, Tensor] = {}
        with progress(description, len(texts)) as bar:

            async def work(calls: OpenCalls) -> None:
                for number, batch in queue:
                    with calls.open(f"batch {number}") as call:
                        parts[number] = self._of_known_dimension(await self._request(batch, number * size, call))
                    bar.advance(len(batch))

            self._session.run(work, min(self.config.pace.concurrency, len(batches)))
        return torch.nn.functional.normalize(torch.cat([parts[n] for n in range(len(batches))]), dim=1)

    async def _request(self, batch: list[str], first: int, call: OpenCall) -> Tensor:
        """Vectors of one batch, float32 [len(batch), d], as the endpoint gave them; text `first` comes first."""

        async def attempt() -> Tensor:
            async with asyncio.timeout(self.config.pace.total_timeout):
                response = await self._session.client.embeddings.create(**self._body(batch))
            return _vectors(response, batch, first)

        sent = await self._session.send(attempt, sum(map(estimate_tokens, batch)), call)
        if sent.value is None:
            error = sent.fault.as_error(sent.attempts) if sent.fault else ""
            remedy = (sent.fault and sent.fault.remedy) or REMEDY
            raise LLMUnavailableError(f"embedding model {self.name!r} at {self._session.url}: {error}; {remedy}")
        return sent.value

    def _of_known_dimension(self, vectors: Tensor) -> Tensor:
        self._dimension = self._dimension or vectors.shape[1]
        if vectors.shape[1] != self._dimension:
            raise LLMUnavailableError(
                f"embedding model {self.name!r} at {self._session.url} gave vectors of {vectors.shape[1]} dimensions "
                f"after some of {self._dimension}; let it serve one model under this name"
            )
        return vectors

    def _body(self, batch: list[str]) -> dict[str, Any]:
        texts = [text.encode("utf-8", "replace").decode("utf-8") or " " for text in batch]
        body: dict[str, Any] = {"model": self.config.model, "input": texts, "encoding_format": "float"}
        if self.config.dimensions is not None:
            body["dimensions"] = self.config.dimensions
        return body


def _vectors(response: Any, texts: list[str], first: int) -> Tensor:
    data = getattr(response, "data", None)
    count = len(texts)
    if not isinstance(data, list) or len(data) != count:
        given = [getattr(item, "index", None) for item in data] if isinstance(data, list) else []
        there = range(len(given)) if None in given else given
        missing = [(i, "missing") for i in range(count) if i not in there]
        raise _unusable(f"the endpoint gave {len(given)} vectors for {count} texts: {listed(missing, texts, first)}")
    numbers = [getattr(item, "index", None) for item in data]
    if numbers == [None] * count:
        numbers = list(range(count))
    if sorted(map(repr, numbers)) != sorted(map(repr, range(count))):
        raise _unusable(f"the endpoint numbered {count} vectors as {str(numbers)[:80]}")
    embeddings = {number: getattr(item, "embedding", None) for number, item in zip(numbers, data)}
    missing = [(i, "missing") for i in range(count) if not embeddings[i]]
    if missing:
        raise _unusable(f"the endpoint gave no vector: {listed(missing, texts, first)}")
    try:
        vectors = torch.tensor([embeddings[i] for i in range(count)], dtype=torch.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _unusable(f"the endpoint gave no vectors of one length: {error}") from error
    if vectors.dim() != 2 or not vectors.shape[1]:
        raise _unusable(f"the endpoint gave no vectors: shape {list(vectors.shape)}")
    if bad := bad_vectors(vectors):
        raise _unusable(f"the endpoint gave no directions: {listed(bad, texts, first)}")
    return vectors


def _unusable(message: str) -> UnusableAnswerError:
    return UnusableAnswerError(Fault("server", message, passes=True))
