from qgrag.names.forms import name_tokens, words_only
from qgrag.names.matching import NameMatcher


def test_the_longest_of_overlapping_names_is_found_and_a_possessive_is_left_out() -> None:
    matcher = NameMatcher({words_only(name): name for name in ("Port", "Port Esk", "Mira", "Esk Harbour")})
    text = "MIRA left Port Esk's harbour for another port."
    found = matcher.longest(name_tokens(text))
    assert [(m.value, text[m.start : m.end]) for m in found] == [
        ("Mira", "MIRA"),
        ("Port Esk", "Port Esk"),
        ("Port", "port"),
    ]


def test_all_matches_overlap() -> None:
    matcher = NameMatcher({("a", "b"): 1, ("b",): 2, (): 3})
    assert len(matcher) == 2
    assert [m.value for m in matcher.all(name_tokens("a b"))] == [1, 2]
