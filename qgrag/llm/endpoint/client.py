"""The official client, set up: address, key from the environment, timeouts."""

import os

import openai

from qgrag.errors import ConfigError
from qgrag.llm.config import Pace

KEY_VARIABLE = "QGRAG_LLM_API_KEY"
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
NO_KEY = "none"


def make_client(base_url: str, pace: Pace) -> openai.AsyncOpenAI:
    """A client that makes single attempts; retrying is the caller's.

    The key is QGRAG_LLM_API_KEY. OPENAI_API_KEY is sent to OpenAI and to the address in OPENAI_BASE_URL
    only, so that it never leaves for a server that it was not made for; other servers get no key.

    Raises:
        ConfigError: OpenAI's own endpoint is meant and no key is set.
    """
    home = os.environ.get("OPENAI_BASE_URL", "")
    key = os.environ.get(KEY_VARIABLE, "")
    if not key and base_url in ("", home):
        key = os.environ.get(OPENAI_KEY_VARIABLE, "")
        if not key and not (base_url or home):
            raise ConfigError(
                f"no key for OpenAI's endpoint: set {OPENAI_KEY_VARIABLE} or {KEY_VARIABLE} in the environment, "
                "or name another server in llm.base_url"
            )
    timeout = openai.Timeout(
        pace.read_timeout, connect=pace.connect_timeout, read=pace.read_timeout, write=pace.read_timeout
    )
    return openai.AsyncOpenAI(api_key=key or NO_KEY, base_url=base_url or home or None, timeout=timeout, max_retries=0)


def endpoint_url(client: openai.AsyncOpenAI) -> str:
    """The address that messages name, without any credentials."""
    url = client.base_url
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}{url.path}".rstrip("/")
