"""Flags of the language model that several commands share, and the model that they name."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from qgrag.config import from_plain, load_yaml
from qgrag.errors import ConfigError
from qgrag.llm.cached_model import CachedLanguageModel, load_language_model
from qgrag.llm.config import LLMConfig
from qgrag.llm.prompts import PromptConfig

HOW_TO_NAME = "--llm-base-url and --llm-model, or --llm FILE.yaml"


def add_llm_arguments(parser: ArgumentParser) -> None:
    """Which endpoint and model, and what they may be asked in all."""
    parser.add_argument(
        "--llm-base-url", type=str | None, default=None, help="OpenAI-compatible endpoint, ending in /v1"
    )
    parser.add_argument("--llm-model", type=str | None, default=None, help="the endpoint's name of the model")
    parser.add_argument(
        "--max-calls", type=int | None, default=None, help="most calls in all; the command stops cleanly there"
    )
    parser.add_argument(
        "--max-tokens-total", type=int | None, default=None, help="most tokens in all; the command stops cleanly there"
    )


def add_asking_arguments(parser: ArgumentParser) -> None:
    """The same with a configuration file, a cache and prompts, for commands that ask a model questions."""
    add_llm_arguments(parser)
    parser.add_argument("--llm", type=str | None, default=None, help="YAML file of a language model, as in configs/llm")
    parser.add_argument(
        "--llm-cache", type=str | None, default=None, help="file that keeps its answers; beside --out if not given"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="keep no answers and ask for everything anew, to measure"
    )
    parser.add_argument(
        "--llm-steps", action="store_true", help="let it take the steps of retrieval too, instead of rules"
    )
    parser.add_class_arguments(PromptConfig, "prompts")


def with_llm_arguments(config: LLMConfig, args: Namespace) -> LLMConfig:
    """The configuration, with the values of the flags that were given.

    Raises:
        ConfigError: a value out of range.
    """
    changes: dict[str, Any] = {}
    if args.llm_base_url is not None:
        changes |= {"backend": "openai", "base_url": args.llm_base_url}
    if args.llm_model is not None:
        changes["model"] = args.llm_model
    if args.max_calls is not None:
        changes["max_calls"] = args.max_calls
    if args.max_tokens_total is not None:
        changes["max_tokens_total"] = args.max_tokens_total
    return replace(config, **changes)


def llm_config(args: Namespace) -> LLMConfig:
    """The configuration that `add_asking_arguments` names: that of the file, changed by the flags.

    Raises:
        ConfigError: the file cannot be read, or has a key or value that is wrong.
    """
    config = LLMConfig()
    if args.llm:
        config = from_plain(LLMConfig, load_yaml(Path(args.llm)), where=args.llm)
    return with_llm_arguments(config, args)


def cache_beside(out: str | None) -> Path | None:
    """The file beside `out` that keeps the model's answers, so that a run that was stopped pays for none twice."""
    return Path(f"{out}.llm-cache.sqlite") if out else None


def answer_cache(args: Namespace, default: Path | None) -> Path | None:
    """The file that keeps answers: the one that `--llm-cache` names, else the default; None with `--no-cache`.

    Raises:
        ConfigError: `--llm-cache` and `--no-cache` are both given.
    """
    if args.no_cache and args.llm_cache:
        raise ConfigError("--no-cache keeps no answers, but --llm-cache names a file for them: leave one out")
    if args.no_cache:
        return None
    return Path(args.llm_cache) if args.llm_cache else default


@contextmanager
def open_language_model(args: Namespace, cache: Path | None = None) -> Iterator[CachedLanguageModel | None]:
    """The model that `add_asking_arguments` names, None if they name none; closed at the end.

    Args:
        args: as parsed.
        cache: file for its answers where `--llm-cache` names none; None keeps none.

    Raises:
        ConfigError: the configuration is wrong, or has an address and no model; or a cache is named and forbidden.
    """
    kept = answer_cache(args, cache)
    config = llm_config(args)
    if not config.model and not config.base_url:
        yield None
        return
    with closing(load_language_model(config, kept)) as model:
        yield model
