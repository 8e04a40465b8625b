"""From a configuration to a language model that is ready to be asked."""

from pathlib import Path

from qgrag.errors import ConfigError
from qgrag.llm.backend import Backend
from qgrag.llm.cache import ResponseCache
from qgrag.llm.cached_model import CachedLanguageModel
from qgrag.llm.config import LLMConfig


def load_language_model(config: LLMConfig, cache: Path | None) -> CachedLanguageModel:
    """The model that a configuration describes.

    Args:
        config: which model, and how it is asked.
        cache: file for its answers, shared by every run that should not pay twice; None to ask anew each
            time. Keys go by the model's name: servers that give one name to different models need a file
            each.

    Raises:
        ConfigError: OpenAI's own endpoint is meant and the environment has no key; or the cache is no such
            file.
        ModelNotFoundError: an in-process model's weights are not there.
    """
    if not config.model:
        raise ConfigError("llm.model is empty: name the model that the endpoint serves, or a model folder")
    return CachedLanguageModel(config, _backend(config), ResponseCache(cache) if cache is not None else None)


def _backend(config: LLMConfig) -> Backend:
    if config.backend == "openai":
        from qgrag.llm.endpoint import EndpointBackend

        return EndpointBackend(config)
    from qgrag.llm.in_process import InProcessBackend

    return InProcessBackend(config)
