import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from qgrag.corpus.chunking import ChunkConfig, Spans, chunk_documents, split_texts, split_windows
from qgrag.corpus.records import Document
from qgrag.corpus.tokens import TokenizerSpans
from qgrag.errors import ConfigError, InputError

PIECES = st.one_of(
    st.sampled_from(
        ["the film", "playings", "\n", "\n\n", " ", "\t", ". ", "。", "字符", "😀", "👩‍👩‍👧", "e\u0301", "\x01"]
    ),
    st.sampled_from(["가나", "ﬃ", "\u200b", "\u3000", "\x0b", "\x85", "\u2028", "don't", "3.14", "(x)", "ab" * 60]),
    st.text(max_size=8),
)
TEXTS = st.lists(PIECES, max_size=60).map("".join)
WINDOWS = st.integers(2, 30).flatmap(lambda tokens: st.tuples(st.just(tokens), st.integers(0, tokens - 1)))
MANY = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


def words(texts: Sequence[str]) -> list[Spans]:
    return [np.array([match.span() for match in re.finditer(r"\S+", text)], np.int64).reshape(-1, 2) for text in texts]


def uncovered(text: str, spans: Sequence[tuple[int, int]]) -> str:
    inside = {index for start, end in spans for index in range(start, end)}
    return "".join(character for index, character in enumerate(text) if index not in inside)


@MANY
@given(text=TEXTS, window=WINDOWS, slack=st.sampled_from([0.0, 0.2, 0.9]))
@example(text="x" * 1000, window=(10, 3), slack=0.2)
@example(text="字" * 100, window=(7, 6), slack=0.2)
@example(text=" lead and trail \n\n", window=(2, 0), slack=0.0)
@example(text="e" + "\u0301" * 50, window=(2, 1), slack=0.0)
def test_windows_cover_the_text_within_the_limit(
    token_spans: TokenizerSpans, text: str, window: tuple[int, int], slack: float
) -> None:
    tokens, overlap = window
    (spans,) = split_texts([text], token_spans, tokens, overlap, slack=slack)
    pieces = [text[start:end] for start, end in spans]
    assert not uncovered(text, spans).strip()
    assert all(piece == piece.strip() and piece for piece in pieces)
    assert spans == sorted(set(spans))
    assert sorted(end for _, end in spans) == [end for _, end in spans]
    for piece, counted in zip(pieces, token_spans(pieces), strict=True):
        assert len(counted) <= tokens or len(piece) == 1


@settings(deadline=None)
@given(count=st.integers(0, 200), window=WINDOWS)
def test_windows_of_words_step_by_exactly_tokens_less_overlap(count: int, window: tuple[int, int]) -> None:
    tokens, overlap = window
    text = " ".join(f"w{number}" for number in range(count))
    pieces = [text[start:end].split() for start, end in split_windows(text, words([text])[0], tokens, overlap)]
    expected = []
    first = 0
    while count and (first == 0 or first + overlap < count):
        expected.append([f"w{number}" for number in range(first, min(first + tokens, count))])
        first += tokens - overlap
    assert pieces == expected


@MANY
@given(text=TEXTS, window=WINDOWS, slack=st.sampled_from([0.0, 0.2]))
def test_overlap_is_never_more_than_configured(
    token_spans: TokenizerSpans, text: str, window: tuple[int, int], slack: float
) -> None:
    tokens, overlap = window
    spans = token_spans([text])[0]
    windows = split_windows(text, spans, tokens, overlap, slack=slack)
    for (_, end), (start, _) in pairwise(windows):
        shared = np.sum((spans[:, 0] >= start) & (spans[:, 1] <= end))
        assert shared <= overlap


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two three four\n\nfive six. seven\neight nine", "one two three four"),
        ("one two three four. five six seven\neight nine", "one two three four. five six seven"),
        ("one two three four. Five six seven eight nine", "one two three four."),
        ("one two three four five six seven eight nine", "one two three four five six seven eight"),
        ("one\n\ntwo three four five six seven eight nine", "one\n\ntwo three four five six seven eight"),
    ],
    ids=["paragraph", "line", "sentence", "word", "too far back"],
)
def test_a_window_ends_at_the_strongest_boundary_of_its_last_part(text: str, first: str) -> None:
    start, end = split_windows(text, words([text])[0], 8, slack=0.5)[0]
    assert text[start:end] == first


def test_a_word_that_is_split_into_tokens_stays_whole(minilm_spans: TokenizerSpans) -> None:
    text = "unbelievably antidisestablishmentarian " * 40
    (spans,) = split_texts([text], minilm_spans, 16, 3)
    assert len(spans) > 10
    assert {word for start, end in spans for word in text[start:end].split()} == set(text.split())


def test_chinese_is_cut_between_characters_at_sentence_ends(minilm_spans: TokenizerSpans) -> None:
    text = "音乐学院在城市的北部。它由一位作曲家创立！" * 40
    config = ChunkConfig(tokens=64, overlap=8)
    chunks = chunk_documents([Document("zh", text)], config, minilm_spans)
    assert all(48 <= len(chunk.text) <= 64 for chunk in chunks[:-1])
    assert all(chunk.text[-1] in "。！" for chunk in chunks)


def test_one_word_of_a_hundred_thousand_characters_is_cut(minilm_spans: TokenizerSpans) -> None:
    text = "x" * 100_000
    (spans,) = split_texts([text], minilm_spans, 1200, 100)
    assert not uncovered(text, spans)
    assert max(end - start for start, end in spans) <= 1200


def test_chunks_carry_their_document_and_spans(token_spans: TokenizerSpans) -> None:
    documents = [
        Document("a/b\n😀", "  The film was shot in town.\r\n\r\nThe director left. " * 20, "Film"),
        Document("blank", " \n\t "),
        Document("short", "\ufeffOne."),
    ]
    chunks = chunk_documents(documents, ChunkConfig(tokens=20, overlap=5), token_spans)
    texts = {document.id: document.text for document in documents}
    assert [chunk.document_id for chunk in chunks] == sorted((c.document_id for c in chunks), key=list(texts).index)
    assert all(texts[chunk.document_id][chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert "blank" not in {chunk.document_id for chunk in chunks}
    film = [chunk for chunk in chunks if chunk.document_id == documents[0].id]
    assert [chunk.position for chunk in film] == list(range(len(film)))
    assert {chunk.title for chunk in film} == {"Film"}
    assert film[0].passage.startswith("Film\nThe film")


def test_batches_do_not_change_the_chunks(token_spans: TokenizerSpans, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [Document(str(number), "The town by the river. " * number) for number in range(30)]
    config = ChunkConfig(tokens=12, overlap=4)
    whole = chunk_documents(documents, config, token_spans)
    monkeypatch.setattr("qgrag.corpus.chunking.BATCH_CHARACTERS", 100)
    assert chunk_documents(documents, config, token_spans) == whole


def test_a_text_that_grows_past_the_limit_when_cut_is_cut_again() -> None:
    def two_at_the_start(texts: Sequence[str]) -> list[Spans]:
        """Splits the first word in two: a window's text has one token more than the same words had inside."""
        found = words(texts)
        return [np.concatenate([[[0, 1], [1, spans[0, 1]]], spans[1:]]) if len(spans) else spans for spans in found]

    text = " ".join(f"word{number:02d}" for number in range(30))
    (spans,) = split_texts([text], two_at_the_start, 6)
    assert all(len(two_at_the_start([text[start:end]])[0]) <= 6 for start, end in spans)
    assert " ".join(text[start:end] for start, end in spans) == text


@pytest.mark.parametrize(
    "arguments",
    [{"tokens": 0}, {"tokens": 10, "overlap": 10}, {"overlap": -1}, {"slack": 1.0}, {"slack": -0.1}],
    ids=str,
)
def test_impossible_windows_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"\d"):
        ChunkConfig(**arguments)


def test_a_missing_or_foreign_tokenizer_is_named(tmp_path) -> None:
    with pytest.raises(InputError, match="no such tokenizer"):
        TokenizerSpans(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"tokenizer\.json"):
        TokenizerSpans(tmp_path)


def test_truncation_and_padding_in_the_file_are_switched_off(minilm_spans: TokenizerSpans) -> None:
    long, short = minilm_spans(["a " * 2000, "a"])
    assert (len(long), len(short)) == (2000, 1)
