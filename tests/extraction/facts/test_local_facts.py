import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError
from qgrag.extraction.chat import chat_turns, spoken_name
from qgrag.extraction.facts.local_facts import LocalFactExtractor, LocalFactExtractorConfig
from qgrag.extraction.records import ALSO_CALLED, Extracted, Facts

CHAT = """Time: 20240102_10:00
MinaPark: Did the parcel from Lisbon arrive?
OttoBerg: Yes, Ana Silva signed for it.
MinaPark: Great, thank you!"""


@pytest.fixture(scope="module")
def extractor() -> LocalFactExtractor:
    return LocalFactExtractor()


def extract(extractor: LocalFactExtractor, text: str, title: str = "") -> Extracted[Facts]:
    return extractor([Chunk("d", 0, 0, len(text), text, title)])[0]


def triples(outcome: Extracted[Facts]) -> set[tuple[str, str, str]]:
    return {(t.head, t.relation, t.tail) for t in outcome.value.triples}


def test_film_passage_gives_what_it_says_under_its_title(extractor):
    text = "Agni is a 2004 Bengali film directed by Swapan Saha. It was not released in India. The film stars Jeet."
    found = triples(extract(extractor, text, "Agni (2004 film)"))
    assert ("Agni (2004 film)", "directed by", "Swapan Saha") in found
    assert ("Agni (2004 film)", "not released in", "India") in found
    assert ("Agni (2004 film)", "stars", "Jeet") in found
    assert ("Agni (2004 film)", ALSO_CALLED, "Agni") in found


def test_kinship_and_life_dates(extractor):
    text = (
        "Ermengarde of Tours (20 June 804 – 20 March 851) was the daughter of Hugh of Tours. "
        "In 821 she married Lothair. Her brother was Adalard of Paris."
    )
    found = triples(extract(extractor, text, "Ermengarde of Tours"))
    assert ("Ermengarde of Tours", "daughter of", "Hugh of Tours") in found
    assert ("Ermengarde of Tours", "married", "Lothair") in found
    assert ("Ermengarde of Tours", "died", "20 March 851") in found
    assert ("Ermengarde of Tours", "brother", "Adalard of Paris") in found


def test_every_name_below_a_title_is_joined_to_it(extractor):
    outcome = extract(extractor, "Dangerous days, they say, came with Robert Florey and Joan Blondell.", "The Crown")
    assert {t.tail for t in outcome.value.triples if t.head == "The Crown"} >= {"Robert Florey", "Joan Blondell"}


def test_title_that_the_text_does_not_repeat_is_a_mention(extractor):
    outcome = extract(extractor, "nothing here", "Some Title")
    assert [(m.surface, m.start, m.end) for m in outcome.value.mentions] == [("Some Title", -1, -1)]


def test_chat_speakers_are_people_and_lines_their_descriptions(extractor):
    outcome = extract(extractor, CHAT)
    found = triples(outcome)
    assert ("Mina Park", "talks with", "Otto Berg") in found
    assert ("Mina Park", "speaks of", "Lisbon") in found
    assert ("Otto Berg", "speaks of", "Ana Silva") in found
    assert [m.surface for m in outcome.value.mentions].count("MinaPark") == 2
    assert "Otto Berg: Yes, Ana Silva signed for it." in {d.text for d in outcome.value.descriptions}


def test_list_of_fields_is_no_chat():
    assert chat_turns("Born: in Paris in 1900\nDied: in Rome\nOccupation: painter of walls") == []
    assert chat_turns("Time: 20240102_10:00\nTime: 20240102_11:00") == []


def test_speaker_labels_are_split_into_words():
    assert [spoken_name(s) for s in ("JenniferMoore", "Li Hua", "McDonald", "ANNA")] == [
        "Jennifer Moore",
        "Li Hua",
        "Mc Donald",
        "ANNA",
    ]


def test_chinese_gets_names_by_script_without_the_english_pipeline(extractor):
    outcome = extract(extractor, "她的书《放射性通论》在 Paris 出版。居里夫人获得诺贝尔奖。", "居里夫人")
    names = {m.surface for m in outcome.value.mentions}
    assert {"放射性通论", "Paris", "居里夫人"} <= names
    assert ("居里夫人", "提及", "放射性通论") in triples(outcome)


def test_text_without_a_name_says_so(extractor):
    outcome = extract(extractor, "nothing of note happened there.")
    assert (outcome.status, outcome.value.mentions) == ("empty", ())
    assert outcome.reason


def test_triples_over_the_limit_are_counted():
    text = "Anna met Boris. Anna met Clara. Anna met Dmitri."
    outcome = extract(LocalFactExtractor(LocalFactExtractorConfig(max_triples=1)), text)
    assert len(outcome.value.triples) == 1
    assert outcome.counts["triples_over_limit"] >= 1
    with pytest.raises(ConfigError, match="max_triples"):
        LocalFactExtractorConfig(max_triples=0)


def test_chunks_do_not_depend_on_each_other(extractor):
    texts = ["Anna Berg lives in Oslo.", "", "她在《红楼梦》里。", CHAT]
    chunks = [Chunk("d", i, 0, len(t), t, "") for i, t in enumerate(texts)]
    assert extractor(chunks) == [extractor([chunk])[0] for chunk in chunks]


@settings(max_examples=30, deadline=None)
@given(st.text(alphabet="ABab .,:()'\"\n–居里《》1é", max_size=120), st.text(alphabet="Ab (x),", max_size=12))
def test_mentions_are_spans_of_the_text(text, title):
    outcome = extract(LocalFactExtractor(), text, title.strip())
    for mention in outcome.value.mentions:
        if mention.start >= 0:
            assert text[mention.start : mention.end] == mention.surface
        else:
            assert mention.surface == title.strip()
    for triple in outcome.value.triples:
        assert triple.head
        assert triple.relation
        assert triple.tail
        assert triple.head != triple.tail
