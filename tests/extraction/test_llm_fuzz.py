import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from qgrag.corpus.records import Chunk
from qgrag.extraction.facts.llm_entities import LLMEntityExtractor
from qgrag.extraction.facts.llm_triples import VAGUE_RELATIONS, LLMTripleExtractor
from qgrag.extraction.questions.llm_questions import LLMQuestionGenerator
from qgrag.extraction.records import Facts, Triple
from qgrag.llm.interpret import interpret
from qgrag.llm.model import StepEstimate
from qgrag.llm.records import Completion, Conversation, Reply
from qgrag.names.cleaning import clean_name, find_name
from qgrag.names.forms import without_punctuation
from qgrag.retrieval.steps.llm_implicit_nodes import LLMImplicitNodes
from qgrag.retrieval.steps.llm_query_entities import LLMQueryEntities


class Parrot:
    """Says one thing, whatever it is asked."""

    name = fingerprint = "parrot"
    max_tokens = 2048

    def __init__(self, text: str) -> None:
        self._text = text

    def complete(
        self,
        conversations: Sequence[Conversation],
        schema: type[BaseModel] | None = None,
        *,
        step: str,
        owners: Sequence[str] = (),
    ) -> list[Completion]:
        return [interpret(Reply(self._text, "stop"), schema) for _ in conversations]

    def estimate(
        self,
        conversations: Sequence[Conversation],
        schema: type[BaseModel] | None = None,
        *,
        step: str,
        answer_tokens: int,
    ) -> StepEstimate:
        return StepEstimate(step, len(conversations), 0, 0, 0)


words = st.sampled_from(
    [
        "Mira Tolland",
        "port esk",
        "PORT ESK.",
        "1. maps",
        '"maps"',
        "she",
        "李华",
        "<|>",
        "Odra Fenwhistle",
        "",
        "has",
        "x " * 150,
    ]
) | st.text(max_size=12)
scalars = words | st.integers() | st.none() | st.lists(words, max_size=3)
items = st.dictionaries(
    st.sampled_from(
        ["head", "relation", "tail", "name", "type", "description", "source", "target", "question", "answer"]
    ),
    scalars,
    max_size=6,
)
answers = st.one_of(
    st.text(max_size=60),
    st.lists(st.fixed_dictionaries({"head": words, "relation": words, "tail": words}))
    .map(lambda t: {"triples": t})
    .map(json.dumps),
    st.dictionaries(
        st.sampled_from(["triples", "entities", "relations", "pairs", "explicit", "enhanced", "nodes"]),
        st.lists(items | words, max_size=5),
        max_size=3,
    ).map(json.dumps),
)

TEXT = "Mira Tolland lives in Port Esk. She sells maps. 李华认识她。"
CHUNK = Chunk("a", 0, 0, len(TEXT), TEXT, "Port Esk")


def check_facts(facts: Facts) -> None:
    for mention in facts.mentions:
        if mention.start >= 0:
            assert TEXT[mention.start : mention.end] == mention.surface
    for triple in facts.triples:
        for name in (triple.head, triple.tail):
            assert name == clean_name(name) != ""
            assert "Odra" not in name
        assert triple.relation.casefold() not in VAGUE_RELATIONS
        assert without_punctuation(triple.head) != without_punctuation(triple.tail)
    assert all(d.text and d.entity == clean_name(d.entity) != "" for d in facts.descriptions)


@settings(deadline=None, max_examples=150)
@given(answers)
def test_whatever_the_model_says_facts_are_sound(text: str) -> None:
    for extractor in (LLMTripleExtractor(Parrot(text)), LLMEntityExtractor(Parrot(text))):
        (extracted,) = extractor([CHUNK])
        check_facts(extracted.value)
        found = extracted.value != Facts()
        assert (extracted.status == "ok") == found
        assert found or extracted.reason


@settings(deadline=None, max_examples=150)
@given(answers)
def test_whatever_the_model_says_pairs_are_sound(text: str) -> None:
    (extracted,) = LLMQuestionGenerator(Parrot(text))([CHUNK])
    assert (extracted.status == "ok") == bool(extracted.value)
    assert all(p.question and p.answer and (not p.sentence or p.sentence in TEXT) for p in extracted.value)
    assert len({p.question.casefold() for p in extracted.value}) == len(extracted.value)


@settings(deadline=None, max_examples=100)
@given(answers)
def test_whatever_the_model_says_query_steps_are_sound(text: str) -> None:
    query = "Where does Mira Tolland live?"
    (found,) = LLMQueryEntities(Parrot(text))([query])
    if found is not None:
        assert all(find_name(name, query) for name in found.explicit)
        names = [*found.explicit, *found.enhanced]
        assert len(set(map(without_punctuation, names))) == len(names)
    triples = [Triple("Mira Tolland", "lives in", "Port Esk"), Triple("Port Esk", "sells", "maps")]
    (chosen,) = LLMImplicitNodes(Parrot(text))([query], [["Mira Tolland"]], [triples])
    assert set(chosen) <= {"Port Esk", "maps"}
