"""The steps of a query by rules and the embedding model, with no language model."""

from collections.abc import Callable, Iterable, Sequence

import torch
from spacy.tokens import Doc
from torch import Tensor

from qgrag.extraction.name_spans import VALUE_TYPES, name_spans
from qgrag.extraction.names import clean_name, name_key
from qgrag.extraction.query_steps import QueryEntitySet
from qgrag.extraction.records import Triple
from qgrag.extraction.spacy_pipeline import DEFAULT_PIPELINE, parse

Encode = Callable[[Sequence[str]], Tensor]


class LocalQueryEntities:
    """A `QueryEntities` by spaCy: names are explicit, the heads of other noun phrases enhanced entities.

    Args:
        pipeline: spaCy pipeline with a tagger, a parser and an entity recogniser.
    """

    def __init__(self, pipeline: str = DEFAULT_PIPELINE) -> None:
        self._pipeline = pipeline

    def __call__(self, queries: Sequence[str]) -> list[QueryEntitySet]:
        return [self._entities(doc) for doc in parse(list(queries), self._pipeline, description="Reading queries")]

    def _entities(self, doc: Doc) -> QueryEntitySet:
        spans = [span for span in name_spans(doc) if span.type not in VALUE_TYPES]
        covered = {token for span in spans for token in range(span.first, span.last)}
        explicit = _distinct(span.text(doc) for span in spans)
        heads = [chunk.root for chunk in doc.noun_chunks] if doc.has_annotation("DEP") else []
        nouns = [root.lemma_ for root in heads if root.i not in covered and root.pos_ == "NOUN"]
        return QueryEntitySet(explicit, tuple(noun for noun in _distinct(nouns) if noun not in explicit))


class LocalImplicitNodes:
    """An `ImplicitNodes`: ends of the triples, by how alike their relation and the query are, by how many of
    the query's nodes they touch, and by how many triples they are in.

    Args:
        encode: texts -> unit vectors, float32 [n, d].
        limit: names chosen for a query, at most.
        touch_weight: what a further touched node of the query adds.
        degree_weight: what a further triple adds.
    """

    def __init__(
        self, encode: Encode, limit: int = 3, *, touch_weight: float = 0.1, degree_weight: float = 0.0
    ) -> None:
        self._encode = encode
        self._limit = limit
        self._touch_weight = touch_weight
        self._degree_weight = degree_weight

    def __call__(
        self, queries: Sequence[str], nodes: Sequence[Sequence[str]], triples: Sequence[Sequence[Triple]]
    ) -> list[list[str]]:
        relations = sorted({triple.relation for row in triples for triple in row})
        if not relations:
            return [[] for _ in queries]
        similarity = self._encode(queries) @ self._encode(relations).T
        column = {relation: i for i, relation in enumerate(relations)}
        return [
            self._choose(set(given), row, {r: float(similarity[number, column[r]]) for r in {t.relation for t in row}})
            for number, (given, row) in enumerate(zip(nodes, triples, strict=True))
        ]

    def _choose(self, given: set[str], triples: Sequence[Triple], similarity: dict[str, float]) -> list[str]:
        best: dict[str, float] = {}
        touched: dict[str, set[str]] = {}
        degree: dict[str, int] = {}
        for triple in triples:
            for end, other in ((triple.head, triple.tail), (triple.tail, triple.head)):
                if end not in given:
                    best[end] = max(best.get(end, -1.0), similarity[triple.relation])
                    touched.setdefault(end, set()).update({other} & given)
                    degree[end] = degree.get(end, 0) + 1
        score = {
            end: best[end]
            + self._touch_weight * max(0, len(touched[end]) - 1)
            + self._degree_weight * (degree[end] - 1)
            for end in best
        }
        return sorted(score, key=lambda end: (-score[end], end))[: self._limit]


class LocalEntityQuestions:
    """An `EntityQuestions`: the query itself, turned to one entity at a time."""

    def __call__(self, queries: Sequence[str], entities: Sequence[str]) -> list[list[str]]:
        return [
            [f"{entity}: {query}", f"What is {entity}?", f"What is {entity} known for?"]
            for query, entity in zip(queries, entities, strict=True)
        ]


class LocalEntitySummaries:
    """An `EntitySummaries` that picks sentences by maximal marginal relevance (Carbonell and Goldstein,
    1998).

    A sentence's relevance is its cosine with the query or the closest of the questions; each further sentence
    loses what it has in common with those picked before.

    Args:
        encode: queries and questions -> unit vectors, float32 [n, d].
        sentences: sentences of a summary, at most.
        novelty: weight of being unlike the sentences picked, from 0 to 1.
        encode_descriptions: the same for descriptions; None takes `encode`.
    """

    def __init__(
        self,
        encode: Encode,
        sentences: int = 5,
        novelty: float = 0.3,
        *,
        encode_descriptions: Encode | None = None,
    ) -> None:
        if sentences < 1 or not 0 <= novelty <= 1:
            raise ValueError(f"sentences must be at least 1 and novelty from 0 to 1, not {sentences} and {novelty}")
        self._encode = encode
        self._encode_descriptions = encode_descriptions or encode
        self._sentences = sentences
        self._novelty = novelty

    def __call__(
        self,
        queries: Sequence[str],
        entities: Sequence[str],
        descriptions: Sequence[Sequence[str]],
        questions: Sequence[Sequence[str]],
    ) -> list[str]:
        asked = [[query, *row] for query, row in zip(queries, questions, strict=True)]
        told = self._encode_descriptions([text for row in descriptions for text in row])
        wanted = self._encode([text for row in asked for text in row])
        summaries = []
        d = q = 0
        for row, ask in zip(descriptions, asked, strict=True):
            relevance = (told[d : d + len(row)] @ wanted[q : q + len(ask)].T).amax(1) if row else torch.empty(0)
            picked = marginal_relevance(told[d : d + len(row)], relevance, self._sentences, self._novelty)
            summaries.append(" ".join(row[i] for i in picked))
            d, q = d + len(row), q + len(ask)
        return summaries


def marginal_relevance(vectors: Tensor, relevance: Tensor, k: int, novelty: float) -> list[int]:
    """Positions picked one by one: argmax of (1 - novelty) relevance - novelty max cosine with those picked.

    Args:
        vectors: float32 [n, d], unit vectors.
        relevance: float32 [n].
        k: positions wanted.
        novelty: from 0 (relevance alone) to 1.
    """
    picked: list[int] = []
    common = torch.zeros(len(vectors))
    open_to = torch.ones(len(vectors), dtype=torch.bool)
    for _ in range(min(k, len(vectors))):
        value = ((1 - novelty) * relevance - novelty * common).masked_fill(~open_to, -torch.inf)
        best = int(value.argmax())
        picked.append(best)
        open_to[best] = False
        common = torch.maximum(common, vectors @ vectors[best])
    return picked


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Clean names, each key once, in order."""
    seen: dict[str, str] = {}
    for name in map(clean_name, names):
        if name:
            seen.setdefault(name_key(name), name)
    return tuple(seen.values())
