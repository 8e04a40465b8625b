"""Chunks: windows of a document, measured in tokens, with exact character spans."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qgrag.corpus.boundaries import Boundary, boundary_between, trim
from qgrag.corpus.records import Chunk, Document
from qgrag.corpus.tables import header_above, tables
from qgrag.errors import ConfigError
from qgrag.progress import progress

Spans = npt.NDArray[np.int64]
TokenSpans = Callable[[Sequence[str]], list[Spans]]
"""A tokenizer, as the corpus sees it: per text the spans [start, end) of its tokens, int64 (tokens, 2)."""

BATCH_CHARACTERS = 2_000_000


@dataclass(frozen=True)
class ChunkConfig:
    """How documents are cut.

    Args:
        tokens: how many tokens a chunk may have, without special tokens.
        overlap: tokens that a chunk shares with the chunk before it; fewer where the chunk would start inside a word.
        tokenizer: name of the model whose tokenizer counts the tokens.
        slack: share of the window, at its end, in which the cut moves back to the end of a paragraph, line or
            sentence; 0 cuts at the last word that fits.
    """

    tokens: int = 1200
    overlap: int = 100
    tokenizer: str = "sentence-transformers/all-MiniLM-L6-v2"
    slack: float = 0.2

    def __post_init__(self) -> None:
        check_window(self.tokens, self.overlap)
        if not 0 <= self.slack < 1:
            raise ConfigError(f"chunk slack is {self.slack}; it must be at least 0 and below 1")


def check_window(tokens: int, overlap: int) -> None:
    """Raise ConfigError unless 0 <= overlap < tokens."""
    if tokens < 1:
        raise ConfigError(f"a window of {tokens} tokens holds nothing; give at least 1")
    if not 0 <= overlap < tokens:
        raise ConfigError(f"an overlap of {overlap} tokens needs 0 <= overlap < {tokens}, the window's tokens")


def chunk_documents(documents: Sequence[Document], config: ChunkConfig, token_spans: TokenSpans) -> list[Chunk]:
    """Cut every document into chunks, in document order.

    A chunk has no white space at its ends; together the chunks hold every other character of the document.
    Its text, tokenized on its own, has at most `config.tokens` tokens, unless it is one character of more tokens.
    A document of nothing but white space has no chunks. A chunk that starts inside a table has the table's header.
    """
    chunks: list[Chunk] = []
    with progress("Chunking", len(documents)) as bar:
        for batch in _batches(documents):
            windows = split_texts(
                [document.text for document in batch],
                token_spans,
                config.tokens,
                config.overlap,
                slack=config.slack,
            )
            for document, spans in zip(batch, windows, strict=True):
                found = tables(document.text) if len(spans) > 1 else []
                chunks.extend(
                    Chunk(
                        document.id,
                        position,
                        start,
                        end,
                        document.text[start:end],
                        document.title,
                        header_above(found, start),
                    )
                    for position, (start, end) in enumerate(spans)
                )
            bar.advance(len(batch))
    return chunks


def split_texts(
    texts: Sequence[str], token_spans: TokenSpans, max_tokens: int, overlap: int = 0, *, slack: float = 0.0
) -> list[list[tuple[int, int]]]:
    """Cut each text into windows that have at most `max_tokens` tokens when they are tokenized on their own.

    A tokenizer may cut a window's text differently from the same characters within the whole text. So every window
    is counted again, and split again where it came out longer. Returns (start, end) spans per text, as
    `split_windows` does.
    """
    check_window(max_tokens, overlap)
    found: list[list[tuple[int, int]]] = [[] for _ in texts]
    pending = [(number, len(text) - len(text.lstrip()), text.strip()) for number, text in enumerate(texts)]
    while pending:
        next_round = []
        for (number, offset, text), spans in zip(pending, token_spans([text for *_, text in pending]), strict=True):
            windows = split_windows(text, spans, max_tokens, overlap, slack=slack)
            for start, end in windows:
                if len(windows) == 1:
                    found[number].append((offset + start, offset + end))
                else:
                    next_round.append((number, offset + start, text[start:end]))
        pending = next_round
    return [_without_contained(spans) for spans in found]


def split_windows(
    text: str, spans: Spans, max_tokens: int, overlap: int = 0, *, slack: float = 0.0
) -> list[tuple[int, int]]:
    """Cut one tokenized text into overlapping windows: (start, end) spans without white space at the ends.

    Args:
        text: the text.
        spans: int64 (tokens, 2), its tokens' character spans.
        max_tokens: how many tokens a window may have, counted in `spans`.
        overlap: how many tokens a window may share with the window before it.
        slack: share of the window in which the cut may move back to a stronger boundary.

    A cut never falls inside a character, and inside a word only if the word alone fills the window.
    Linear in tokens for a fixed share of overlap.
    """
    check_window(max_tokens, overlap)
    starts = spans[:, 0]
    count = len(spans)
    windows: list[tuple[int, int]] = []
    first, covered = 0, 0
    while True:
        last = count
        if count - first > max_tokens:
            last = _cut(text, spans, first, max_tokens, overlap, slack)
        stop = int(starts[last]) if last < count else len(text)
        begin = min(covered, int(starts[first])) if first < count else covered
        window = trim(text, begin, stop)
        if window[0] < window[1]:
            windows.append(window)
        if last == count:
            return windows
        covered = stop
        first = _step_back(text, spans, first, last, overlap)


def _cut(text: str, spans: Spans, first: int, max_tokens: int, overlap: int, slack: float) -> int:
    """The token before which the window that starts at `first` ends: the best boundary, then the latest."""
    limit = first + max_tokens
    zone = max(first + overlap + 1, limit - int(slack * max_tokens))
    best, strength = first, Boundary.NONE
    for last in range(limit, first, -1):
        if last < zone and strength >= Boundary.WORD:
            break
        boundary = _boundary_before(text, spans, last)
        if boundary > strength:
            best, strength = last, boundary
    if strength > Boundary.NONE:
        return best
    later = (last for last in range(limit + 1, len(spans)) if _boundary_before(text, spans, last) > Boundary.NONE)
    return next(later, len(spans))


def _step_back(text: str, spans: Spans, first: int, last: int, overlap: int) -> int:
    """The first token of the window after tokens `first` to `last - 1`: at a word, at most `overlap` tokens back."""
    candidates = range(max(first + 1, last - overlap), last + 1)
    boundaries = [_boundary_before(text, spans, token) for token in candidates]
    for wanted in (Boundary.WORD, Boundary.CHARACTER):
        for token, boundary in zip(candidates, boundaries, strict=True):
            if boundary >= wanted:
                return token
    return last


def _boundary_before(text: str, spans: Spans, token: int) -> Boundary:
    return boundary_between(text, int(spans[token - 1, 1]), int(spans[token, 0]))


def _without_contained(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order, without those that lie inside another."""
    kept: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or end > kept[-1][1]:
            kept.append((start, end))
    return kept


def _batches(documents: Sequence[Document]) -> Iterator[list[Document]]:
    """Consecutive documents of at most BATCH_CHARACTERS together; a longer one comes alone."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        if batch and size + len(document.text) > BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document.text)
    if batch:
        yield batch
