"""Configuration of a language model. Keys are no part of it: they come from the environment alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from qgrag.errors import ConfigError


def address_problem(url: str) -> str:
    """What is wrong with the address of an endpoint, to be put behind the setting's name; empty if nothing is."""
    if any(c.isspace() or not c.isprintable() for c in url):
        return f"must not contain spaces or control characters, got {url!r}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"is not an address ({error}); write http://HOST:PORT/v1 with a port up to 65535"
    if "@" in url or "?" in url:
        return "must not carry credentials or a query: put the key into QGRAG_LLM_API_KEY"
    if parts.scheme not in ("http", "https"):
        return f"must start with http:// or https://, got {url!r}"
    if not parts.hostname or port == 0:
        return f"names no server, got {url!r}; write http://HOST:PORT/v1"
    return ""


@dataclass(frozen=True)
class Sampling:
    """How the answer is drawn. Part of the cache key.

    Args:
        temperature: 0 takes the likeliest token each time.
        top_p: nucleus sampling, in (0, 1].
        seed: for endpoints that take one; None leaves it out.
        max_tokens: limit on one answer.
        stop: strings that end the answer.
        extra: further fields of the request body, such as `top_k` or `chat_template_kwargs`; for endpoints
            only.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = 0
    max_tokens: int = 2048
    stop: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ConfigError(f"llm.sampling.temperature must not be negative, got {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"llm.sampling.top_p must lie in (0, 1], got {self.top_p}")
        if self.max_tokens < 1:
            raise ConfigError(f"llm.sampling.max_tokens must be at least 1, got {self.max_tokens}")
        if "stream" in self.extra:
            raise ConfigError("llm.sampling.extra must not have 'stream': answers are read whole; remove it")


@dataclass(frozen=True)
class Pace:
    """How many requests an endpoint gets, and how long an answer may take.

    Args:
        concurrency: requests under way at once.
        requests_per_minute: requests are spread evenly to this rate; None: no limit.
        tokens_per_minute: the same for prompt and answer tokens, estimated before each call and counted after it.
        max_retries: further attempts after a rate limit, server error, timeout, lost connection or empty
            answer.
        connect_timeout: seconds.
        read_timeout: seconds without a byte; without streaming, an answer comes as a whole.
        total_timeout: seconds for one attempt.
        quiet_seconds: seconds without any answer until the log says what is being waited for.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_retries: int = 5
    connect_timeout: float = 10.0
    read_timeout: float = 600.0
    total_timeout: float = 900.0
    quiet_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ConfigError(f"llm.pace.concurrency must be at least 1, got {self.concurrency}")
        if self.max_retries < 0:
            raise ConfigError(f"llm.pace.max_retries must not be negative, got {self.max_retries}")
        for name in (
            "requests_per_minute",
            "tokens_per_minute",
            "connect_timeout",
            "read_timeout",
            "total_timeout",
            "quiet_seconds",
        ):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"llm.pace.{name} must be positive, got {value}")


@dataclass(frozen=True)
class InProcess:
    """Where a model of the `transformers` backend runs.

    Args:
        device_map: passed to accelerate: `auto` spreads layers over what there is; or one device such as
            `cuda:0`.
        dtype: `auto` takes the dtype that the weights are stored in.
        batch_tokens: prompt and answer tokens per batch, with padding; a batch that runs out of memory is halved.
    """

    device_map: str = "auto"
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    batch_tokens: int = 16384

    def __post_init__(self) -> None:
        if self.batch_tokens < 1:
            raise ConfigError(f"llm.in_process.batch_tokens must be at least 1, got {self.batch_tokens}")


@dataclass(frozen=True)
class LLMConfig:
    """Which language model answers, and how it is asked.

    Args:
        backend: `openai` for any OpenAI-compatible endpoint, `transformers` for a model in this process.
        model: the endpoint's name of the model; or a folder, a GGUF file or a hub name. Empty: no language
            model.
        base_url: of the endpoint, ending in `/v1`; empty for OpenAI's own.
        structured: how a schema is asked for; `auto` finds out what the endpoint takes.
        asks_again: further requests, each showing the error, after an answer that does not fit its schema.
        max_calls: the run stops cleanly after this number of calls; None: no limit.
        max_tokens_total: the same for prompt and answer tokens; calls under way still finish.
    """

    backend: Literal["openai", "transformers"] = "openai"
    model: str = ""
    base_url: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    pace: Pace = field(default_factory=Pace)
    in_process: InProcess = field(default_factory=InProcess)
    structured: Literal["auto", "json_schema", "json_object", "prompt"] = "auto"
    asks_again: int = 1
    max_calls: int | None = None
    max_tokens_total: int | None = None

    def __post_init__(self) -> None:
        if self.base_url and (problem := address_problem(self.base_url)):
            raise ConfigError(f"llm.base_url {problem}")
        if self.asks_again < 0:
            raise ConfigError(f"llm.asks_again must not be negative, got {self.asks_again}")
        for name in ("max_calls", "max_tokens_total"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ConfigError(f"llm.{name} must not be negative, got {value}")
