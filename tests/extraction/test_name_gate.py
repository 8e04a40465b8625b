from collections import Counter

from qgrag.corpus.records import Chunk
from qgrag.extraction.name_gate import NameGate


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


def test_acronyms_that_look_like_pronouns_stay_where_the_chunk_writes_them_in_capitals() -> None:
    gate = NameGate(chunk("Those who advise the WHO need IT. It is there."), "")
    assert [gate(name) for name in ("WHO", "the WHO", "IT", "who", "It", "HE")] == ["WHO", "the WHO", "IT", "", "", ""]
    assert NameGate(chunk("SHE KNOWS WHO DID IT."), "")("IT") == ""
