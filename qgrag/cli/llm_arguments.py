"""Flags of the language model that several commands share."""

from dataclasses import replace
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from qgrag.llm.config import LLMConfig


def add_llm_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--llm-base-url", type=str | None, default=None, help="OpenAI-compatible endpoint, ending in /v1"
    )
    parser.add_argument("--llm-model", type=str | None, default=None, help="the endpoint's name of the model")
    parser.add_argument("--max-calls", type=int | None, default=None, help="stop cleanly after so many calls")
    parser.add_argument(
        "--max-tokens-total", type=int | None, default=None, help="stop cleanly after so many tokens in all"
    )


def with_llm_arguments(config: LLMConfig, args: Namespace) -> LLMConfig:
    """The configuration with what the flags say in place of its own.

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
