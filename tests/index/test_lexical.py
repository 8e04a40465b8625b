import json

import bm25s
import numpy as np
import pytest
import torch

from qgrag.errors import ConfigError, IndexFormatError
from qgrag.index.lexical import LexicalConfig, LexicalIndex
from qgrag.index.terms import terms

TEXTS = [
    "The cellist recorded six suites in Barcelona.",
    "A recording studio in Barcelona opened in 1958; the studio closed in 1972.",
    "黑豹队的防守只丢了308分",
    "Rivers flow to the sea.",
]


def test_batch_scores_equal_bm25s_query_by_query():
    index = LexicalIndex.build(TEXTS, LexicalConfig(k1=1.2, b=0.6))
    queries = ["recording in Barcelona studio studio", "nothing known", "黑豹队丢了多少分", "sea"]
    ours = index.scores(queries)

    model = bm25s.BM25(method="lucene", k1=1.2, b=0.6)
    model.index([terms(t) for t in TEXTS], show_progress=False)
    for row, query in zip(ours, queries):
        known = [t for t in terms(query) if t in model.vocab_dict]
        expected = model.get_scores(known) if known else np.zeros(len(TEXTS))
        torch.testing.assert_close(row, torch.from_numpy(np.asarray(expected, dtype=np.float32)))
    assert ours[1].eq(0).all()
    assert ours[2].argmax() == 2


def test_empty_corpus_of_terms_scores_zero():
    index = LexicalIndex.build(["...", "!!!"], LexicalConfig())
    assert index.scores(["word"]).tolist() == [[0.0, 0.0]]
    assert index.scores([]).shape == (0, 2)


def test_saved_index_scores_the_same(tmp_path):
    index = LexicalIndex.build(TEXTS, LexicalConfig())
    index.save(tmp_path / "lexical")
    loaded = LexicalIndex.load(tmp_path / "lexical")
    assert torch.equal(loaded.scores(["Barcelona sea"]), index.scores(["Barcelona sea"]))


def test_postings_of_an_older_index_are_asked_as_they_were_made(tmp_path):
    index = LexicalIndex.build(["cafe\u0301 bar", "tea room"], LexicalConfig())
    assert index.scores(["caf\u00e9"]).argmax() == 0
    index.save(tmp_path)
    path = tmp_path / "vocabulary.json"
    path.write_text(json.dumps({"size": 2, "terms": ["bar", "cafe", "room", "tea"]}))
    assert LexicalIndex.load(tmp_path).scores(["cafe\u0301"])[0].count_nonzero() == 1
    path.write_text(json.dumps({"size": 2, "terms": [], "tokeniser": 3}))
    with pytest.raises(IndexFormatError, match=r"vocabulary\.json: its terms were made by tokeniser 3"):
        LexicalIndex.load(tmp_path)


def test_parameters_out_of_range_are_named():
    with pytest.raises(ConfigError, match=r"b=1\.5"):
        LexicalConfig(b=1.5)
