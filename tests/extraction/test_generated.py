from collections import Counter

import pytest

from qgrag.corpus.records import Chunk
from qgrag.extraction.generated import NameGate, outcome, share_found, supporting_sentence
from qgrag.llm.records import CompletionError


def chunk(text: str, title: str = "") -> Chunk:
    return Chunk("doc", 0, 0, len(text), text, title)


TEXT = "Mira Tolland lives in Port Esk. She sells maps. The town lies by the sea."


def test_names_of_the_prompt_that_the_chunk_does_not_have_are_dropped() -> None:
    gate = NameGate(chunk(TEXT, "Port Esk"), "Odra Fenwhistle lives in Port Esk")
    raw = ["MIRA TOLLAND", "Port Esk", "Odra Fenwhistle", "she", "...", "Esk Harbour Authority", "它"]
    assert [gate(name) for name in raw] == ["Mira Tolland", "Port Esk", "", "", "", "Esk Harbour Authority", ""]
    assert gate.counts == Counter(pronouns=2, example_names=1, empty_names=1)
    assert gate("true") == gate("Not specified") == ""
    assert NameGate(chunk("They played No and Yes."), "")("yes") == "Yes"
    assert gate.counts["filler_names"] == 2
    assert gate.is_example("Odra Fenwhistle lives")
    assert not gate.is_example("Mira Tolland lives")


@pytest.mark.parametrize(
    ("names", "claim", "sentence"),
    [
        (("Mira Tolland", "Port Esk"), "", "Mira Tolland lives in Port Esk."),
        (("maps",), "", "She sells maps."),
        ((), "by which sea does the town lie", "The town lies by the sea."),
        (("Nobody",), "", ""),
        ((), "", ""),
    ],
)
def test_the_sentence_behind_a_claim(names: tuple[str, ...], claim: str, sentence: str) -> None:
    assert supporting_sentence(TEXT, names, claim) == sentence


def test_the_sentence_behind_a_claim_in_chinese() -> None:
    assert supporting_sentence("李华去了北京。王伟留在上海。", ("王伟",), "留在") == "王伟留在上海。"
    assert supporting_sentence("李华去了北京。王伟留在上海。", (), "谁去了北京") == "李华去了北京。"


@pytest.mark.parametrize(
    ("claim", "share"),
    [
        ("by the sea", 1.0),
        ("Port Esk", 1.0),
        ("Mira Tolland of Rome", 11 / 17),
        ("a person", 1 / 7),
        ("北京", 1.0),
        ("在上海", 1 / 3),
        ("", 1.0),
    ],
)
def test_how_much_of_a_claim_a_source_has(claim: str, share: float) -> None:
    assert share_found(claim, "MiraTolland met Mira and Tolland. A town, PortEsk, by the sea. 李华在北京。") == share


def test_outcomes() -> None:
    error = CompletionError("timeout", "no answer")
    assert outcome((1,), True, [error], Counter(x=1, y=0), "-").status == "ok"
    assert outcome((1,), True, [], Counter(x=1, y=0), "-").counts == {"x": 1}
    assert outcome((), False, [error], Counter(), "-").reason == "timeout: no answer"
    assert outcome((), False, [], Counter(repeats=2), "-").status == "failed"
    empty = outcome((), False, [], Counter(), "nothing there")
    assert (empty.status, empty.reason) == ("empty", "nothing there")
