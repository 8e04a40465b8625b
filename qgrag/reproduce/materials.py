"""The models and data of a run: those that a recipe names, or the embedded ones of a smoke run."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from qgrag.config import from_plain
from qgrag.errors import MissingComponentError, MissingExtraError
from qgrag.evaluation.answers.answering import Judge, PairJudge, Writer
from qgrag.evaluation.answers.metrics import Meteor, load_meteor
from qgrag.evaluation.datasets import load_dataset
from qgrag.evaluation.datasets.records import Dataset
from qgrag.evaluation.runs.summary import OVERALL
from qgrag.generation.answers import AnswerConfig, AnswerWriter
from qgrag.generation.correctness import CorrectnessJudge
from qgrag.generation.local_answers import LocalAnswerWriter
from qgrag.generation.pairwise import PairwiseJudge
from qgrag.index.config import IndexConfig
from qgrag.index.manifest import read_manifest
from qgrag.index.reader import Index
from qgrag.llm.cached_model import load_language_model
from qgrag.llm.model import LanguageModel, model_settings
from qgrag.llm.wrappers import StopAtBudget
from qgrag.models.embedder import Embedder, LocalEmbedder
from qgrag.reproduce.datasets import drawn_dataset
from qgrag.reproduce.recipe import METEOR, Recipe, Row
from qgrag.reproduce.stand_ins import ContainsJudge, CountingJudge, EmbeddingScorer, RememberingEmbedder
from qgrag.retrieval.base import Retriever
from qgrag.retrieval.methods.rerank import RerankConfig, RerankRetriever
from qgrag.retrieval.registry import load_retriever

SMOKE_QUESTIONS = 5
SMOKE_DOCUMENTS = 16


@dataclass(frozen=True)
class NamedMaterials:
    """What the recipe names.

    Args:
        recipe: the table.
        data: folder that holds the data sets' folders.
        model: extracts, takes steps and answers.
        judge_model: judges; None where the table needs no judge.
        meteor: None leaves its columns empty.
        limit: at most so many questions of each data set.
    """

    recipe: Recipe
    data: Path
    model: LanguageModel
    judge_model: LanguageModel | None
    meteor: Meteor | None = None
    limit: int | None = None

    def dataset(self, name: str) -> Dataset:
        return drawn_dataset(self.recipe.datasets[name], self.data, self.limit)

    @property
    def embedder(self) -> None:
        return None

    def index_config(self, name: str, dataset: str) -> IndexConfig:
        values = self.recipe.index_values(name, dataset)
        config = from_plain(IndexConfig, values, where=f"index {name!r} of the recipe")
        return replace(config, llm=self.recipe.llm) if config.asks_llm else config

    def index_folder(self, name: str, dataset: str, config: IndexConfig) -> str:
        return f"{dataset}-{name}"

    def open_index(self, folder: Path, config: IndexConfig) -> Index:
        return Index.open(folder, device=config.embedder.device)

    def retriever(self, index: Index, row: Row, dataset: str) -> Retriever:
        parameters = row.parameters(dataset)
        name = parameters.pop("retriever")
        return load_retriever(index, name, model=self.model if self.recipe.llm_steps else None, **parameters)

    def writer(self, index: Index) -> Writer:
        return AnswerWriter(self.model, answer_config(self.recipe))

    @property
    def judge(self) -> Judge | None:
        return CorrectnessJudge(self.judge_model) if self.judge_model is not None else None

    @property
    def pair_judge(self) -> PairJudge | None:
        return PairwiseJudge(self.judge_model) if self.judge_model is not None else None

    @property
    def names(self) -> Mapping[str, Any]:
        return {
            "model": model_settings(self.model),
            "judge": model_settings(self.judge_model) if self.judge_model is not None else None,
            "limit": self.limit,
        }


@dataclass(frozen=True)
class SmokeMaterials:
    """Models that come with the package, over the demo corpus in place of every data set.

    5 questions are asked; each gets one of the table's groups as its type.

    Rules extract and answer, a cosine replaces cross-encoders, and counting replaces the judge of pairs.
    """

    recipe: Recipe

    def dataset(self, name: str) -> Dataset:
        demo = load_dataset("demo")
        mixed = [q for pair in zip(*(by_type(demo, t) for t in ("single", "multi")), strict=False) for q in pair]
        chosen = mixed[:SMOKE_QUESTIONS]
        groups = [g for g in dict.fromkeys(c.group for c in self.recipe.columns if c.dataset == name) if g != OVERALL]
        if groups:
            chosen = [replace(q, type=groups[i % len(groups)]) for i, q in enumerate(chosen)]
        needed = {id_ for question in chosen for id_ in question.gold}
        gold = [document for document in demo.documents if document.id in needed]
        others = [document for document in demo.documents if document.id not in needed]
        documents = (*gold, *others[: max(0, SMOKE_DOCUMENTS - len(gold))])
        return replace(demo, name=name, documents=documents, questions=tuple(chosen))

    @property
    def embedder(self) -> Embedder:
        return _embedder()

    def index_config(self, name: str, dataset: str) -> IndexConfig:
        values = self.recipe.index_values(name, dataset)
        values.pop("embedder", None)
        for part, who in (("query_graph", "generator"), ("knowledge_graph", "extractor")):
            if values.get(part):
                values[part].pop(who, None)
        return from_plain(IndexConfig, values, where=f"index {name!r} of the recipe")

    def index_folder(self, name: str, dataset: str, config: IndexConfig) -> str:
        identity = json.dumps(config.identity(), sort_keys=True, default=str)
        return f"smoke-{hashlib.blake2b(identity.encode(), digest_size=6).hexdigest()}"

    def open_index(self, folder: Path, config: IndexConfig) -> Index:
        return _opened(folder, read_manifest(folder).generation)

    def retriever(self, index: Index, row: Row, dataset: str) -> Retriever:
        parameters = row.parameters(dataset)
        name = parameters.pop("retriever")
        for values in (parameters, parameters.get("first_parameters", {})):
            if "reward" in values:
                values["reward"] = "auto"
        if name == "rerank":
            config = from_plain(RerankConfig, parameters, where=row.method)
            return RerankRetriever(index, config, scorer=EmbeddingScorer(index.embedder))
        return load_retriever(index, name, **parameters)

    def writer(self, index: Index) -> Writer:
        return LocalAnswerWriter(index.embedder.encode_queries, answer_config(self.recipe))

    @property
    def judge(self) -> Judge | None:
        return ContainsJudge()

    @property
    def pair_judge(self) -> PairJudge | None:
        return CountingJudge()

    @property
    def meteor(self) -> Meteor | None:
        return None

    @property
    def names(self) -> Mapping[str, Any]:
        return {"model": "rules", "judge": "counting", "smoke": True}


@lru_cache(maxsize=8)
def _opened(folder: Path, generation: str) -> Index:
    """A smoke run's index, opened once for all recipes and data sets that share it."""
    return Index.open(folder, embedder=_embedder())


@lru_cache(maxsize=1)
def _embedder() -> RememberingEmbedder:
    return RememberingEmbedder(LocalEmbedder())


def by_type(dataset: Dataset, kind: str) -> list[Any]:
    return [question for question in dataset.questions if question.type == kind]


def answer_config(recipe: Recipe) -> AnswerConfig:
    return AnswerConfig(recipe.style, recipe.passages, recipe.evidence_tokens)


@contextmanager
def open_models(recipe: Recipe, out: Path) -> Iterator[tuple[LanguageModel, LanguageModel | None]]:
    """Reader and judge of a recipe. Their answers are kept in `out`; a run stops where a budget is spent."""
    cache = out / "llm-cache.sqlite"
    model = load_language_model(recipe.llm, cache)
    judge = load_language_model(recipe.judge, cache) if recipe.judge is not None else None
    try:
        yield StopAtBudget(model), StopAtBudget(judge) if judge is not None else None
    finally:
        model.close()
        if judge is not None:
            judge.close()


def meteor_if_here(recipe: Recipe) -> Meteor | None:
    """METEOR where the table has it and its data are here; without them its columns stay empty."""
    if METEOR not in recipe.metrics:
        return None
    try:
        return load_meteor()
    except (MissingExtraError, MissingComponentError):
        return None
