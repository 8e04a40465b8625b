import unicodedata

import pytest
from hypothesis import given, settings

from qgrag.names.cleaning import clean_name
from qgrag.names.forms import name_tokens, without_case, without_punctuation, without_spaces, words_only
from tests.names.test_cleaning import NAMES


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("PARIS", "paris"),
        ("The Beatles", "Beatles"),
        ("Lincoln's", "Lincoln"),
        ("Lincoln’s", "Lincoln"),
        ("James'", "James"),
        ("O’Brien", "O'Brien"),
        ("J. K. Rowling", "J.K. Rowling"),
        ("U.S.", "US"),
        ("Dr.Smith", "Dr. Smith"),
        ("Jean-Luc", "Jean Luc"),
        ("约翰·史密斯", "约翰史密斯"),
        ("李 华", "李华"),
        ("ＡＢＣ", "abc"),
        ("里斯（电影）", "里斯 (电影)"),
        ("Straße", "STRASSE"),
        ("New  York", "new york"),
        ("The WHO's", "WHO"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("Zo\u200bë", "Zoë"),
        ("Co\u00adburg", "Coburg"),
        ("\ufb01lm", "film"),
        ("שָׁלוֹם", "שלום"),
    ],
)
def test_spellings_of_one_name_are_equal_without_punctuation(left: str, right: str) -> None:
    assert without_punctuation(left) == without_punctuation(right) != ""


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The Thing (film)", "The Thing"),
        ("The Thing (film)", "The Thing (novel)"),
        ("C++", "C#"),
        ("2. Bundesliga", "Bundesliga"),
        ("iPhone 3.5", "iPhone 35"),
        ("李华", "李花"),
        ("$100", "100%"),
        ("IT", "it"),
        ("the WHO", "who"),
    ],
)
def test_other_names_stay_apart(left: str, right: str) -> None:
    assert without_punctuation(left) != without_punctuation(right)


def test_a_name_made_of_the_article_alone_keeps_it() -> None:
    assert without_punctuation("The The") == "the"
    assert without_punctuation("The") == "the"


def test_without_case_drops_width_and_ligatures_too() -> None:
    assert without_case("ＡＢＣ Straße ﬁlm") == "abc strasse film"
    assert without_case("ABC") == "abc"


def test_without_spaces_keeps_those_between_digits() -> None:
    assert without_spaces("Li Hua") == without_spaces("LiHua") == "lihua"
    assert without_spaces("19 84") != without_spaces("1984")
    assert without_spaces("...") == ""


def test_words_only_drops_what_no_word_holds() -> None:
    assert words_only("Love, Honor, and Oh-Baby!") == ("love", "honor", "and", "oh", "baby")
    assert words_only("J. K. Rowling's 李华") == ("jk", "rowlings", "李", "华")
    assert words_only("...") == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी भाषा", ("हिन्दी", "भाषा")),
        ("Cafe\u0301 Zo\u200bë", ("caf\u00e9", "zoë")),
        ("Wolf-\ngang Jean-\nLuc", ("wolfgang", "jean", "luc")),
        ("שָׁלוֹם", ("שלום",)),
        ("ที่นี่", ("ที่", "นี่")),
        ("서울", ("서", "울")),
        (unicodedata.normalize("NFD", "서울"), ("서", "울")),
        ("ﾃｶﾞ", ("テ", "ガ")),
        ("ア・イ", ("ア", "イ")),
    ],
)
def test_words_of_many_scripts_are_whole(text: str, words: tuple[str, ...]) -> None:
    assert words_only(text) == words


def test_a_token_knows_where_it_stands_with_and_without_its_possessive() -> None:
    text = "Anna's boat"
    anna, boat = name_tokens(text)
    assert (anna.form, anna.bare) == ("annas", "anna")
    assert (text[anna.start : anna.end], text[anna.start : anna.bare_end]) == ("Anna's", "Anna")
    assert (anna.cased, boat.cased) == (True, False)


@settings(deadline=None, max_examples=400)
@given(NAMES)
def test_the_form_of_a_form_is_itself(raw: str) -> None:
    form = without_punctuation(raw)
    assert without_punctuation(form) == form == without_punctuation(clean_name(raw))
    assert bool(form) == bool(clean_name(raw))
