"""Answer metrics against values computed by hand, in English and Chinese."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.errors import InputError, MissingComponentError, MissingExtraError
from qgrag.evaluation.answers.metrics import (
    ANSWER_METRICS,
    Language,
    answer_metrics,
    check_language,
    load_meteor,
    split_chinese,
)
from qgrag.evaluation.datasets import Question


def test_english_by_hand() -> None:
    values = answer_metrics("The black cat sat down", ["the cat sat"])
    assert values == pytest.approx(
        {
            "exact_match": 0,
            "f1": 2 * (2 / 4) * (2 / 2) / (2 / 4 + 2 / 2),  # articles fall away: cat and sat of 4 and of 2
            "rouge1": 2 * (3 / 5) * (3 / 3) / (3 / 5 + 3 / 3),
            "contains": 1,  # cat sat stands in black cat sat down
            "rouge1_precision": 3 / 5,
            "rouge1_recall": 3 / 3,
            "rougeL": 2 * (3 / 5) * (3 / 3) / (3 / 5 + 3 / 3),
            "bleu1": 2 / 5,  # `The` is not `the`
        }
    )
    assert tuple(values) == ANSWER_METRICS


def test_order_tells_rouge_l_from_rouge_1() -> None:
    values = answer_metrics("sat cat the", ["the cat sat"])
    assert values["rouge1"] == 1
    assert values["rougeL"] == pytest.approx(1 / 3)


def test_short_answers_pay_the_brevity_penalty() -> None:
    assert answer_metrics("cat", ["the cat sat"])["bleu1"] == pytest.approx(math.exp(1 - 3 / 1))


def test_squad_normalisation() -> None:
    values = answer_metrics("An Eiffel-Tower!", ["the eiffeltower"])
    assert (values["exact_match"], values["f1"]) == (1, 1)


def test_chinese_by_hand() -> None:
    values = answer_metrics("黑猫坐下了。", ["黑猫坐着"], "zh")
    assert values == pytest.approx(
        {
            "exact_match": 0,
            "f1": 2 * (3 / 5) * (3 / 4) / (3 / 5 + 3 / 4),
            "rouge1": 2 * (3 / 5) * (3 / 4) / (3 / 5 + 3 / 4),
            "contains": 0,
            "rouge1_precision": 3 / 5,
            "rouge1_recall": 3 / 4,
            "rougeL": 2 * (3 / 5) * (3 / 4) / (3 / 5 + 3 / 4),
            "bleu1": 3 / 6,  # the full stop is a token
        }
    )


def test_chinese_punctuation_and_mixed_words() -> None:
    values = answer_metrics("《NFL》，308分！", ["nfl 308 分"], "zh")
    assert (values["exact_match"], values["f1"], values["rouge1"]) == (1, 1, 1)
    assert split_chinese("卡罗莱纳Panthers队") == "卡 罗 莱 纳 panthers 队"


def test_chinese_needs_its_language() -> None:
    assert answer_metrics("北京市", ["北京"], "zh")["f1"] == pytest.approx(0.8)
    assert answer_metrics("北京市", ["北京"], "en")["f1"] == 0


@pytest.mark.parametrize("language", ["en", "zh"])
def test_best_reference_counts(language: str) -> None:
    values = answer_metrics("1912", ["in the year 1912", "1912", "never"], language)
    assert set(values.values()) == {1.0}


def test_bleu_takes_all_references_at_once() -> None:
    values = answer_metrics("x y", ["x", "y"])
    assert values["bleu1"] == 1  # both tokens stand in some reference, and the answer is longer than the nearest
    best = pytest.approx(2 * (1 / 2) * (1 / 1) / (1 / 2 + 1 / 1))
    assert (values["f1"], values["rouge1"]) == (best, best)
    assert answer_metrics("x y", ["x z z z", "z y z z z"])["bleu1"] == pytest.approx(math.exp(1 - 4 / 2))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("reference", ["Berlin", "a", "The", "?", "A."])
@pytest.mark.parametrize("answer", ["", " ", "!"])
def test_empty_answer(answer: str, reference: str, language: Language) -> None:
    values = answer_metrics(answer, [reference], language)
    assert {values["exact_match"], values["f1"], values["contains"], values["rouge1"]} == {0.0}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("answer", "references", "exact_match"),
    [("A", ["a"], 1), ("(A)", ["B", "A."], 1), ("The", ["A"], 0), ("A", ["A cat"], 0), ("B", ["A"], 0)],
)
def test_options_named_by_an_article(
    answer: str, references: list[str], exact_match: float, language: Language
) -> None:
    values = answer_metrics(answer, references, language)
    assert [values[name] for name in ("exact_match", "f1", "contains")] == [exact_match] * 3


def test_full_width_forms_count_as_plain_ones() -> None:
    assert set(answer_metrics("１２月ＮＢＡ", ["12月NBA"], "zh").values()) == {1.0}
    assert answer_metrics("１２月", ["12月"], "en")["exact_match"] == 0


def question(*answers: str) -> Question:
    return Question("q", "?", answers, (), "single")


def test_chinese_is_not_scored_as_english() -> None:
    chinese = [question("北京"), question("308", "1976年"), question("Panthers队", "黑豹队"), question()]
    with pytest.raises(InputError, match=r"3 of 4 reference answers are Chinese.*--language zh"):
        check_language(chinese, "en")
    check_language(chinese, "zh")


@pytest.mark.parametrize(
    "questions",
    [
        [],
        [question(), question("1912")],
        [question("Beijing (北京)"), question("the Elbe"), question("北京")],
        [question("北京"), question("Berlin")],
    ],
)
def test_english_with_a_few_chinese_words_is_english(questions: list[Question]) -> None:
    check_language(questions, "en")


def test_refusals() -> None:
    with pytest.raises(InputError, match="at least one reference"):
        answer_metrics("x", [])
    with pytest.raises(InputError, match="'fr' has no answer metrics"):
        answer_metrics("x", ["x"], "fr")  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(["en", "zh"]))
def test_values_lie_between_0_and_1(prediction: str, reference: str, language: str) -> None:
    values = answer_metrics(prediction, [reference], language)
    assert all(0 <= value <= 1 + 1e-6 for value in values.values())


class Thesaurus:
    """Stands in for NLTK's WordNet reader: `car` and `auto` mean the same."""

    def synsets(self, word: str) -> list[SimpleNamespace]:
        if word not in ("car", "auto"):
            return []
        lemmas = [SimpleNamespace(name=lambda name=name: name) for name in ("car", "auto", "motor_car")]
        return [SimpleNamespace(lemmas=lambda: lemmas)]


def test_meteor_by_hand() -> None:
    pytest.importorskip("nltk")
    meteor = load_meteor(Thesaurus())
    fragmentation = 0.5 * (1 / 4) ** 3
    assert meteor("The auto was parked.", ["the car was parking"]) == pytest.approx(1 - fragmentation)
    harmonic = (2 / 3 * 2 / 4) / (0.9 * 2 / 3 + 0.1 * 2 / 4)
    assert meteor("the red car", ["x the y car"]) == pytest.approx(harmonic * (1 - 0.5 * (2 / 2) ** 3))
    assert meteor("bike", ["car", "bike"]) > meteor("bike", ["car"]) == 0
    with pytest.raises(InputError, match="at least one reference"):
        meteor("x", [])


def test_meteor_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        import nltk
    except ImportError:
        with pytest.raises(MissingExtraError, match=r"qgrag\[answers\]"):
            load_meteor()
        return
    monkeypatch.setattr(nltk.data, "path", [])
    with pytest.raises(MissingComponentError, match=r"nltk\.downloader wordnet"):
        load_meteor()


@pytest.mark.parametrize(
    ("answer", "reference", "language", "contains"),
    [
        ("He was born in the Paris of 1900.", "Paris of 1900", "en", 1),
        ("parisian", "Paris", "en", 0),
        ("Yes, the cat.", "A cat", "en", 1),
        ("anything", "the", "en", 0),
        ("他住在北京。", "北京", "zh", 1),
    ],
)
def test_contains_goes_by_whole_words(answer: str, reference: str, language: Language, contains: float) -> None:
    assert answer_metrics(answer, [reference], language)["contains"] == contains
