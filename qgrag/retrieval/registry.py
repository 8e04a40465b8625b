"""Retrievers by name, and by configuration file."""

from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from qgrag.config import from_plain, load_yaml, unknown_name
from qgrag.errors import ConfigError
from qgrag.index.reader import Index
from qgrag.llm.model import LanguageModel
from qgrag.llm.prompts import Prompts
from qgrag.retrieval.base import Retriever
from qgrag.retrieval.steps.registry import MakeStep, llm_steps

RETRIEVERS = {
    "naive": ("qgrag.retrieval.methods.naive", "NaiveRetriever", None),
    "bm25": ("qgrag.retrieval.methods.bm25", "BM25Retriever", None),
    "hybrid": ("qgrag.retrieval.methods.hybrid", "HybridRetriever", "HybridConfig"),
    "qcg": ("qgrag.retrieval.methods.qcg", "QCGRetriever", "QCGConfig"),
    "dual": ("qgrag.retrieval.methods.dual.retriever", "DualRetriever", "DualConfig"),
    "fg": ("qgrag.retrieval.methods.fg.retriever", "FGRetriever", "FGConfig"),
    "qmkgf": ("qgrag.retrieval.methods.qmkgf.retriever", "QMKGFRetriever", "QMKGFConfig"),
    "ensemble": ("qgrag.retrieval.methods.ensemble", "EnsembleRetriever", "EnsembleConfig"),
    "d2q": ("qgrag.retrieval.methods.d2q", "D2QRetriever", "D2QConfig"),
    "d2q--": ("qgrag.retrieval.methods.d2q", "D2QMinusRetriever", "D2QConfig"),
    "kg": ("qgrag.retrieval.methods.kg", "KGRetriever", "KGConfig"),
    "rerank": ("qgrag.retrieval.methods.rerank", "RerankRetriever", "RerankConfig"),
    "llm-only": ("qgrag.retrieval.methods.llm_only", "LLMOnlyRetriever", None),
}
STANDARD = tuple(name for name in RETRIEVERS if name not in ("d2q", "d2q--", "kg", "rerank", "llm-only"))
"""What is measured where nobody says otherwise: all but the further baselines."""


def load_retriever(
    index: Index, name: str, *, model: LanguageModel | None = None, prompts: Prompts | None = None, **parameters: Any
) -> Retriever:
    """A retriever on an index.

    Args:
        index: what is searched.
        name: a registered name (`naive`, `bm25`, `hybrid`, `qcg`, ...), or the path of a YAML file that holds
            `retriever: NAME` and the retriever's parameters.
        model: takes the steps that a language model can take, in place of rules.
        prompts: what it is asked with.
        parameters: fields of the retriever's configuration, over those of the file; `llm_steps` lists the steps that
            are the model's, all that it can take if left out.

    Raises:
        ConfigError: unknown name, parameter or step, or a value out of range.
        MissingComponentError: the index lacks the graph that the retriever needs.
    """
    chosen = _chosen(name, parameters)
    if chosen.config is None:
        return chosen.retriever(index)
    makers = llm_steps(chosen.name, chosen.config)
    if chosen.steps is not None:
        makers = _wanted_steps(chosen.steps, makers, f"{chosen.where}: llm_steps")
    steps = {} if model is None else {step: make(model, prompts) for step, make in makers.items()}
    made = chosen.retriever(index, chosen.config, **steps)  # type: ignore[call-arg]
    made.llm_steps = tuple(steps)
    return made


def retriever_settings(name: str, **parameters: Any) -> dict[str, Any]:
    """What `load_retriever` would make by rules alone: the registered name under `retriever`, and every field of its
    configuration. Needs no index.

    Raises:
        ConfigError: unknown name or parameter, or a value out of range.
    """
    chosen = _chosen(name, parameters)
    return {"retriever": chosen.retriever.name, **(asdict(chosen.config) if chosen.config is not None else {})}


class _Chosen(NamedTuple):
    """A retriever's class and configuration, the steps listed for a model, and where all that was said."""

    where: str
    name: str
    retriever: type[Retriever]
    config: Any
    steps: Any


def _chosen(name: str, parameters: Mapping[str, Any]) -> _Chosen:
    where, values = "retriever", dict(parameters)
    if name.endswith((".yaml", ".yml")):
        where, values = name, load_yaml(Path(name))
        if "retriever" not in values:
            raise ConfigError(f"{name}: lacks the key 'retriever', which names one of {', '.join(RETRIEVERS)}")
        name = values.pop("retriever")
        values |= parameters
    if name not in RETRIEVERS:
        raise ConfigError(unknown_name(f"{where}: retriever", name, RETRIEVERS))
    module_name, retriever_name, config_name = RETRIEVERS[name]
    module = import_module(module_name)
    if config_name is None:
        if values:
            raise ConfigError(f"{where}: {name} takes no parameters, but {', '.join(values)} was given")
        return _Chosen(where, name, getattr(module, retriever_name), None, None)
    steps = values.pop("llm_steps", None)
    config = from_plain(getattr(module, config_name), values, where=where)
    return _Chosen(where, name, getattr(module, retriever_name), config, steps)


def _wanted_steps(wanted: Any, makers: Mapping[str, MakeStep], where: str) -> dict[str, MakeStep]:
    """Those of the steps that are listed."""
    if not isinstance(wanted, list | tuple):
        raise ConfigError(f"{where}: has to be a list of steps, not {wanted!r}")
    for step in wanted:
        if step not in makers:
            raise ConfigError(unknown_name(where, str(step), makers))
    return {step: make for step, make in makers.items() if step in wanted}
