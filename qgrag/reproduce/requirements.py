"""What a recipe needs, what of it is here, and how to get the rest."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from qgrag.errors import ConfigError, InputError, MissingComponentError, MissingExtraError, ModelNotFoundError
from qgrag.evaluation.answers.metrics import load_meteor
from qgrag.evaluation.datasets.loading import locate
from qgrag.llm.config import LLMConfig, Pace
from qgrag.llm.endpoint.client import endpoint_url, make_client
from qgrag.llm.endpoint.keys import KEY_VARIABLE, OPENAI_KEY_VARIABLE
from qgrag.models.embedder import EmbedderConfig
from qgrag.models.resolve import resolve_model
from qgrag.reproduce.recipe import DATASET_MARK, METEOR, DataSpec, Recipe, filled

ENDPOINT_SECONDS = 3.0
SHOWN_MODELS = 5
OPENAI = "https://api.openai.com/v1"
GATEWAY_ERRORS = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)


def endpoint_problem(config: LLMConfig) -> str:
    """Why a model cannot be asked, empty if nothing is known against it; waits three seconds at most.

    The endpoint is asked for its list of models, with the key that requests will carry. It is a problem if nothing
    answers, if the key is refused, or if the list lacks the model. An endpoint without such a list passes. Each
    endpoint is asked once per process.
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
    """Names of the models in a reply; empty if it is not a list of models."""
    try:
        return [str(model["id"]) for model in response.json()["data"]]
    except (ValueError, KeyError, TypeError):
        return []


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a recipe needs.

    Args:
        what: it is.
        here: whether it is.
        how: to get it.
        dataset: the data set whose columns need it; empty for all.
        required: whether the run cannot do without; a GPU is only advised.
    """

    what: str
    here: bool
    how: str
    dataset: str = ""
    required: bool = True


def needs_of(recipe: Recipe, data: Path | None) -> list[Need]:
    """Everything that a recipe needs. Looks at the disk, the endpoint and the GPU; loads no model.

    Args:
        recipe: with the endpoint that will be asked.
        data: folder that holds the data sets' folders; None where there is none.
    """
    needs = [_data_need(name, spec, data) for name, spec in recipe.datasets.items()]
    needs += _file_needs(recipe)
    for name in sorted(_embedders(recipe)):
        needs.append(_model_need("embedding model", name))
    for name in sorted(_cross_encoders(recipe)):
        needs.append(_model_need("cross-encoder", name))
    needs.append(_endpoint_need(recipe.llm, recipe.serve, "another address or model: --llm-base-url, --llm-model"))
    if recipe.judge is not None and not recipe.judge_is_reader:
        needs.append(_endpoint_need(recipe.judge, "", "it judges; another judge in a copy of the recipe"))
    if METEOR in recipe.metrics:
        needs.append(_meteor_need())
    if recipe.serve:
        needs.append(_gpu_need())
    return needs


def _data_need(name: str, spec: DataSpec, data: Path | None) -> Need:
    what = f"data set {name} ({spec.format} format)"
    if data is None:
        return Need(what, False, f"name the folder of the data sets (--data); {spec.get}", name)
    folder = data / spec.folder
    try:
        corpus, questions = locate(spec.format, folder, folder / spec.questions if spec.questions else None)
        here = corpus.exists() and questions.exists()
    except InputError:
        here = False
    return Need(what, here, f"put it at {folder}: {spec.get}", name)


def _file_needs(recipe: Recipe) -> Iterator[Need]:
    for needed in recipe.needs:
        if DATASET_MARK not in needed.path:
            yield Need(needed.path, Path(needed.path).exists(), needed.how)
            continue
        for dataset, spec in recipe.datasets.items():
            path, how = filled((needed.path, needed.how), dataset, spec.language)
            yield Need(path, Path(path).exists(), how, dataset)


def _embedders(recipe: Recipe) -> set[str]:
    """Names of published embedding models; folders that are made before are among the files."""
    configs = [recipe.index_values(name, dataset) for name in recipe.indexes for dataset in recipe.datasets]
    named = {str(config.get("embedder", {}).get("model", EmbedderConfig().model)) for config in configs}
    return named - {need.what for need in _file_needs(recipe)}


def _cross_encoders(recipe: Recipe) -> set[str]:
    found: set[str] = set()

    def look(values: Any) -> None:
        if isinstance(values, Mapping):
            for key, value in values.items():
                if key == "cross_encoder":
                    found.add(str(value["model"]))
                look(value)

    for row in recipe.runnable:
        look(row.retriever)
    return found


def _model_need(kind: str, name: str) -> Need:
    try:
        resolve_model(name)
        here = True
    except ModelNotFoundError:
        here = False
    return Need(f"{kind} {name}", here, f"hf download {name}, or its folder's path in a copy of the recipe")


def _endpoint_need(config: LLMConfig, serve: str, otherwise: str) -> Need:
    problem = endpoint_problem(config)
    how = "; ".join(part for part in (problem, serve, otherwise) if part)
    return Need(f"endpoint {config.base_url or OPENAI} with {config.model}", not problem, how)


def _meteor_need() -> Need:
    try:
        load_meteor()
        here, how = True, ""
    except (MissingExtraError, MissingComponentError) as error:
        here, how = False, f"{error}; without it the column stays empty"
    return Need("METEOR's WordNet", here, how, required=False)


def _gpu_need() -> Need:
    import torch

    how = "the model may be served elsewhere; embedding and re-ranking run on a CPU, slowly"
    return Need("a GPU", torch.cuda.is_available(), how, required=False)
