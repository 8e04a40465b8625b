"""The official client, set up: address, key and proxies from the environment, timeouts."""

import os
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import openai

from qgrag.errors import ConfigError
from qgrag.llm.config import Pace, address_problem
from qgrag.llm.endpoint.keys import HEADER_VARIABLES, KEY_VARIABLE, OPENAI_KEY_VARIABLE, read_key

NO_KEY = "none"


def make_client(base_url: str, pace: Pace) -> openai.AsyncOpenAI:
    """A client that makes single attempts and follows no redirects; both are the caller's.

    The key is QGRAG_LLM_API_KEY. OPENAI_API_KEY is sent to OpenAI and to the address in OPENAI_BASE_URL
    only, so that it never leaves for a server that it was not made for; other servers get no key.

    Raises:
        ConfigError: OpenAI's own endpoint is meant and no key is set; a key has characters that no header can carry;
            or the environment names a proxy, a certificate file or an address that cannot be used.
    """
    home = os.environ.get("OPENAI_BASE_URL", "").strip()
    if home and not base_url and (problem := address_problem(home)):
        raise ConfigError(f"OPENAI_BASE_URL {problem}")
    key = read_key(KEY_VARIABLE)
    if not key and base_url in ("", home):
        key = read_key(OPENAI_KEY_VARIABLE)
        if not key and not (base_url or home):
            raise ConfigError(
                f"no key for OpenAI's endpoint: set {OPENAI_KEY_VARIABLE} or {KEY_VARIABLE} in the environment, "
                "or name another server in llm.base_url"
            )
    for variable in HEADER_VARIABLES:
        read_key(variable)
    timeout = openai.Timeout(
        pace.read_timeout, connect=pace.connect_timeout, read=pace.read_timeout, write=pace.read_timeout
    )
    try:
        return openai.AsyncOpenAI(
            api_key=key or NO_KEY,
            base_url=base_url or home or None,
            timeout=timeout,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False, timeout=timeout),
        )
    except Exception as error:
        raise ConfigError(_environment_problem(error)) from error


def endpoint_url(client: openai.AsyncOpenAI) -> str:
    """The address that messages name, without any credentials."""
    url = client.base_url
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}{url.path}".rstrip("/")


def proxy_of(url: str) -> str:
    """The proxy that requests to an address go through, without credentials; empty if they go directly."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all", "")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    return _without_credentials(proxy)


def _environment_problem(error: Exception) -> str:
    """What of the environment keeps a client from being made; these are the client's only errors of its own."""
    if isinstance(error, OSError):
        path = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR", "")
        reason = error.strerror or error
        return f"SSL_CERT_FILE names {path!r}, which cannot be used ({reason}); name a PEM file or unset it"
    proxies = {kind: _without_credentials(url) for kind, url in getproxies().items() if kind != "no" and url}
    named = ", ".join(f"{kind.upper()}_PROXY={url}" for kind, url in sorted(proxies.items())) or "no proxy is set"
    if isinstance(error, ImportError):
        return f"a SOCKS proxy needs another package: pip install socksio, or unset the proxy ({named})"
    return f"a client cannot be made from the environment: {type(error).__name__}; correct or unset the proxy ({named})"


def _without_credentials(url: str) -> str:
    scheme, mark, rest = url.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
