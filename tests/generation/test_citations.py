import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.generation.citations import check_citations


@pytest.mark.parametrize(
    ("text", "checked", "bare", "numbers", "invented"),
    [
        ("Paris [1]", "Paris [1]", "Paris", (1,), 0),
        ("Paris[2].", "Paris [2].", "Paris.", (2,), 0),
        ("It is so [1, 3] and so [3][2].", "It is so [1][3] and so [3][2].", "It is so and so.", (1, 3, 2), 0),
        ("Paris [7].", "Paris.", "Paris.", (), 1),
        ("Paris [1, 9]", "Paris [1]", "Paris", (1,), 1),
        ("Paris [0]", "Paris", "Paris", (), 1),
        ("Paris [1-3].", "Paris [1][2][3].", "Paris.", (1, 2, 3), 0),
        ("Paris [2–5].", "Paris [2][3].", "Paris.", (2, 3), 2),
        ("Paris [Passage 2].", "Paris [2].", "Paris.", (2,), 0),
        ("Paris [passages 1 and 9]", "Paris [1]", "Paris", (1,), 1),
        ("Paris [^3]", "Paris [3]", "Paris", (3,), 0),
        ("Karas [1906-1985] played", "Karas [1906-1985] played", "Karas [1906-1985] played", (), 0),
        ("巴黎【段落1和2】。", "巴黎 [1][2]。", "巴黎。", (1, 2), 0),
        ("巴黎【1】。", "巴黎 [1]。", "巴黎。", (1,), 0),
        ("the film [sic] of [the] 1990s", "the film [sic] of [the] 1990s", "the film [sic] of [the] 1990s", (), 0),
        ("", "", "", (), 0),
    ],
)
def test_citations(text: str, checked: str, bare: str, numbers: tuple[int, ...], invented: int) -> None:
    cited = check_citations(text, 3)
    assert (cited.text, cited.bare, cited.numbers, cited.invented) == (checked, bare, numbers, invented)


@settings(deadline=None, max_examples=300)
@given(
    st.text(max_size=60) | st.lists(st.sampled_from([*"[]【】,;-19 0\n.", "[1]", "[22, 3]", "x"])).map("".join),
    st.integers(0, 5),
)
def test_only_passages_that_were_shown_are_cited(text: str, count: int) -> None:
    cited = check_citations(text, count)
    assert all(1 <= n <= count for n in cited.numbers)
    assert len(set(cited.numbers)) == len(cited.numbers)
    assert {int(n) for n in re.findall(r"(?<= )\[([1-9])\]", cited.text)} <= {*range(1, count + 1)}
