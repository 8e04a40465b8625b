"""Which endpoint makes vectors: apart from the embedder itself, so that a configuration needs no client."""

from dataclasses import dataclass, field

from qgrag.errors import ConfigError
from qgrag.llm.config import Pace, address_problem


@dataclass(frozen=True)
class RemoteEmbedderConfig:
    """Which endpoint makes vectors.

    Args:
        model: the endpoint's name of the model. Vectors of one name are taken to be of one model.
        base_url: of the endpoint, ending in `/v1`; empty for OpenAI's own.
        query_prompt: text put before each query.
        passage_prompt: text put before each passage.
        dimensions: asks for shorter vectors, where the model has them; None for its own length.
        batch_size: texts per request.
        pace: concurrency, rates, retries and timeouts.
    """

    model: str = ""
    base_url: str = ""
    query_prompt: str = ""
    passage_prompt: str = ""
    dimensions: int | None = None
    batch_size: int = 64
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        if self.base_url and (problem := address_problem(self.base_url)):
            raise ConfigError(f"remote_embedder.base_url {problem}")
        if self.batch_size < 1:
            raise ConfigError(f"remote_embedder.batch_size must be at least 1, got {self.batch_size}")
