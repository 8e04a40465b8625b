"""Doc2Query and Doc2Query--: dense retrieval over chunks to which generated questions are appended."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from torch import Tensor

from qgrag.errors import MissingComponentError
from qgrag.index.reader import Index
from qgrag.index.vectors import VectorIndex
from qgrag.retrieval.base import Ranking, Retriever
from qgrag.retrieval.evidence.records import D2QEvidence


@dataclass(frozen=True)
class D2QConfig:
    """Args:
    answers: whether each question brings its answer with it. The baselines of QCG-RAG append questions alone.
    """

    answers: bool = False


class D2QRetriever(Retriever):
    """Doc2Query (Nogueira et al. 2019) as QCG-RAG compares with it: chunks by the cosine of the expanded text's vector.

    The questions are those of the index's query graph, so both methods read the same ones. The expanded chunks are
    embedded when the first query comes: as much work as embedding all passages. With an embedder that truncates, as in
    the paper, questions beyond its window are not seen; with `window: mean` all are.

    Args:
        index: with a query graph.
        config: see there.
    """

    name = "d2q"
    Config = D2QConfig
    filtered: ClassVar[bool] = False

    def __init__(self, index: Index, config: D2QConfig | None = None) -> None:
        super().__init__(index)
        self.config = config or D2QConfig()
        self._questions = self._questions_of_chunks()

    def _questions_of_chunks(self) -> list[list[str]]:
        """Texts appended to each chunk, in the order in which they were made."""
        questions: list[list[str]] = [[] for _ in self.index.chunks]
        columns = self.index.query_graph.pairs.select(["chunk", "node", "question", "answer"]).to_pydict()
        for chunk, node, question, answer in zip(*columns.values(), strict=True):
            if question and (node >= 0 or not self.filtered):
                questions[chunk].append(f"{question} {answer}" if self.config.answers else question)
        if not any(questions):
            raise MissingComponentError(
                f"{self.index.path}: its query graph holds sentences and no question; "
                "index the documents again with query_graph.nodes at query+answer"
            )
        return questions

    @cached_property
    def _passages(self) -> VectorIndex:
        texts = ["\n".join((c.passage, *asked)) for c, asked in zip(self.index.chunks, self._questions, strict=True)]
        vectors = self.index.embedder.encode(texts, description="Embedding expanded chunks")
        return VectorIndex.build(vectors, self.index.config.vectors, self.index.device)

    def rank(self, queries: Sequence[str], vectors: Tensor, top_k: int) -> Ranking:
        scores, chunks = self._passages.search(vectors, top_k)
        evidence = D2QEvidence("questions with answers" if self.config.answers else "questions")
        return Ranking(chunks, scores, [evidence] * len(queries))


class D2QMinusRetriever(D2QRetriever):
    """Doc2Query-- (Gospodinov et al. 2023): only questions that the index's alpha kept, those closest to the chunk."""

    name = "d2q--"
    filtered = True
