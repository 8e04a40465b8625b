"""The JSON of results: what docs/evidence.md says of it, and that it can be read back."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from qgrag.errors import InputError
from qgrag.retrieval.evidence.base import Evidence, GraphEvidence, Item, OtherEvidence, OtherItem, View, in_memory
from qgrag.retrieval.evidence.explain import explain_evidence
from qgrag.retrieval.evidence.items import TripleItem
from qgrag.retrieval.evidence.reading import ITEMS, evidence_from_dict, item_from_dict
from qgrag.retrieval.registry import RETRIEVERS, load_retriever
from tests.retrieval.cross_encoders import write_cross_encoder

PAGE = Path(__file__).resolve().parents[3] / "docs" / "evidence.md"
QUESTIONS = ["Who founded the city in which the director of Battleship Potemkin was born?", "what is this about"]
ABSENT = {"head", "tail"}
"""Members of a `search` that is not of a triple."""


def documented():
    """Members by section of the page, as paths such as `nodes[].name`."""
    sections = {}
    for part in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        rows = re.findall(r"^\| (`.*?) \|", part, flags=re.M)
        sections[part.split("\n", 1)[0]] = {name for row in rows for name in re.findall(r"`(.+?)`", row)}
    return sections


SECTIONS = documented()


def paths(values):
    """Members of a JSON object as paths; items, links and the records of members are sections of their own."""
    found = set()
    for name, value in values.items():
        parts = value if isinstance(value, list) else ()
        parts = [one for one in parts if isinstance(one, dict) and one.get("kind") not in ITEMS]
        if parts and name != "links":
            found |= {f"{name}[].{path}" for one in parts for path in paths(one)}
        else:
            found.add(name)
    return found


def check_item(item):
    section = SECTIONS[f"item: {item['kind']}"]
    assert paths(item) <= section
    assert section - paths(item) <= (ABSENT if item["kind"] == "search" else set())
    for own in item.get("evidence", ()):
        check_item(own)


def check_record(name, record):
    section = SECTIONS.get(name.removesuffix("--"), set())
    known = section | SECTIONS["optional"]
    lists = {path[: mark.start()] for path in section for mark in re.finditer(re.escape("[]"), path)}
    assert paths(record) <= known | lists
    assert {path.split("[")[0] for path in section} == record.keys() - SECTIONS["optional"]
    for link in record.get("links", ()):
        assert link.keys() == SECTIONS["link"]
    for triple in (*record.get("triples", ()), *record.get("paths", ())):
        check_item(triple)
    for member, own in record.get("members", {}).items():
        check_record(member, own)


@pytest.fixture(scope="module")
def results(demo_index, tmp_path_factory):
    """Both questions, as every retriever answers them."""
    encoder = str(write_cross_encoder(tmp_path_factory.mktemp("models") / "cross-encoder"))
    further = {"rerank": {"first": "kg", "depth": 5, "cross_encoder": {"model": encoder}}}
    return {
        name: load_retriever(demo_index, name, **further.get(name, {})).retrieve(QUESTIONS, top_k=5)
        for name in RETRIEVERS
    }


@pytest.mark.parametrize("name", RETRIEVERS)
def test_the_json_has_the_members_that_the_page_names(results, name):
    for result in results[name]:
        plain = json.loads(json.dumps(result.to_dict()))
        assert plain.keys() == SECTIONS["result"]
        for hit in plain["hits"]:
            assert hit.keys() == SECTIONS["hit"]
            for item in hit["evidence"]:
                check_item(item)
        check_record("kg" if name == "rerank" else name, plain["evidence"])


def test_every_section_of_an_item_is_of_a_kind():
    assert {name.removeprefix("item: ") for name in SECTIONS if name.startswith("item: ")} == set(ITEMS)


@pytest.mark.parametrize("name", RETRIEVERS)
def test_what_is_read_back_equals_what_was_written(results, name):
    for result in results[name]:
        plain = json.loads(json.dumps(result.to_dict()))
        read = evidence_from_dict(plain["evidence"])
        assert (read, type(read)) == (result.evidence, type(result.evidence))
        assert not isinstance(read, OtherEvidence)
        for hit, own in zip(result.hits, plain["hits"], strict=True):
            items = tuple(map(item_from_dict, own["evidence"]))
            assert items == hit.evidence
            assert not any(isinstance(item, OtherItem) for item in items)


def test_rows_of_the_index_stay_in_memory(results, demo_index):
    graph = demo_index.knowledge_graph
    for item in results["dual"][0].evidence.triples:
        assert graph.names[item.head_row] == item.head
        assert graph.names[item.tail_row] == item.tail
        assert graph.relations[item.triple_row] == item.relation
        assert tuple(demo_index.chunks[row].id for row in item.chunk_rows) == item.chunks
    for hit in results["qmkgf"][0].hits:
        for item in hit.evidence:
            if item.joined_with == "entity":
                assert graph.names[item.item_row] == item.item
            elif item.joined_with == "triple":
                assert graph.triple_texts([item.item_row]) == [item.item]
    for hit in results["qcg"][0].hits:
        for item in hit.evidence:
            pair = demo_index.query_graph.pairs.slice(int(demo_index.query_graph.first_pair[item.node_row]), 1)
            assert pair.to_pylist()[0]["question"] == item.question
    for hit in results["fg"][0].hits:
        for item in hit.evidence:
            assert (graph.names[item.of_row], demo_index.chunks[item.chunk_row].id) == (item.of, hit.chunk_id)


@dataclass(frozen=True, slots=True)
class WordItem(Item):
    kind = "word"
    word: str
    row: int = in_memory(-1)


@dataclass(frozen=True, slots=True)
class WordEvidence(GraphEvidence):
    words: tuple[str, ...]

    @property
    def line(self):
        return f"words: {', '.join(self.words)}"


def test_evidence_of_another_package_keeps_its_members_line_and_views():
    item = WordItem("film", row=3)
    assert (item.to_dict(), item.line) == ({"kind": "word", "word": "film"}, "word film")
    assert (item_from_dict(item.to_dict()).to_dict(), item_from_dict(item.to_dict()).line) == (
        item.to_dict(),
        item.line,
    )
    views = (View("Words", ("film",)),)
    record = WordEvidence((), ("film", "city"), context=views, fallback="none")
    assert explain_evidence(record) == ["fallback: none", "words: film, city"]
    kept = evidence_from_dict(json.loads(json.dumps(record.to_dict())))
    assert (kept.to_dict(), kept.context, kept.fallback) == (record.to_dict(), views, "none")


def test_nothing_to_tell_is_an_empty_object():
    assert Evidence().to_dict() == {}
    assert evidence_from_dict({}) == Evidence()


def test_a_known_kind_with_other_members_is_kept_as_it_is():
    values = {"kind": "triple", "head": "Ada"}
    assert not isinstance(item_from_dict(values), TripleItem)
    assert item_from_dict(values).to_dict() == values


def test_what_cannot_be_evidence_is_refused_by_name():
    with pytest.raises(InputError, match="no 'kind' among its members word"):
        item_from_dict({"word": "film"})
    with pytest.raises(InputError, match="a PathStep has the members head, relation, tail, chunks, forward, not head"):
        item_from_dict({"kind": "path", "steps": [{"head": "Ada"}]})
