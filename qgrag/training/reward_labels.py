"""Labels for subgraphs: by how well they help to retrieve the gold, or by a language model's marks."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import torch
from torch import Tensor
from torch.nn.functional import normalize

from qgrag.extraction.records import Triple
from qgrag.generation.subgraph_scores import SubgraphJudge
from qgrag.index.reader import Index
from qgrag.models.embedder import Embedder
from qgrag.retrieval.linking.linker import EntityLinker
from qgrag.retrieval.methods.qmkgf.expansion import Join
from qgrag.retrieval.methods.qmkgf.retriever import QMKGFConfig
from qgrag.retrieval.methods.qmkgf.subgraphs import KINDS, build_subgraphs
from qgrag.retrieval.steps.linked_queries import link_entities
from qgrag.training.gold_pairs import GoldQuestion, check_gold, document_numbers
from qgrag.training.reward_examples import LabelledSubgraph, RewardExample
from qgrag.training.utility import retrieval_utility
from qgrag.training.vector_cache import VectorCache

BLOCK = 1024
"""Subgraphs whose searches are in memory together."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A subgraph of one question before it is labelled.

    Args:
        name: how it was built, such as `one_hop`.
        triples: what it holds.
    """

    name: str
    triples: tuple[Triple, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """`head relation tail` of each triple, as the retriever embeds it."""
        return tuple(f"{t.head} {t.relation} {t.tail}" for t in self.triples)


def subgraph_candidates(questions: Sequence[str], index: Index, config: QMKGFConfig) -> list[list[Candidate]]:
    """The subgraphs among which QMKGF chooses, for each question; none for one that names no entity.

    Raises:
        MissingComponentError: the index was built without a knowledge graph.
    """
    graph = index.knowledge_graph
    linked = link_entities(questions, EntityLinker(graph, config.linking), index.embedder.encode, None)
    subgraphs = build_subgraphs(
        graph,
        linked.nodes,
        nodes=config.nodes,
        bridges=config.bridges,
        damping=config.damping,
        max_neighbours=config.max_neighbours,
    )
    ends, relations = graph.edge_index[:, subgraphs.triples].T.tolist(), graph.relations
    triples = [
        Triple(graph.names[head], relations[row], graph.names[tail])
        for row, (head, tail) in zip(subgraphs.triples.tolist(), ends)
    ]
    ptr = subgraphs.ptr.tolist()
    rows = [tuple(triples[start:stop]) for start, stop in pairwise(ptr)]
    return [[Candidate(kind, rows[len(KINDS) * b + k]) for k, kind in enumerate(KINDS)] for b in range(len(questions))]


def label_by_utility(
    questions: Sequence[GoldQuestion],
    candidates: Sequence[Sequence[Candidate]],
    groups: Sequence[str],
    index: Index,
    vectors: Embedder | VectorCache,
    join: Join = "vectors",
) -> list[RewardExample]:
    """Examples with `retrieval_utility` as the reward. No language model is asked.

    Args:
        questions: with gold that the index holds.
        candidates: of each question its subgraphs; empty ones are left out, and so is a question with fewer than two.
        groups: of each question.
        index: what is searched.
        vectors: of the index's encoder.
        join: how the retriever joins a query with a triple: by adding their `vectors`, or as one `text`, which is
            encoded anew for every question.
    """
    kept = [(q, found, g) for q, c, g in zip(questions, candidates, groups) if len(found := _filled(c)) > 1]
    if not kept:
        return []
    number_of = _document_numbers_by_id(index)
    for question, _, _ in kept:
        check_gold(question, number_of)
    flat = [(question, candidate) for question, found, _ in kept for candidate in found]
    own = vectors.encode_queries([question.text for question, _, _ in kept])
    q = own.repeat_interleave(torch.tensor([len(found) for _, found, _ in kept]), dim=0)
    searches = _Searches(flat, vectors, join)
    passages, document = index.passages.vectors.cpu(), document_numbers(index)
    gold = [sorted({number_of[name] for name in question.documents}) for question, _ in flat]
    rewards: list[float] = []
    for start in range(0, len(flat), BLOCK):
        part = slice(start, start + BLOCK)
        expanded, ptr = searches.of(part, q)
        rewards += retrieval_utility(q[part], expanded, ptr, passages, document, gold[part]).tolist()
    marks = iter(rewards)
    return [
        RewardExample(question.text, tuple(LabelledSubgraph(c.name, c.texts, next(marks)) for c in found), group)
        for question, found, group in kept
    ]


class _Searches:
    """What each question joined with each triple of its subgraphs searches for; every distinct text is encoded once."""

    def __init__(
        self, subgraphs: Sequence[tuple[GoldQuestion, Candidate]], vectors: Embedder | VectorCache, join: Join
    ) -> None:
        self._join = join
        texts = [
            [f"{question.text} {text}" if join == "text" else text for text in candidate.texts]
            for question, candidate in subgraphs
        ]
        distinct = list(dict.fromkeys(chain.from_iterable(texts)))
        self._vectors = (vectors.encode_queries if join == "text" else vectors.encode)(distinct)
        row_of = {text: row for row, text in enumerate(distinct)}
        self._rows = [[row_of[text] for text in own] for own in texts]

    def of(self, part: slice, q: Tensor) -> tuple[Tensor, Tensor]:
        """Unit vectors of the subgraphs in `part`, float32 [m, d], and the rows of each, int64; q is [S, d], of all."""
        rows = self._rows[part]
        counts = torch.tensor([len(own) for own in rows])
        found = self._vectors[torch.tensor(list(chain.from_iterable(rows)))]
        if self._join == "vectors":
            found = normalize(q[part].repeat_interleave(counts, dim=0) + found, dim=1)
        return found, torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def label_by_judge(
    questions: Sequence[str],
    candidates: Sequence[Sequence[Candidate]],
    groups: Sequence[str],
    judge: SubgraphJudge,
) -> list[RewardExample]:
    """Examples with the mean of a language model's marks for richness, relevance and connectivity as the reward
    (QMKGF, section 3.3). Gold is not needed. A subgraph without usable marks is left out."""
    kept = [(q, found, g) for q, c, g in zip(questions, candidates, groups) if len(found := _filled(c)) > 1]
    flat = [(question, candidate) for question, found, _ in kept for candidate in found]
    marks = iter(judge([question for question, _ in flat], [candidate.triples for _, candidate in flat]))
    examples = []
    for question, found, group in kept:
        marked = [(c, score) for c in found if (score := next(marks)) is not None]
        if len(marked) > 1:
            labelled = tuple(LabelledSubgraph(c.name, c.texts, score.total) for c, score in marked)
            examples.append(RewardExample(question, labelled, group))
    return examples


def _filled(candidates: Sequence[Candidate]) -> list[Candidate]:
    return [candidate for candidate in candidates if candidate.triples]


def _document_numbers_by_id(index: Index) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for number, ids in zip(document_numbers(index).tolist(), index.document_ids):
        numbers |= dict.fromkeys(ids, number)
    return numbers
