"""Long passages cut to the part that speaks of the query, so that training reads what answers."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from qgrag.corpus.chunking import TokenSpans, split_texts
from qgrag.training.pairs import TrainingPair

SLACK = 0.2
WORD = re.compile(r"\w+")


def with_windows(pairs: Sequence[TrainingPair], tokens: int, token_spans: TokenSpans) -> list[TrainingPair]:
    """The same pairs with every passage cut to the window of it that has most in common with the query.

    A model reads no more than so many tokens of a passage; what lies beyond would be a positive that does not
    answer. Windows are compared by the words that they share with the query, a word counting for less the more
    windows of its passage have it; among equals the first is taken. No model is asked.

    Args:
        pairs: with whole passages.
        tokens: most tokens of a window.
        token_spans: the tokenizer that counts them.
    """
    passages = list(dict.fromkeys(text for pair in pairs for text in (*pair.pos, *pair.neg)))
    spans = split_texts(passages, token_spans, tokens, slack=SLACK)
    windows = {
        text: [text[start:end] for start, end in parts] or [text] for text, parts in zip(passages, spans, strict=True)
    }
    words = {text: [_words(window) for window in parts] for text, parts in windows.items()}

    def cut(query: set[str], text: str) -> str:
        spread = Counter(word for found in words[text] for word in found & query)
        shared = [sum(1 / spread[word] for word in found & query) for found in words[text]]
        return windows[text][shared.index(max(shared))]

    out = []
    for pair in pairs:
        query = _words(pair.query)
        pos, neg = (tuple(cut(query, text) for text in texts) for texts in (pair.pos, pair.neg))
        out.append(replace(pair, pos=pos, neg=neg))
    return out


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.casefold()))
