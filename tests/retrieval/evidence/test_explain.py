import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.retrieval.evidence.drawing import _apart, _covered, draw_svg, legend
from qgrag.retrieval.evidence.evidence_graph import Edge, evidence_edges, node_kinds
from qgrag.retrieval.evidence.explain import explain, path_text, shortened, triple_text
from qgrag.retrieval.evidence.explain_html import results_page, write_page
from qgrag.retrieval.results import Hit, RetrievalResult

STEPS = [
    {"head": "Ada", "relation": "born in", "tail": "Riga", "chunks": ["d1-0"], "forward": False},
    {"head": "Film", "relation": "directed by", "tail": "Ada", "chunks": ["d0-0"], "forward": False},
    {"head": "Film", "relation": "stars", "tail": "Bo", "chunks": ["d0-0"], "forward": True},
]
TRIPLE = {"kind": "triple", "head": "Film", "relation": "stars", "tail": "Bo", "chunks": ["d0-0"], "similarity": 0.5}
LINK = {"surface": "film", "start": 0, "end": 4, "entity": 1, "name": "Film", "how": "alias", "score": 0.9}


def result(evidence, *items, query="Who?", text="A note.", retriever="dual"):
    hit = Hit("d0-0", "d0", ("d0", "copy"), 0, 7, 0.5, text, "Title", tuple(items))
    return RetrievalResult(query, retriever, (hit,), evidence)


DUAL = {
    "links": [LINK],
    "nodes": [
        {"name": "Film", "kind": "explicit", "weight": 1.0},
        {"name": "Ada", "kind": "implicit", "weight": 0.6},
    ],
    "triples": [TRIPLE],
    "paths": [{"kind": "path", "steps": STEPS}],
}


def test_path_arrows_point_from_head_to_tail():
    assert path_text(STEPS) == "Riga ←born in— Ada ←directed by— Film —stars→ Bo"
    assert path_text([]) == ""


def test_triple_line_has_arrow_similarity_and_chunk():
    assert triple_text(TRIPLE) == "Film —stars→ Bo  [0.50]  in d0-0"


def test_text_of_a_dual_result():
    text = explain(result(DUAL, TRIPLE, {"kind": "path", "steps": STEPS}))
    for line in (
        "entities: 'film' -> Film [alias 0.90]",
        "nodes: Film [explicit 1.00]; Ada [implicit 0.60]",
        "shortest paths between them: 1",
        "  Riga ←born in— Ada ←directed by— Film —stars→ Bo",
        "1. d0, copy, characters 0-7, score 0.500  Title",
    ):
        assert line in text.splitlines()


def test_text_of_qmkgf_names_winner_and_what_was_added():
    fused = [{**TRIPLE, "added": True}]
    subgraph = {"kind": "one-hop", "score": 0.25, "nodes": ["Film", "Bo"], "triples": [TRIPLE]}
    empty = {"kind": "multi-hop", "score": None, "nodes": ["Film"], "triples": []}
    evidence = {
        "links": [],
        "scorer": "cosine",
        "subgraphs": [subgraph, empty],
        "winner": "one-hop",
        "threshold": 0.25,
        "fused": fused,
    }
    item = {"kind": "search", "joined_with": "entity", "item": "Bo"}
    lines = explain(result(evidence, item)).splitlines()
    assert "  one-hop: 0.250, 1 triples; Film, Bo  <- winner" in lines
    assert "  multi-hop: empty, 0 triples; Film" in lines
    assert "fused: 1 triples, 1 of them from the other subgraphs" in lines
    assert "   found by query + entity 'Bo'" in lines


def test_text_of_fg_and_of_an_ensemble():
    entity = {"entity": "Film", "weak": ["Film"], "strong": [], "reached": 3, "questions": ["why?"], "summary": "S."}
    text = explain(result({"members": {"fg": {"entities": [entity], "fallback": "dense retrieval: none"}}}))
    for part in ("fg:", "  fallback: dense retrieval: none", "    strong context: none", "    summary: S."):
        assert part in text.splitlines()
    vote = {"kind": "vote", "retriever": "fg", "rank": 2, "evidence": [TRIPLE]}
    assert "fg ranks it 2: Film —stars→ Bo" in explain(result({}, vote))


def test_long_lists_say_how_much_more_there_is():
    text = explain(result(DUAL | {"triples": [TRIPLE] * 9}, *[TRIPLE] * 5), max_items=2)
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


QUESTION = {"kind": "question node", "question": "Why?", "answer": "so", "sentence": "S", "hop": 0, "score": 1.0}
DESCRIPTION = {"kind": "description", "entity": "Film", "of": "Ada", "text": "T", "weight": 1.0, "relevance": 1.0}
SEARCH = {"kind": "search", "joined_with": "entity", "item": "Bo"}


@pytest.mark.parametrize(
    ("items", "head"),
    [
        ([QUESTION], "Why?"),
        ([DESCRIPTION], "Ada"),
        ([TRIPLE], "Film"),
        ([{**TRIPLE, "tail": "Title"}], "Title"),
        ([SEARCH], "Bo"),
        ([{**SEARCH, "joined_with": "triple", "item": "Film stars Bo", "head": "Film", "tail": "Bo"}], "Film"),
        ([{**SEARCH, "joined_with": "triple", "item": "Film is Title", "head": "Film", "tail": "Title"}], "Title"),
        ([{"kind": "vote", "retriever": "fg", "rank": 1, "evidence": [DESCRIPTION]}], "Ada"),
    ],
)
def test_a_hit_is_joined_to_what_brought_it(items, head):
    found = result({}, *items)
    assert evidence_edges(found) == [Edge(head, "", "1. d0", "source")]
    assert node_kinds(found) == {"1. d0": "document"} | ({"Why?": "question"} if head == "Why?" else {})


def test_an_ensembles_hit_is_joined_to_its_questions_too():
    questions = [{**QUESTION, "question": f"{i}?"} for i in range(5)]
    vote = {"kind": "vote", "retriever": "qcg", "rank": 1, "evidence": [TRIPLE, *questions]}
    heads = [edge.head for edge in evidence_edges(result({}, vote))]
    assert heads == ["Film", "0?", "1?", "2?"]


def test_a_hit_that_no_node_brought_has_no_arrow():
    assert evidence_edges(result({}, {"kind": "search", "joined_with": "", "item": ""})) == []


def test_triples_of_losing_subgraphs_are_drawn_apart_from_the_fused():
    lost = {**TRIPLE, "relation": "shown in", "tail": "Riga"}
    subgraphs = [{"kind": "one-hop", "triples": [TRIPLE, lost]}]
    found = result({"subgraphs": subgraphs, "fused": [{**TRIPLE, "added": False}], "links": [LINK]})
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
    many = DUAL | {"triples": [{**TRIPLE, "tail": f"Bo {i}"} for i in range(100)]}
    first = draw_svg(result(many), max_edges=10)
    assert first == draw_svg(result(many), max_edges=10)
    assert first.startswith("<svg")
    assert first.count("Bo ") < 20
    assert draw_svg(result({})) == ""


HOSTILE = "<script>alert('x')</script> $\\frac{1}{2}$ & \"quotes\" 居里"


def test_page_shows_hostile_text_and_loads_nothing(tmp_path):
    triple = {**TRIPLE, "head": HOSTILE, "tail": "http://example.org/<img src=x>"}
    hostile = result(DUAL | {"triples": [triple]}, triple, query=HOSTILE, text=HOSTILE)
    write_page(tmp_path / "page.html", [hostile, result({})])
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
