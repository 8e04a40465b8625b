import pytest

from qgrag.corpus.searchable import is_blank, searchable


@pytest.mark.parametrize("text", ["", " \n\u3000\t", "\u200b\ufeff\u2060", "\u00ad", "\u2800\u3164", "\x00\x1b"])
def test_what_nobody_sees_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "。", "\u200b.", "\ue000", "🙂"])
def test_what_somebody_sees_is_not(text: str) -> None:
    assert not is_blank(text)


def test_marks_that_make_another_word_stay() -> None:
    assert searchable("हिन्दी, e\u0301t\u00e9, น้ำ") == "हिन्दी, \u00e9t\u00e9, น้ํา"
    assert searchable("plain - text\n") == "plain - text\n"
