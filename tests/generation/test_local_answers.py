"""Answers by rules, and the views of a graph for a reader."""

from dataclasses import replace

import pytest

from qgrag.generation.answers import AnswerConfig
from qgrag.generation.context import build_context
from qgrag.generation.graph_views import graph_views
from qgrag.generation.local_answers import LocalAnswerWriter
from qgrag.retrieval.evidence.base import Evidence
from qgrag.retrieval.evidence.items import PathItem, PathStep, TripleItem
from qgrag.retrieval.evidence.records import DualEvidence, EntityContext, FGEvidence, KGEvidence
from qgrag.retrieval.results import Hit, RetrievalResult

TEXT = (
    "Nadia Boulanger was born in Paris in 1887. She taught at the Conservatoire for decades. "
    "Her sister Lili won the Prix de Rome. The sea was calm that day."
)


def result(query: str, *texts: str) -> RetrievalResult:
    hits = tuple(Hit(f"d{i}-0", f"d{i}", (f"d{i}",), 0, len(t), 1 / (1 + i), t) for i, t in enumerate(texts))
    return RetrievalResult(query, "naive", hits)


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("When was Nadia Boulanger born?", "1887"),
        ("In which city was Nadia Boulanger born?", "Paris"),
        ("Who won the Prix de Rome?", "Lili"),
    ],
)
def test_short_answers_are_of_the_kind_asked_for(embedder, query, answer):
    (made,) = LocalAnswerWriter(embedder.encode_queries)([result(query, TEXT)])
    assert made.text == answer
    assert made.citations[0].chunk_id == "d0-0"


def test_a_title_is_no_answer(embedder):
    text = f"# Nadia Boulanger\n\n{TEXT}"
    hit = Hit("d0-0", "d0", ("d0",), 0, len(text), 1.0, text, title="Nadia Boulanger")
    alone = replace(hit, text="# Nadia Boulanger")
    asked = [RetrievalResult("When was Nadia Boulanger born?", "naive", (each,)) for each in (hit, alone)]
    made, none = LocalAnswerWriter(embedder.encode_queries)(asked)
    assert made.text == "1887"
    assert not none.answered


def test_long_answers_are_sentences_of_several_passages_with_citations(embedder):
    writer = LocalAnswerWriter(embedder.encode_queries, AnswerConfig("long"), sentences=3)
    (made,) = writer([result("What did Nadia Boulanger do?", "She taught. Rain fell.", TEXT)])
    assert made.text.count("[") == 3
    assert {citation.chunk_id for citation in made.citations} <= {"d0-0", "d1-0"}


def test_batches_do_not_mix_and_no_evidence_gives_no_answer(embedder):
    writer = LocalAnswerWriter(embedder.encode_queries)
    queries = ["When was Nadia Boulanger born?", "Anything?", "Who won the Prix de Rome?"]
    made = writer([result(queries[0], TEXT), result(queries[1]), result(queries[2], TEXT)])
    assert [answer.text for answer in made] == ["1887", "", "Lili"]
    assert made[1].error
    assert not made[1].answered
    assert all(answer.error for answer in writer.without_evidence(queries))


STEPS = (PathStep("A", "met", "B", (), forward=True), PathStep("C", "wrote", "B", (), forward=False))
DUAL = DualEvidence(
    (), (), (TripleItem("A", "met", "B", (), 0.1), TripleItem("C", "wrote", "A", (), 0.9)), (PathItem(STEPS),)
)
FG = FGEvidence((), (EntityContext("A", ("A",), (), 1, (), "A did much."), EntityContext("B", ("B",), (), 1, (), "")))


def test_views_keep_the_direction_of_every_edge():
    statements, paths = graph_views(DUAL)
    (summaries,) = graph_views(FG)
    assert statements.lines == ("C | wrote | A", "A | met | B")
    assert paths.lines == ("A -[met]-> B <-[wrote]- C",)
    assert summaries.lines == ("A: A did much.",)
    assert graph_views(KGEvidence((), DUAL.triples)) == [statements]
    assert graph_views(Evidence()) == []


def test_a_reader_sees_the_views_above_the_passages():
    found = RetrievalResult("q", "dual", result("q", "passage").hits, DUAL)
    text = build_context(found, 5, 1000).text
    assert text.index("C | wrote | A") < text.index("A -[met]-> B") < text.index("[1]\npassage")


def test_the_reader_sees_the_header_of_a_table_that_a_passage_continues():
    hit = Hit("d-1", "d", ("d",), 18, 23, 1.0, "B | 2", "Cities", header="name | year")
    shown = build_context(RetrievalResult("q", "naive", (hit,)), 5, 1000).text
    assert shown == "[1] Cities\nname | year\nB | 2"
    assert hit.to_dict()["header"] == "name | year"
    assert "header" not in Hit("d-0", "d", ("d",), 0, 1, 1.0, "x").to_dict()
