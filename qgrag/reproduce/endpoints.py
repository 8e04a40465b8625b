"""Whether a model can be asked where a recipe says, found out without asking it anything."""

from functools import cache
from http import HTTPStatus

import httpx

from qgrag.errors import ConfigError
from qgrag.llm.config import LLMConfig, Pace
from qgrag.llm.endpoint_client import KEY_VARIABLE, OPENAI_KEY_VARIABLE, endpoint_url, make_client

ENDPOINT_SECONDS = 3.0
SHOWN_MODELS = 5
GATEWAY_ERRORS = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)


def endpoint_problem(config: LLMConfig) -> str:
    """What stands in the way of asking a model, empty if nothing is known to; waits three seconds at most.

    The endpoint is asked for its list of models, with the key that requests will carry. Nothing there, a refused key
    or a list without the model is a problem; an endpoint that has no such list passes. Each is asked once a process.
    """
    return _problem(config.base_url, config.model)


@cache
def _problem(base_url: str, model: str) -> str:
    try:
        client = make_client(base_url, Pace())
    except ConfigError as error:
        return str(error)
    address = endpoint_url(client)
    headers = {"Authorization": f"Bearer {client.api_key}"}
    try:
        response = httpx.get(f"{address}/models", headers=headers, timeout=ENDPOINT_SECONDS)
    except httpx.HTTPError:
        return f"nothing answers at {address}"
    if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"{address} refuses the key: set {KEY_VARIABLE}, or {OPENAI_KEY_VARIABLE} for OpenAI's own"
    if response.status_code in GATEWAY_ERRORS:
        return f"nothing is behind the gateway at {address}"
    models = _listed(response) if response.status_code == HTTPStatus.OK else []
    if models and model not in models:
        return f"{address} serves {', '.join(models[:SHOWN_MODELS])}"
    return ""


def _listed(response: httpx.Response) -> list[str]:
    """Names of the models in a reply; none where it is no list of models."""
    try:
        return [str(model["id"]) for model in response.json()["data"]]
    except (ValueError, KeyError, TypeError):
        return []
