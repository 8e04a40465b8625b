import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.retrieval.evidence.base import Evidence
from qgrag.retrieval.evidence.drawing import _apart, _covered, draw_svg, legend
from qgrag.retrieval.evidence.evidence_graph import Edge, evidence_edges, node_kinds
from qgrag.retrieval.evidence.explain import explain
from qgrag.retrieval.evidence.explain_html import results_page, write_page
from qgrag.retrieval.evidence.items import (
    DescriptionItem,
    NamedTriple,
    PathItem,
    PathStep,
    QuestionNodeItem,
    SearchItem,
    TripleItem,
    VoteItem,
    path_text,
)
from qgrag.retrieval.evidence.records import (
    DualEvidence,
    EnsembleEvidence,
    EntityContext,
    EntityNode,
    FGEvidence,
    FusedTriple,
    QMKGFEvidence,
    Subgraph,
)
from qgrag.retrieval.evidence.text import shortened
from qgrag.retrieval.linking.link import Link
from qgrag.retrieval.results import Hit, RetrievalResult

STEPS = (
    PathStep("Ada", "born in", "Riga", ("d1-0",), forward=False),
    PathStep("Film", "directed by", "Ada", ("d0-0",), forward=False),
    PathStep("Film", "stars", "Bo", ("d0-0",), forward=True),
)
TRIPLE = TripleItem("Film", "stars", "Bo", ("d0-0",), 0.5)
LINK = Link("film", 0, 4, 1, "Film", "alias", 0.9)
NOTHING = Evidence()


def result(evidence, *items, query="Who?", text="A note.", retriever="dual"):
    hit = Hit("d0-0", "d0", ("d0", "copy"), 0, 7, 0.5, text, "Title", tuple(items))
    return RetrievalResult(query, retriever, (hit,), evidence)


DUAL = DualEvidence(
    (LINK,),
    (EntityNode("Film", "explicit", 1.0), EntityNode("Ada", "implicit", 0.6)),
    (TRIPLE,),
    (PathItem(STEPS),),
)


def test_path_arrows_point_from_head_to_tail():
    assert path_text(STEPS) == "Riga ←born in— Ada ←directed by— Film —stars→ Bo"
    assert path_text(()) == ""


def test_triple_line_has_arrow_similarity_and_chunk():
    assert TRIPLE.line == "Film —stars→ Bo  [0.50]  in d0-0"


def test_text_of_a_dual_result():
    text = explain(result(DUAL, TRIPLE, PathItem(STEPS)))
    for line in (
        "entities: 'film' -> Film [alias 0.90]",
        "nodes: Film [explicit 1.00]; Ada [implicit 0.60]",
        "shortest paths between them: 1",
        "  Riga ←born in— Ada ←directed by— Film —stars→ Bo",
        "1. d0, copy, characters 0-7, score 0.500  Title",
    ):
        assert line in text.splitlines()


def test_text_of_qmkgf_names_winner_and_what_was_added():
    fused = FusedTriple("Film", "stars", "Bo", 0.5, added=True)
    subgraph = Subgraph("one-hop", 0.25, ("Film", "Bo"), (NamedTriple("Film", "stars", "Bo"),))
    empty = Subgraph("multi-hop", None, ("Film",), ())
    evidence = QMKGFEvidence((), "cosine", (subgraph, empty), "one-hop", 0.25, (fused,))
    lines = explain(result(evidence, SEARCH)).splitlines()
    assert "  one-hop: 0.250, 1 triples; Film, Bo  <- winner" in lines
    assert "  multi-hop: empty, 0 triples; Film" in lines
    assert "fused: 1 triples, 1 of them from the other subgraphs" in lines
    assert "   found by query + entity 'Bo'" in lines


def test_text_of_fg_and_of_an_ensemble():
    entity = EntityContext("Film", ("Film",), (), 3, ("why?",), "S.")
    text = explain(result(EnsembleEvidence({"fg": FGEvidence((), (entity,), fallback="dense retrieval: none")})))
    for part in ("fg:", "  fallback: dense retrieval: none", "    strong context: none", "    summary: S."):
        assert part in text.splitlines()
    vote = VoteItem("fg", 2, (TRIPLE,))
    assert "fg ranks it 2: Film —stars→ Bo" in explain(result(NOTHING, vote))


def test_long_lists_say_how_much_more_there_is():
    text = explain(result(replace(DUAL, triples=(TRIPLE,) * 9), *[TRIPLE] * 5), max_items=2)
    assert "  … and 7 more" in text.splitlines()
    assert "   … and 3 more" in text.splitlines()


def test_nothing_found_is_said():
    assert explain(RetrievalResult("q", "bm25", ())).splitlines()[-1] == "no chunk found"


def test_edges_start_with_paths_and_come_once():
    edges = evidence_edges(result(DUAL))
    assert edges == [
        Edge("Ada", "born in", "Riga", "path"),
        Edge("Film", "directed by", "Ada", "path"),
        Edge("Film", "stars", "Bo", "path"),
    ]


QUESTION = QuestionNodeItem("d0-0-0", "Why?", "so", "S", 0, 1.0)
DESCRIPTION = DescriptionItem("Film", "Ada", "T", 1.0, 1.0, "d0-0")
SEARCH = SearchItem("entity", "Bo")


@pytest.mark.parametrize(
    ("items", "head"),
    [
        ([QUESTION], "Why?"),
        ([DESCRIPTION], "Ada"),
        ([TRIPLE], "Film"),
        ([replace(TRIPLE, tail="Title")], "Title"),
        ([SEARCH], "Bo"),
        ([SearchItem("triple", "Film stars Bo", "Film", "Bo")], "Film"),
        ([SearchItem("triple", "Film is Title", "Film", "Title")], "Title"),
        ([VoteItem("fg", 1, (DESCRIPTION,))], "Ada"),
    ],
)
def test_a_hit_is_joined_to_what_brought_it(items, head):
    found = result(NOTHING, *items)
    assert evidence_edges(found) == [Edge(head, "", "1. d0", "source")]
    assert node_kinds(found) == {"1. d0": "document"} | ({"Why?": "question"} if head == "Why?" else {})


def test_an_ensembles_hit_is_joined_to_its_questions_too():
    questions = [replace(QUESTION, question=f"{i}?") for i in range(5)]
    vote = VoteItem("qcg", 1, (TRIPLE, *questions))
    heads = [edge.head for edge in evidence_edges(result(NOTHING, vote))]
    assert heads == ["Film", "0?", "1?", "2?"]


def test_a_hit_that_no_node_brought_has_no_arrow():
    assert evidence_edges(result(NOTHING, SearchItem("", ""))) == []


def test_triples_of_losing_subgraphs_are_drawn_apart_from_the_fused():
    kept, lost = NamedTriple("Film", "stars", "Bo"), NamedTriple("Film", "shown in", "Riga")
    subgraph = Subgraph("one-hop", 0.5, ("Film",), (kept, lost))
    fused = FusedTriple("Film", "stars", "Bo", 0.5, added=False)
    found = result(QMKGFEvidence((LINK,), "cosine", (subgraph,), "one-hop", 0.5, (fused,)))
    assert evidence_edges(found) == [Edge("Film", "stars", "Bo", "fused"), Edge("Film", "shown in", "Riga", "left out")]
    nodes, arrows = legend(found)
    assert [style.meaning for style in nodes] == ["named in the query", "other entity"]
    assert [style.meaning for style in arrows] == ["fused triple", "triple of a subgraph, not fused"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(*[st.floats(0, 300)] * 2, *[st.floats(5, 90)] * 2), min_size=2, max_size=14))
def test_boxes_do_not_overlap_once_moved_apart(boxes):
    table = np.array(boxes)
    sizes = table[:, 2:]
    moved = _apart(table[:, :2], sizes)
    for one in range(len(boxes)):
        for other in range(one):
            assert _covered(moved[one], sizes[one], moved[other], sizes[other]) < 1.0


def test_picture_is_the_same_each_time_and_bounded():
    many = replace(DUAL, triples=tuple(replace(TRIPLE, tail=f"Bo {i}") for i in range(100)))
    first = draw_svg(result(many), max_edges=10)
    assert first == draw_svg(result(many), max_edges=10)
    assert first.startswith("<svg")
    assert first.count("Bo ") < 20
    assert draw_svg(result(NOTHING)) == ""


HOSTILE = "<script>alert('x')</script> $\\frac{1}{2}$ & \"quotes\" 居里"


def test_page_shows_hostile_text_and_loads_nothing(tmp_path):
    triple = replace(TRIPLE, head=HOSTILE, tail="http://example.org/<img src=x>")
    hostile = result(replace(DUAL, triples=(triple,)), triple, query=HOSTILE, text=HOSTILE)
    write_page(tmp_path / "page.html", [hostile, result(NOTHING)])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not list(tmp_path.glob("*.partial"))
    assert "<script" not in page.lower()
    assert "<img" not in page.lower()
    assert "&lt;script&gt;alert" in page
    assert "居里" in page
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page)
    assert "default-src 'none'" in page
    assert page.count("<svg") == 1


def test_every_retriever_of_the_demo_can_be_explained(demo_index):
    from qgrag.retrieval.methods.dual.retriever import DualRetriever
    from qgrag.retrieval.methods.qcg import QCGRetriever

    query = ["Where was the director of Solaris born?"]
    for retriever in (DualRetriever(demo_index), QCGRetriever(demo_index)):
        found = retriever.retrieve(query, top_k=3)
        assert explain(found[0]).startswith(query[0])
        assert "<svg" in results_page(found)


@pytest.mark.parametrize(("text", "expected"), [("a  b\nc", "a b c"), ("abcdef", "abcd…")])
def test_texts_are_shown_on_one_line(text, expected):
    assert shortened(text, 5 if text.startswith("a ") else 4) == expected
