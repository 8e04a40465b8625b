"""FG-RAG: entities expanded by weak and strong context, and summaries of what is told of them for the query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from torch import Tensor

from qgrag.errors import ConfigError, MissingComponentError
from qgrag.graph import Ragged
from qgrag.graph.segments import pool_pairs, top_pairs
from qgrag.index.reader import Index
from qgrag.index.vectors import VectorIndex
from qgrag.retrieval.base import Maker, Ranking
from qgrag.retrieval.graph_retriever import GraphRetriever
from qgrag.retrieval.linking.linker import EntityLinkerConfig
from qgrag.retrieval.methods.fg.context import Context, Told, expand_context, gather_descriptions
from qgrag.retrieval.methods.fg.evidence import fg_evidence
from qgrag.retrieval.steps.llm_entity_questions import LLMEntityQuestions
from qgrag.retrieval.steps.llm_entity_summaries import LLMEntitySummaries
from qgrag.retrieval.steps.local import LocalEntityQuestions, LocalEntitySummaries
from qgrag.retrieval.steps.paired_dots import paired_dots
from qgrag.retrieval.steps.protocols import EntityQuestions, EntitySummaries, QueryEntities
from qgrag.retrieval.steps.stored_vectors import TextVectors


@dataclass(frozen=True)
class FGConfig:
    """FG-RAG (sections 3.2 and 3.3), and how what it finds ranks chunks.

    Args:
        matches: n, entities matched to a query entity for the weak context, and to each of those for the
            strong one.
        hops: depth of the breadth-first searches.
        max_nodes: entities that one search may reach; the nearest stay, then those most similar to the query.
        max_descriptions: descriptions read per query entity: those of the nearest entities and of passages
            most similar to the query. The paper reads all.
        expansion: whether the strong context and the searches are there; without them only the weak matches
            speak.
        questions: m, questions that a language model asks per entity.
        summaries: whether descriptions are condensed in the light of the query; without it all count alike.
        summary_sentences: sentences of a local summary.
        novelty: weight of being unlike what the local summary holds already, from 0 to 1.
        decay: factor by which a description counts less for each hop and for the strong context.
        dense_weight: weight of the passage's cosine with the query among the chunks found.
        linking: how names become entities.
    """

    matches: int = 5
    hops: int = 1
    max_nodes: int = 100
    max_descriptions: int = 40
    expansion: bool = True
    questions: int = 5
    summaries: bool = True
    summary_sentences: int = 5
    novelty: float = 0.3
    decay: float = 0.5
    dense_weight: float = 0.5
    linking: EntityLinkerConfig = field(default_factory=EntityLinkerConfig)

    def __post_init__(self) -> None:
        for name in ("matches", "max_nodes", "max_descriptions", "questions", "summary_sentences"):
            if getattr(self, name) < 1:
                raise ConfigError(f"fg.{name} must be at least 1, not {getattr(self, name)}")
        if self.hops < 0 or self.dense_weight < 0:
            raise ConfigError(f"fg.hops and fg.dense_weight must be 0 or more, not {self.hops} and {self.dense_weight}")
        if not (0 < self.decay <= 1 and 0 <= self.novelty <= 1):
            raise ConfigError(f"fg.decay lies in (0, 1], fg.novelty in [0, 1], not {self.decay} and {self.novelty}")


class FGRetriever(GraphRetriever):
    """Chunks by the descriptions that they give of the expanded entities, as relevant as these are to the
    query.

    Args:
        index: with a knowledge graph.
        config: see there.
        entities: takes names from queries in place of the graph's own names.
        questions: asks about an entity in the light of a query.
        summarise: writes the summary of an entity.

    Raises:
        MissingComponentError: the graph describes no entity.
    """

    name = "fg"
    Config = FGConfig
    steps: ClassVar[Mapping[str, Maker]] = {
        **GraphRetriever.steps,
        "questions": lambda model, prompts, config: LLMEntityQuestions(model, prompts, config.questions),
        "summarise": lambda model, prompts, config: LLMEntitySummaries(model, prompts),
    }
    looks_for = "description"
    reads = "views"

    def __init__(
        self,
        index: Index,
        config: FGConfig | None = None,
        *,
        entities: QueryEntities | None = None,
        questions: EntityQuestions | None = None,
        summarise: EntitySummaries | None = None,
    ) -> None:
        self.config = config or FGConfig()
        super().__init__(index, self.config.linking, entities)
        if self.graph.num_entities and not self.graph.descriptions.num_rows:
            raise MissingComponentError(
                "fg reads descriptions of entities, but the index's knowledge graph has none; build it with "
                "knowledge_graph.extractor: entities (a language model) or local (rules, the default)"
            )
        self._questions = questions or LocalEntityQuestions()
        self._vectors_of = TextVectors(
            index.embedder.encode, self.graph.description_texts, self.graph.description_vectors
        )
        self._summarise = summarise or LocalEntitySummaries(
            TextVectors(index.embedder.encode_queries),
            self.config.summary_sentences,
            self.config.novelty,
            encode_descriptions=self._vectors_of,
        )

    @cached_property
    def _named(self) -> tuple[VectorIndex, Tensor]:
        """Vectors of the entities that have one, and their rows."""
        rows = self.graph.embedded.nonzero()[:, 0]
        return VectorIndex.exact(self.graph.vectors[rows]), rows

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        linked = self.link(queries)
        context = self.expand(linked.nodes, vectors)
        told = self.told(context, vectors)
        questions, summaries = self.condense(queries, context, told)
        query, chunk, score = self.score_chunks(context, told, vectors)
        chunks, scores = top_pairs(query, chunk, score, len(queries), top_k)
        evidence, brought = fg_evidence(self.graph, self.index, linked, context, told, questions, summaries, chunks)
        return self.with_fallback(Ranking(chunks, scores, evidence, brought), linked, vectors, top_k)

    def expand(self, entities: Ragged, vectors: Tensor) -> Context:
        """Equations 6 and 7 and both searches, for every entity of every query at once."""
        c = self.config
        return expand_context(
            self.graph,
            self.edges,
            self._named,
            entities,
            vectors,
            matches=c.matches,
            hops=c.hops if c.expansion else 0,
            max_nodes=c.max_nodes,
            strong=c.expansion,
            decay=c.decay,
        )

    def told(self, context: Context, vectors: Tensor) -> Told:
        """The descriptions of each context, and how relevant each is to its query."""
        told = gather_descriptions(
            self.graph, context, vectors, self.index.passages.vectors, self.config.max_descriptions
        )
        if not self.config.summaries or not told.texts:
            return told
        return told._replace(relevance=(self._vectors_of(told.texts) * vectors[told.query]).sum(1))

    def condense(self, queries: Sequence[str], context: Context, told: Told) -> tuple[list[list[str]], list[str]]:
        """Questions and summary of each (query, entity); both empty where summaries are off."""
        pairs = list(zip(context.query.tolist(), context.entity.tolist(), strict=True))
        if not self.config.summaries:
            return [[] for _ in pairs], ["" for _ in pairs]
        asked = [queries[query] for query, _ in pairs]
        names = [self.graph.names[entity] for _, entity in pairs]
        texts: list[list[str]] = [[] for _ in pairs]
        for pair, text in zip(told.pair.tolist(), told.texts, strict=True):
            texts[pair].append(text)
        questions = self._questions(asked, names)
        return questions, self._summarise(asked, names, texts, questions)

    def score_chunks(self, context: Context, told: Told, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Score of every (query, chunk) told of: query [P], chunk [P], float32 [P].

        The sum over a query's entities of the best description that the chunk gives, weight times relevance;
        plus the passage's cosine.
        """
        size = len(self.index.chunks)
        value = told.weight * told.relevance.clamp(min=0)
        pair, chunk, score = pool_pairs(told.pair, told.chunk, value, size, "max")
        query, chunk, score = pool_pairs(context.query[pair], chunk, score, size, "sum")
        passages = self.index.passages.vectors
        return query, chunk, score + self.config.dense_weight * paired_dots(vectors, query, passages, chunk)
