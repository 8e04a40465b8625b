import re

import numpy as np
import pytest

from qgrag.errors import ConfigError
from qgrag.training.pairs import TrainingPair
from qgrag.training.windows import with_windows


def words(texts):
    return [np.array([m.span() for m in re.finditer(r"\w+", text)]).reshape(-1, 2) for text in texts]


PASSAGE = (
    "The river is wide and cold in winter.\nThe bridge of Anna was built in May.\nThe river is deep, the bridge is old."
)


def test_the_window_that_the_query_asks_about_is_kept():
    pair = TrainingPair("when was the bridge of anna built?", (PASSAGE,), (PASSAGE, "short"), ("d",), ("e", "f"))
    (cut,) = with_windows([pair], 9, words)
    assert cut.pos == ("The bridge of Anna was built in May.",)
    assert cut.neg == ("The bridge of Anna was built in May.", "short")
    assert (cut.query, cut.pos_ids, cut.neg_ids) == (pair.query, pair.pos_ids, pair.neg_ids)


def test_a_word_that_every_window_has_does_not_choose():
    pair = TrainingPair("the river the deep", (PASSAGE,))
    assert with_windows([pair], 9, words)[0].pos == ("The river is deep, the bridge is old.",)


def test_short_passages_stay_and_ties_take_the_first():
    pairs = [TrainingPair("nothing shared", (PASSAGE,)), TrainingPair("q", (PASSAGE, " "))]
    assert with_windows(pairs, 100, words) == pairs
    assert PASSAGE.startswith(with_windows(pairs, 9, words)[0].pos[0])


def test_a_window_holds_at_least_one_token():
    with pytest.raises(ConfigError, match="holds nothing"):
        with_windows([TrainingPair("q", (PASSAGE,))], 0, words)
