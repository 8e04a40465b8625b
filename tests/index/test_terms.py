import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgrag.index.terms import terms


def test_terms_of_words_are_lowered_stopped_and_stemmed():
    assert terms("When were the Studios recording in 1958?") == ["studio", "record", "1958"]


def test_words_joined_by_capitals_are_found_whole_and_by_their_parts():
    assert terms("WolfgangSchulz met McDonald") == [
        "wolfgangschulz",
        "wolfgang",
        "schulz",
        "met",
        "mcdonald",
        "mc",
        "donald",
    ]
    assert terms("USA") == ["usa"]


def test_terms_of_chinese_are_overlapping_pairs_and_do_not_swallow_latin():
    assert terms("黑豹队NFL防守") == ["黑豹", "豹队", "nfl", "防守"]
    assert terms("队") == ["队"]


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("cafe\u0301", "caf\u00e9"),
        ("zero\u200bwidth", "zerowidth"),
        ("\ufeffword", "word"),
        ("co\u00adoperation", "cooperation"),
        ("\ufb01lm", "film"),
        ("１９５８ ＦＩＬＭ", "1958 film"),
        ("Straße", "STRASSE"),
        ("שָׁלוֹם", "שלום"),
        ('צה"ל', "צה״ל"),
        ("مُحَمَّد", "محمد"),
        ("ﻣﺤﻤﺪ", "محمد"),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국"),
        ("ﾃｽﾄ", "テスト"),
    ],
)
def test_spellings_that_a_reader_takes_for_equal_have_equal_terms(written, same):
    assert terms(written) == terms(same) != []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
        ("العربية، لغة", ["العربية", "لغة"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("서울에서 왔다", ["서울", "울에", "에서", "왔다"]),
        ("人々はアルバート・シュ", ["人々", "々は", "はア", "アル", "ルバ", "バー", "ート", "シュ"]),
    ],
)
def test_marks_and_scripts_without_spaces(text, expected):
    assert terms(text) == expected


def test_a_thai_word_is_found_inside_a_sentence_with_its_marks():
    assert set(terms("น้ำตก")) < set(terms("เราไปเที่ยวน้ำตกเมื่อวาน"))
    assert not set(terms("น้ำตก")) & set(terms("นก"))


def test_words_cut_at_the_end_of_a_line_are_found_whole_and_by_their_parts():
    assert terms("the exam-\nple") == ["exampl", "exam", "ple"]
    assert terms("exam\u00ad\r\n  ple") == terms("exam-\nple")
    assert terms("Jean-\nLuc") == ["jean", "luc"]


def test_stop_words_in_capitals_are_names_unless_all_is_in_capitals():
    assert terms("Where is the WHO? It has an IT budget.") == ["who", "it", "budget"]
    assert terms("WHO DIRECTED IT") == terms("who directed it") == ["direct"]


@given(st.text())
def test_composed_and_decomposed_text_have_equal_terms(text):
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text))


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_text_has_the_terms_of_the_first_version(text):
    if "-\n" not in text and not any(word.isupper() for word in text.split()):
        assert set(terms(text, 1)) <= set(terms(text))
