import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.names.cleaning import MAX_NAME_CHARS, clean_model_name, clean_name, find_name


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ('"Paris"', "Paris"),
        ("“Paris”", "Paris"),
        ("「李华」", "李华"),
        ("《红楼梦》", "红楼梦"),
        ("**Paris**", "Paris"),
        ("`foo_bar`", "foo_bar"),
        ("[Paris](https://example.org/a)", "Paris"),
        ("- Paris", "Paris"),
        ("(2) Paris", "Paris"),
        ("## Paris", "Paris"),
        ("  New \n York\t", "New York"),
        ("Li\u200bHua", "LiHua"),
        ("Paris,", "Paris"),
        ("Rome.", "Rome"),
        ("U.S.", "U.S."),
        ("Martin Luther King Jr.", "Martin Luther King Jr."),
        ("The Thing (film)", "The Thing (film)"),
        ('"The Thing" (film)', "The Thing (film)"),
        ("里斯（电影）", "里斯（电影）"),
        ("Paris)", "Paris"),
        ("James'", "James"),
        ("O'Brien", "O'Brien"),
        ("Love Actually", "Love Actually"),
        ("C#", "C#"),
        ("C++", "C++"),
        ("Cafe\u0301", "Café"),
        ("", ""),
        (" \n", ""),
        ("...", ""),
        ("<|>", ""),
        ("x" * (MAX_NAME_CHARS + 1), ""),
    ],
)
def test_clean_name(raw: str, cleaned: str) -> None:
    assert clean_name(raw) == cleaned


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("1. Paris", "Paris"),
        ("1、李华", "李华"),
        ("Entity: Paris", "Paris"),
        ("实体：李华", "李华"),
        ("Paris<|>location", "Paris"),
        ("<|>Paris", "Paris"),
        ("Paris<SEP>", "Paris"),
        ("Paris##", "Paris"),
        ("Paris | city", "Paris"),
        ("Lyon (correction: Paris)", "Paris"),
        ("Lyon (should be Paris)", "Paris"),
        ("Lyon, wait, I mean Paris", "Paris"),
        ("Lyon -> Paris", "Paris"),
        ("Lyon. Correction: Paris", "Paris"),
        ("Lyon - wait, actually Paris", "Paris"),
        ("Lyon (oops, I meant Paris)", "Paris"),
        ("Lyon... no, it should be Paris", "Paris"),
        ("Paris (self-corrected from Lyon)", "Paris"),
        ("王伟（自我纠正：李华）", "李华"),
        ("[1] Paris", "Paris"),
        ("a) Paris", "Paris"),
        ("<b>Paris</b>", "Paris"),
        ("<entity>Paris</entity>", "Paris"),
        ("&quot;O&#39;Brien&quot;", "O'Brien"),
        ('{"name": "Paris"}', "Paris"),
        ('("entity"<|>Paris<|>CITY)', "Paris"),
        ("entity", "entity"),
        ("Paris\\n", "Paris"),
        ("Actually (film)", "Actually (film)"),
        ("Rivertown, Corrections Office", "Rivertown, Corrections Office"),
        ("王伟（更正：李华）", "李华"),
        ("new new new new new", ""),
        ("哈" * 50, ""),
        ("U.S.", "U.S."),
        ("J. K. Rowling", "J. K. Rowling"),
        ("Sorry, Wrong Number (film)", "Sorry, Wrong Number (film)"),
        ("", ""),
    ],
)
def test_clean_model_name(raw: str, cleaned: str) -> None:
    assert clean_model_name(raw) == cleaned


@pytest.mark.parametrize(
    ("raw", "source", "cleaned"),
    [
        ("1. FC KÖLN", "Er spielt beim 1. FC Köln.", "1. FC Köln"),
        ("PARIS", "She lives in Paris.", "Paris"),
        ("1. art", "The Party is over; art is long.", "art"),
        ("art", "The Party is over.", "art"),
        ('"new york"', "He left New\nYork.", "New York"),
        ("李华", "昨天李华来了。", "李华"),
    ],
)
def test_the_source_decides_on_the_wording(raw: str, source: str, cleaned: str) -> None:
    assert clean_model_name(raw, source) == cleaned


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("Caf\u00e9 Zo\u00eb", "the Cafe\u0301 Zo\u200be\u0308!", "Cafe\u0301 Zo\u200be\u0308"),
        ("film", "a \ufb01lm", "\ufb01lm"),
        ("Cafe", "the Caf\u00e9", None),
        ("Cafe", "the Cafe\u0301", None),
        ("\u200b", "a\u200bb", "\u200b"),
    ],
)
def test_a_name_is_found_however_its_characters_are_stored(name: str, text: str, found: str | None) -> None:
    span = find_name(name, text)
    assert (span and text[slice(*span)]) == found


NAMES = st.text(max_size=60) | st.lists(
    st.sampled_from([*'().李华· aé"', "the ", "'s", "**", "1. ", "B.", "<|>", "->"]),
    max_size=12,
).map("".join)


@settings(deadline=None, max_examples=400)
@given(NAMES)
def test_cleaning_is_stable(raw: str) -> None:
    cleaned = clean_name(raw)
    assert clean_name(cleaned) == cleaned
    assert len(cleaned) <= MAX_NAME_CHARS


@settings(deadline=None, max_examples=300)
@given(NAMES, st.text(max_size=80))
def test_a_model_name_is_clean_and_one_line(raw: str, source: str) -> None:
    name = clean_model_name(raw, source)
    assert name == clean_name(name)
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name)
