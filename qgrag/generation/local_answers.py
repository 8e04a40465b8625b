"""Answers taken out of the evidence by rules and the embedding model, with no language model."""

import re
from collections.abc import Callable, Sequence

from torch import Tensor

from qgrag.corpus.sentences import split_sentences
from qgrag.extraction.name_spans import name_spans
from qgrag.extraction.spacy_pipeline import DEFAULT_PIPELINE, parse
from qgrag.generation.answers import Answer, AnswerConfig, Citation
from qgrag.generation.context import reader_views
from qgrag.names.vocabulary import VALUE_TYPES
from qgrag.retrieval.results import Hit, RetrievalResult
from qgrag.retrieval.steps.local import marginal_relevance

Encode = Callable[[Sequence[str]], Tensor]
Told = tuple[int, Hit | None, str]
"""The number of a passage and the passage, 0 and None for a line of a graph's view, and what it says."""
PLACES = frozenset({"GPE", "LOC", "FAC"})
ASKED = (
    (re.compile(r"\bhow (many|much|old|long|far)\b", re.I), frozenset({"CARDINAL", "QUANTITY", "MONEY", "PERCENT"})),
    (re.compile(r"\bwhen\b|\b(what|which) (year|date|day|time|month)\b", re.I), frozenset({"DATE", "TIME"})),
    (re.compile(r"\bwhere\b|\b(what|which) (city|country|place|town|state)\b", re.I), PLACES),
    (re.compile(r"\bwhom?\b|\bwhose\b", re.I), frozenset({"PERSON", "ORG", "OTHER"})),
)
NO_EVIDENCE = "rules answer from evidence alone, and there is none"


class LocalAnswerWriter:
    """The counterpart of `AnswerWriter` that asks no language model.

    A short answer is the name, date or number of the kind asked for in the sentence most similar to the question, or
    that sentence where there is none. A long one is the most relevant sentences that do not repeat each other. Both
    cite where they are from; a document's title says nothing and is passed over. Such answers show that a pipeline
    works; they are no substitute for a reader.

    Args:
        encode: texts -> unit vectors, float32 [n, d].
        config: style and passages read; the bound on tokens does not matter here.
        sentences: sentences of a long answer.
        novelty: weight of being unlike the sentences picked, from 0 to 1.
        pipeline: spaCy pipeline with a tagger, a parser and an entity recogniser.
    """

    def __init__(
        self,
        encode: Encode,
        config: AnswerConfig | None = None,
        *,
        sentences: int = 5,
        novelty: float = 0.3,
        pipeline: str = DEFAULT_PIPELINE,
    ) -> None:
        self.config = config or AnswerConfig()
        self._encode = encode
        self._sentences = sentences
        self._novelty = novelty
        self._pipeline = pipeline

    def __call__(self, results: Sequence[RetrievalResult]) -> list[Answer]:
        """One answer a result, in order; all sentences of a batch are embedded together."""
        told = [self._told(result) for result in results]
        queries = self._encode([result.query for result in results])
        vectors = self._encode([text for row in told for _, _, text in row])
        answers, start = [], 0
        count = self._sentences if self.config.style == "long" else 1
        for result, query, row in zip(results, queries, told, strict=True):
            own = vectors[start : start + len(row)]
            start += len(row)
            picked = [row[i] for i in marginal_relevance(own, own @ query, count, self._novelty)] if row else []
            answers.append(self._answer(result, picked))
        return answers

    def without_evidence(self, queries: Sequence[str]) -> list[Answer]:
        """Nothing: rules know nothing of their own."""
        return [Answer(query, "", answered=False, error=NO_EVIDENCE) for query in queries]

    def _told(self, result: RetrievalResult) -> list[Told]:
        """Sentences of the passages, and the lines of a graph's views, which cite nothing."""
        passages: list[Told] = [
            (number, hit, hit.text[a:b])
            for number, hit in enumerate(result.hits[: self.config.max_passages], start=1)
            for a, b in split_sentences(hit.text)
            if hit.text[a:b].lstrip("# ") != hit.title
        ]
        return passages + [(0, None, line) for view in reader_views(result.evidence) for line in view.lines]

    def _answer(self, result: RetrievalResult, picked: Sequence[Told]) -> Answer:
        if not picked:
            return Answer(result.query, "", answered=False, error=NO_EVIDENCE, usage=result.usage)
        if self.config.style == "long":
            text = " ".join(f"{sentence} [{number}]" if number else sentence for number, _, sentence in picked)
        else:
            text = self._phrase(result.query, picked[0][2])
        cited = {number: hit for number, hit, _ in picked if hit is not None}
        citations = tuple(
            Citation(number, hit.chunk_id, hit.document_id, hit.document_ids, hit.start, hit.end, hit.title)
            for number, hit in cited.items()
        )
        return Answer(result.query, text, citations, usage=result.usage)

    def _phrase(self, query: str, sentence: str) -> str:
        """What the question asks for in a sentence; the whole sentence where nothing of the kind is there."""
        (doc,) = parse([sentence], self._pipeline, description="Reading answers")
        spans = [(span.type, span.text(doc)) for span in name_spans(doc)]
        spans += [(entity.label_, entity.text) for entity in doc.ents if entity.label_ in VALUE_TYPES]
        known = query.casefold()
        new = [(kind, text) for kind, text in spans if text.casefold() not in known]
        for asked, kinds in ASKED:
            if asked.search(query):
                return next((text for kind, text in new if kind in kinds), sentence)
        return next((text for kind, text in new if kind not in VALUE_TYPES), sentence)
