from rapidfuzz import fuzz

from qgrag.names.spelling import SpellingIndex


def test_spelling_index_agrees_with_comparing_all_names():
    names = [
        f"{a}{b}{c}" for a in ("anna", "boris", "carl") for b in ("berg", "lind", "moss") for c in ("", "ii", "son")
    ]
    index = SpellingIndex(names)
    for query in ("anaberg", "borislind", "carlmosson", "zzz", ""):
        expected = sorted(
            ((row, fuzz.ratio(query, name) / 100) for row, name in enumerate(names)), key=lambda p: (-p[1], p[0])
        )
        assert index(query, 0.8, 3) == [pair for pair in expected if pair[1] >= 0.8][:3]
