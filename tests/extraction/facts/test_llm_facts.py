import json
from pathlib import Path
from typing import Any

import pytest

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError
from qgrag.extraction.facts.llm_entities import LLMEntityExtractor
from qgrag.extraction.facts.llm_triples import LLMTripleExtractor
from qgrag.extraction.records import Description, Mention
from qgrag.llm.config import Sampling
from qgrag.llm.prompts import PromptConfig, Prompts
from qgrag.llm.usage import measure
from tests.llm.server import Answer, Behaviour, Call, connected, fail, say, serving

REFUSAL = say(None, refusal="no")
ENGLISH = Chunk("a", 0, 0, 0, "Mira Tolland lives in Port Esk (founded 1702). She sells maps.", "Port Esk")
CHINESE = Chunk("b", 0, 0, 0, "李华住在北京。他认识王伟。", "日记")
BLANK = Chunk("c", 0, 0, 0, "***", "")


def triples(*rows: Any) -> Answer:
    return say(json.dumps({"triples": [dict(zip(("head", "relation", "tail"), r)) for r in rows]}, ensure_ascii=False))


def by_text(answers: dict[str, Answer]) -> Behaviour:
    return lambda call: next((a for part, a in answers.items() if part in call.prompt), triples())


def test_triples_are_clean_and_supported() -> None:
    behave = by_text(
        {
            "Mira": triples(
                ("MIRA TOLLAND", "lives in", "Port Esk"),
                ("Mira Tolland", "Lives in", "the port esk"),
                ('"Port Esk"', "was founded in", 1702),
                ("Mira Tolland", "has", "maps"),
                ("She", "sells", "maps"),
                ("Port Esk", "is called", "Port Esk"),
                ("Odra Fenwhistle", "founded", "Lantern Fair"),
                ("Mira Tolland", "sells", None),
            ),
            "李华": triples(("李华", "住在", "北京"), ("李华", "认识", "王伟")),
        }
    )
    with serving(behave) as server, connected(server) as model, measure() as meter:
        english, chinese, blank = LLMTripleExtractor(model)([ENGLISH, CHINESE, BLANK])
    rows = [(t.head, t.relation, t.tail) for t in english.value.triples]
    assert rows == [("Mira Tolland", "lives in", "Port Esk"), ("Port Esk", "was founded in", "1702")]
    assert english.value.triples[0].sentence == "Mira Tolland lives in Port Esk (founded 1702)."
    assert english.value.mentions[0] == Mention("Mira Tolland", "OTHER", 0, 12)
    assert english.counts == {
        "example_names": 2,
        "invalid_items": 1,
        "pronouns": 1,
        "repeats": 1,
        "self_loops": 1,
        "unnamed_triples": 2,
        "vague_relations": 1,
    }
    assert [(t.head, t.relation, t.tail, t.sentence) for t in chinese.value.triples] == [
        ("李华", "住在", "北京", "李华住在北京。"),
        ("李华", "认识", "王伟", "他认识王伟。"),
    ]
    assert blank.status == "empty"
    assert meter.of("a-0")["triples"].calls == 1
    for chunk, extracted in ((ENGLISH, english), (CHINESE, chinese)):
        for m in extracted.value.mentions:
            assert m.start < 0 or chunk.text[m.start : m.end] == m.surface


def test_lists_of_three_are_triples_too() -> None:
    answer = say(json.dumps([["Mira Tolland", "sells", "maps"], ["too", "short"]]))
    with serving(lambda call: answer) as server, connected(server) as model:
        (extracted,) = LLMTripleExtractor(model)([ENGLISH])
    assert [(t.head, t.relation, t.tail) for t in extracted.value.triples] == [("Mira Tolland", "sells", "maps")]
    assert extracted.counts == {"invalid_items": 1}


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (fail(400), "failed", "request: HTTP 400"),
        (say("I would rather not."), "failed", "invalid"),
        (say("", "length"), "failed", "empty"),
        (triples(("Odra Fenwhistle", "founded", "Lantern Fair")), "failed", "nothing usable"),
        (triples(), "empty", "no statement"),
    ],
)
def test_a_chunk_that_gave_nothing_says_why(answer: Answer, status: str, reason: str) -> None:
    with serving(lambda call: answer) as server, connected(server) as model:
        (extracted,) = LLMTripleExtractor(model)([ENGLISH])
    assert extracted.status == status
    assert reason in extracted.reason
    assert not extracted.value.triples


def entities(found: list[dict[str, str]], relations: list[dict[str, str]]) -> Answer:
    return say(json.dumps({"entities": found, "relations": relations}, ensure_ascii=False))


FIRST = entities(
    [
        {"name": "mira tolland", "type": "person", "description": "Mira Tolland sells maps."},
        {"name": "Port Esk", "type": "PLACE", "description": ""},
        {"name": "Odra Fenwhistle", "type": "PERSON", "description": "A trader."},
        {"name": "maps", "type": "very odd type!", "description": "maps"},
    ],
    [{"source": "Mira Tolland", "relation": "lives in", "target": "Port Esk", "description": "She lives there."}],
)
SECOND = entities(
    [{"name": "Mira Tolland", "type": "IDEA", "description": "Mira Tolland lives in Port Esk."}],
    [{"source": "Port Esk", "relation": "was founded in", "target": "1702", "description": ""}],
)


def test_gleaning_continues_the_conversation_and_joins_what_it_finds() -> None:
    def behave(call: Call) -> Answer:
        return FIRST if len(call.body["messages"]) == 4 else SECOND

    with serving(behave) as server, connected(server) as model, measure() as meter:
        (extracted,) = LLMEntityExtractor(model)([ENGLISH])
        assert [turn["role"] for turn in server.calls[1].body["messages"][3:]] == ["user", "assistant", "user"]
    facts = extracted.value
    assert [(m.surface, m.type) for m in facts.mentions] == [
        ("Mira Tolland", "PERSON"),
        ("Port Esk", "PLACE"),
        ("maps", "OTHER"),
        ("1702", "OTHER"),
    ]
    assert facts.descriptions == (
        Description("Mira Tolland", "Mira Tolland sells maps."),
        Description("Mira Tolland", "Mira Tolland lives in Port Esk."),
    )
    assert [t.sentence for t in facts.triples] == [
        "She lives there.",
        "Mira Tolland lives in Port Esk (founded 1702).",
    ]
    assert extracted.counts == {"example_names": 1}
    assert meter.steps["entities"].calls == 2


@pytest.mark.parametrize(("gleaning", "calls"), [(0, 1), (1, 2), (3, 3)])
def test_gleaning_ends_when_nothing_is_missing(gleaning: int, calls: int) -> None:
    def behave(call: Call) -> Answer:
        return entities([], []) if call.number == 2 else FIRST

    with serving(behave) as server, connected(server) as model:
        LLMEntityExtractor(model, gleaning=gleaning)([ENGLISH])
        assert len(server.calls) == calls


def test_a_failed_gleaning_costs_only_itself() -> None:
    with serving(lambda call: FIRST if call.number == 0 else REFUSAL) as server, connected(server) as model:
        (extracted,) = LLMEntityExtractor(model)([ENGLISH])
    assert extracted.status == "ok"
    assert extracted.counts["failed_answers"] == 1
    assert len(extracted.value.triples) == 1


def test_settings_and_prompts_make_the_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("=== user ===\n${language} ${title} ${text}", "utf-8")
    hot_sampling = Sampling(temperature=1)
    with (
        serving(lambda call: say("x")) as server,
        connected(server) as model,
        connected(server, sampling=hot_sampling) as hot,
    ):
        extractors = [
            LLMTripleExtractor(model),
            LLMTripleExtractor(hot),
            LLMTripleExtractor(model, Prompts(PromptConfig("German"))),
            LLMTripleExtractor(model, Prompts(PromptConfig(files={"triples": str(path)}))),
            LLMEntityExtractor(model),
            LLMEntityExtractor(model, gleaning=0),
        ]
        assert len({e.fingerprint for e in extractors}) == len(extractors)
        assert LLMTripleExtractor(model).fingerprint == extractors[0].fingerprint
        with pytest.raises(ConfigError, match="gleaning"):
            LLMEntityExtractor(model, gleaning=-1)


def test_estimates_send_nothing() -> None:
    with serving(lambda call: say("x")) as server, connected(server) as model:
        plain = LLMTripleExtractor(model).estimate([ENGLISH, CHINESE])
        gleaned = LLMEntityExtractor(model).estimate([ENGLISH, CHINESE])
        assert not server.calls
    assert (plain.calls, gleaned.calls) == (2, 4)
    assert plain.prompt_tokens > 400
    assert gleaned.completion_tokens > plain.completion_tokens > 0
