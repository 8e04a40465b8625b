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
from qgrag.retrieval.base import Maker, Retriever

RETRIEVERS: dict[str, str] = {
    "auto": "qgrag.retrieval.methods.auto.retriever.AutoRetriever",
    "naive": "qgrag.retrieval.methods.naive.NaiveRetriever",
    "bm25": "qgrag.retrieval.methods.bm25.BM25Retriever",
    "hybrid": "qgrag.retrieval.methods.hybrid.HybridRetriever",
    "qcg": "qgrag.retrieval.methods.qcg.QCGRetriever",
    "dual": "qgrag.retrieval.methods.dual.retriever.DualRetriever",
    "fg": "qgrag.retrieval.methods.fg.retriever.FGRetriever",
    "qmkgf": "qgrag.retrieval.methods.qmkgf.retriever.QMKGFRetriever",
    "ppr": "qgrag.retrieval.methods.ppr.PPRRetriever",
    "ensemble": "qgrag.retrieval.methods.ensemble.EnsembleRetriever",
    "d2q": "qgrag.retrieval.methods.d2q.D2QRetriever",
    "d2q--": "qgrag.retrieval.methods.d2q.D2QMinusRetriever",
    "kg": "qgrag.retrieval.methods.kg.KGRetriever",
    "rerank": "qgrag.retrieval.methods.rerank.RerankRetriever",
    "llm-only": "qgrag.retrieval.methods.llm_only.LLMOnlyRetriever",
}
"""Name -> dotted path of the class, which is imported when it is asked for."""
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
    steps = {} if model is None else {step: make(model, prompts, chosen.config) for step, make in chosen.steps.items()}
    made = chosen.retriever(index, chosen.config, **steps)  # type: ignore[call-arg]
    made.llm_steps = tuple(steps)
    return made


def retriever_settings(name: str, **parameters: Any) -> dict[str, Any]:
    """What `load_retriever` would make by rules alone: the registered name under `retriever`, and every field of its
    configuration. Needs no index.

    Raises:
        ConfigError: unknown name, parameter or step, or a value out of range.
    """
    chosen = _chosen(name, parameters)
    return {"retriever": chosen.retriever.name, **(asdict(chosen.config) if chosen.config is not None else {})}


class _Chosen(NamedTuple):
    """A retriever's class, its configuration, and what makes each step that is to be a model's."""

    retriever: type[Retriever]
    config: Any
    steps: Mapping[str, Maker]


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
    module, _, class_name = RETRIEVERS[name].rpartition(".")
    retriever: type[Retriever] = getattr(import_module(module), class_name)
    if retriever.Config is None:
        if values:
            raise ConfigError(f"{where}: {name} takes no parameters, but {', '.join(values)} was given")
        return _Chosen(retriever, None, {})
    wanted = values.pop("llm_steps", None)
    config: Any = from_plain(retriever.Config, values, where=where)
    steps = retriever.steps_of(config)
    return _Chosen(retriever, config, steps if wanted is None else _listed(wanted, steps, f"{where}: llm_steps"))


def _listed(wanted: Any, makers: Mapping[str, Maker], where: str) -> dict[str, Maker]:
    """Those of the steps that are listed."""
    if not isinstance(wanted, list | tuple):
        raise ConfigError(f"{where}: has to be a list of steps, not {wanted!r}")
    for step in wanted:
        if step not in makers:
            raise ConfigError(unknown_name(where, str(step), makers))
    return {step: make for step, make in makers.items() if step in wanted}
