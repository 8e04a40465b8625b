import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.corpus.records import Chunk
from qgrag.errors import ConfigError
from qgrag.extraction.questions.local_questions import LocalQuestionConfig, LocalQuestionGenerator
from qgrag.extraction.records import QuestionAnswer

CHAT = (
    "Time: 20260105_11:00\n"
    "AnnLee: I bought a red bike for my sister yesterday.\n"
    "BenOrr: You should try the lake path! I’m going there with Carla. 🎉\n"
    "AnnLee: Do you like camping?\n"
)
FILM = "Silent Harbour (2004 film)"


def chunk(text: str, title: str = "", position: int = 0) -> Chunk:
    return Chunk("d", position, 0, len(text), text, title)


def pairs(text: str, title: str = "", limit: int = 50) -> list[QuestionAnswer]:
    generate = LocalQuestionGenerator(LocalQuestionConfig(pairs=limit, sentences="fallback"))
    return list(generate([chunk(text, title)])[0].value)


def asked(text: str, title: str = "") -> dict[str, str]:
    return {pair.question: pair.answer for pair in pairs(text, title) if pair.question}


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        ("Maria Lind built the bridge.", "What did Maria Lind build?", "the bridge"),
        ("Maria Lind built the bridge.", "Who built the bridge?", "Maria Lind"),
        ("Otto Berg will sell the mill to the city.", "What will Otto Berg sell to the city?", "the mill"),
        ("Otto Berg does not own the mill.", "What does Otto Berg not own?", "the mill"),
        ("The mill was built by Otto Berg in 1851.", "Who was the mill built by?", "Otto Berg"),
        ("The mill was built by Otto Berg in 1851.", "When was the mill built by Otto Berg?", "in 1851"),
        ("In 1860, Otto Berg painted two walls.", "When did Otto Berg paint two walls?", "in 1860"),
        ("In 1860, Otto Berg painted two walls.", "How many walls did Otto Berg paint in 1860?", "two"),
        ("Otto Berg lived in Norway.", "Where did Otto Berg live?", "in Norway"),
        ("Maria Lind is a Swedish engineer.", "Who is Maria Lind?", "a Swedish engineer"),
        ("The opera is based on a novel by Kafka.", "What is the opera based on?", "a novel by Kafka"),
        ("Maria Lind plans to open a museum.", "What does Maria Lind plan to do?", "to open a museum"),
        ("They met Eva Holm, a sculptor from Bergen.", "Who is Eva Holm?", "a sculptor from Bergen"),
    ],
)
def test_english_forms(text: str, question: str, answer: str) -> None:
    assert asked(text).get(question) == answer


@pytest.mark.parametrize(
    ("text", "title", "question", "answer"),
    [
        ("He moved to Paris in 1920.", "Otto Berg", "When did Otto Berg move to Paris?", "in 1920"),
        (
            "Silent Harbour is a 2004 drama film directed by Eva Holm. The film won three prizes.",
            FILM,
            "How many prizes did Silent Harbour win?",
            "three",
        ),
        ("Silent Harbour is a 2004 drama film.", FILM, "What is Silent Harbour?", "a 2004 drama film"),
        (
            "Silent Harbour is a drama film directed by Eva Holm.",
            FILM,
            "Who was Silent Harbour directed by?",
            "Eva Holm",
        ),
        ("Otto Berg (2 May 1850 – 3 June 1911) was a painter.", "Otto Berg", "When was Otto Berg born?", "2 May 1850"),
        ("Otto Berg (2 May 1850 – 3 June 1911) was a painter.", "Otto Berg", "When did Otto Berg die?", "3 June 1911"),
    ],
)
def test_title_stands_for_pronouns_and_kinds(text: str, title: str, question: str, answer: str) -> None:
    assert asked(text, title).get(question) == answer


def test_unknown_pronouns_give_no_question() -> None:
    for text in ("She bought it.", "It was there.", "This is what they said.", "He gave her something."):
        assert asked(text) == {}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What did Ann Lee buy for Ann Lee's sister yesterday?", "a red bike"),
        ("What should Ann Lee try?", "the lake path"),
        ("What does Ben Orr suggest about the lake path?", "You should try the lake path!"),
        ("Who is Ben Orr going with?", "Carla"),
        ("What does Ann Lee ask Ben Orr about camping?", "Do you like camping?"),
        ("Who talks about the lake path?", "Ben Orr"),
    ],
)
def test_chat_lines_name_their_speakers(question: str, answer: str) -> None:
    assert asked(CHAT).get(question) == answer


def test_chat_sentences_stand_on_their_own() -> None:
    found = LocalQuestionGenerator(LocalQuestionConfig(pairs=0))([chunk(CHAT)])[0].value
    turns = [
        "Ann Lee: I bought a red bike for my sister yesterday.",
        "Ben Orr: You should try the lake path! I’m going there with Carla. 🎉",
        "Ann Lee: Do you like camping?",
    ]
    assert [pair.sentence for pair in found] == [*turns, "\n".join(turns)]
    assert all(pair.question == pair.answer == "" for pair in found)


def test_windows_slide_over_the_turns_of_a_chat() -> None:
    chat = "".join(f"{'AB'[i % 2]}: line {i}\n" for i in range(4))

    def nodes(window: int) -> list[str]:
        generate = LocalQuestionGenerator(LocalQuestionConfig(pairs=0, window=window))
        return [pair.sentence for pair in generate([chunk(chat)])[0].value]

    turns = ["A: line 0", "B: line 1", "A: line 2", "B: line 3"]
    assert nodes(1) == turns
    assert nodes(2) == [*turns, "A: line 0\nB: line 1", "B: line 1\nA: line 2", "A: line 2\nB: line 3"]
    assert nodes(9) == [*turns, "\n".join(turns)]


def test_chinese_sentences_get_one_blank_each() -> None:
    found = asked("居里夫人于1903年获得诺贝尔物理学奖。《家》的作者是巴金。人口约为1200万。她去哪里了？")
    assert found == {
        "居里夫人于什么时候获得诺贝尔物理学奖？": "1903年",
        "什么的作者是巴金？": "《家》",
        "人口约为多少？": "1200万",
    }


def test_limit_reaches_every_sentence_before_a_second_question() -> None:
    text = " ".join(f"{name} painted the old church." for name in ("Otto", "Eva", "Maria", "Karl"))
    found = pairs(text, limit=4)
    assert len({pair.sentence for pair in found}) == 4
    assert len(pairs(text, limit=2)) == 2


@pytest.mark.parametrize("text", ["", "  \n ", "a"])
def test_chunk_without_sentences_is_reported_empty(text: str) -> None:
    [outcome] = LocalQuestionGenerator()([chunk(text)])
    assert (outcome.value, outcome.status) == ((), "empty")
    assert outcome.reason


def test_fallback_keeps_sentences_only_where_no_question_is_found() -> None:
    assert [pair.sentence for pair in pairs("Rain, wind and more rain all day.")] == [
        "Rain, wind and more rain all day."
    ]
    assert all(pair.question for pair in pairs("Maria Lind built the bridge."))


def test_wrong_configuration_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"pairs.*-1"):
        LocalQuestionConfig(pairs=-1)
    with pytest.raises(ConfigError, match=r"window.*0"):
        LocalQuestionConfig(window=0)
    with pytest.raises(ConfigError, match="sentences"):
        LocalQuestionConfig(sentences="some")  # type: ignore[arg-type]


def test_fingerprint_follows_the_configuration() -> None:
    def fingerprint(**options: int) -> str:
        return LocalQuestionGenerator(LocalQuestionConfig(**options)).fingerprint  # type: ignore[arg-type]

    assert fingerprint() == fingerprint(pairs=20) != fingerprint(pairs=10)


def test_chunks_do_not_influence_each_other() -> None:
    chunks = [chunk(CHAT), chunk("Otto Berg lived in Norway."), chunk("他于1995年出生。"), chunk("")]
    generate = LocalQuestionGenerator()
    assert generate(chunks) == [generate([one])[0] for one in chunks] == generate(chunks)


ragged_texts = st.lists(
    st.sampled_from(["Ann", "he", "I", "saw", "is", "was born", "in", "1851", "the film", "(", ")", '"', "“", "?", ".",
                     ",", "\n", "\n\n", "Ben: ", "Ann: ", "’s", "n't", "to", "《", "年", "。", "🎉", "\u0301", "who"]),
    max_size=25,
).map(" ".join) | st.text(max_size=80)  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(ragged_texts, st.sampled_from(["", "Otto Berg", FILM, "(", "He"]))
def test_any_text_gives_wellformed_pairs(text: str, title: str) -> None:
    [outcome] = LocalQuestionGenerator(LocalQuestionConfig(pairs=7))([chunk(text, title)])
    questions = [pair.question for pair in outcome.value if pair.question]
    assert len(questions) == len(set(questions)) <= 7
    assert (outcome.status == "empty") == (not outcome.value)
    plain = " ".join(text.split())
    for pair in outcome.value:
        assert pair.sentence
        for line in pair.sentence.split("\n"):
            assert line.split(": ", 1)[-1] in plain or line in plain
        assert bool(pair.question) == bool(pair.answer)
        assert not pair.question or re.fullmatch(r"\S.*[?？]", pair.question)
