import math

import pytest
import torch

from qgrag.errors import InputError
from qgrag.models.vectors import checked_vectors

TEXTS = [f"text {i}" for i in range(8)]


def test_good_vectors_pass() -> None:
    vectors = torch.eye(8)
    assert checked_vectors(vectors, TEXTS, "mine") is vectors
    assert checked_vectors(torch.empty(0, 3), [], "mine").shape == (0, 3)


@pytest.mark.parametrize(
    ("value", "words"),
    [(math.nan, "not a number"), (math.inf, "infinite"), (-math.inf, "infinite"), (0.0, "all zeros")],
)
def test_bad_vectors_are_named_by_position_and_text(value: float, words: str) -> None:
    vectors = torch.ones(8, 3)
    vectors[[2, 5]] = value
    with pytest.raises(InputError, match="2 of 8 vectors") as caught:
        checked_vectors(vectors, TEXTS, "mine")
    assert f"2 ({words}, for 'text 2'), 5 ({words}, for 'text 5')" in str(caught.value)
    assert "'mine'" in str(caught.value)


def test_many_bad_vectors_are_counted() -> None:
    with pytest.raises(InputError, match=r"8 of 8 vectors .* and 3 more"):
        checked_vectors(torch.zeros(8, 3), TEXTS, "mine")


@pytest.mark.parametrize("vectors", [torch.ones(7, 3), torch.ones(8), [[1.0]] * 8, None])
def test_missing_vectors_are_refused(vectors: object) -> None:
    with pytest.raises(InputError, match="8 texts need a tensor"):
        checked_vectors(vectors, TEXTS, "mine")  # type: ignore[arg-type]
