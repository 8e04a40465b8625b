"""What every extraction by a language model shares: the gate for names, the outcome, the sentence behind a
claim."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from qgrag.corpus.records import Chunk
from qgrag.corpus.sentences import split_sentences
from qgrag.extraction.records import Extracted
from qgrag.llm.records import Completion, CompletionError
from qgrag.names.cleaning import clean_model_name, find_name, name_key

T = TypeVar("T")

_PRONOUNS = frozenset(
    (
        *("i", "you", "he", "she", "it", "we", "they", "him", "her", "them", "his", "hers", "its", "their", "this"),
        *("that", "these", "those", "who", "which", "none", "unknown", "n/a", "null", "他", "她", "它", "他们", "她们"),
        *("它们", "我", "你", "我们", "这", "那", "未知"),
    )
)
_FILLERS = frozenset(
    ("true", "false", "yes", "no", "not specified", "not mentioned", "unspecified", "various", "是", "否")
)
_PRONOUN_KEYS = frozenset(name_key(word) for word in _PRONOUNS)
_UNITS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+")


class NameGate:
    """The only way in for names that a model wrote about one chunk.

    Names come out in the chunk's own wording where it has them. Dropped, and counted in `counts`: what is
    no name (`empty_names`), pronouns (`pronouns`), words that fill a field in place of a name (`filler_names`)
    and what stands in the prompt's worked examples (`example_names`), these two where the chunk does not have them.
    """

    def __init__(self, chunk: Chunk, prompt: str) -> None:
        self._source = f"{chunk.title}\n{chunk.text}"
        self._prompt = prompt
        self.counts: Counter[str] = Counter()

    def __call__(self, raw: str) -> str:
        """The clean name, empty where it is dropped."""
        name = clean_model_name(raw, self._source)
        reason = self._reason(name)
        if reason:
            self.counts[reason] += 1
            return ""
        return name

    def is_example(self, text: str) -> bool:
        """Whether a sentence was copied from the prompt; counted as `example_texts` if so."""
        copied = text in self._prompt and text not in self._source
        self.counts["example_texts"] += copied
        return copied

    def _reason(self, name: str) -> str:
        key = name_key(name)
        if not key:
            return "empty_names"
        if key in _PRONOUN_KEYS:
            return "pronouns"
        if key in _FILLERS and not find_name(name, self._source):
            return "filler_names"
        if find_name(name, self._prompt) and not find_name(name, self._source):
            return "example_names"
        return ""


def outcome(
    value: T, found: bool, errors: Sequence[CompletionError], counts: Counter[str], nothing: str
) -> Extracted[T]:
    """The outcome for one chunk.

    `failed` where an error left nothing, or everything that came was dropped; `empty` where the model
    itself said that there is nothing.

    Args:
        value: what is left.
        found: whether that is anything.
        errors: of the chunk's requests.
        counts: what was dropped or repaired, by kind.
        nothing: the reason to give for an empty chunk.
    """
    kept = {kind: n for kind, n in sorted(counts.items()) if n}
    if found:
        return Extracted(value, counts=kept)
    if errors:
        return Extracted(value, "failed", str(errors[0]), kept)
    if kept:
        return Extracted(value, "failed", f"nothing usable was left of the answer: {kept}", kept)
    return Extracted(value, "empty", nothing)


def count_repairs(completion: Completion, counts: Counter[str]) -> None:
    """Add what it took to read an answer."""
    counts["invalid_items"] += completion.dropped
    counts["repaired_answers"] += completion.repaired
    counts["truncated_answers"] += completion.truncated
    counts["asked_again"] += completion.asked_again
    counts["failed_answers"] += completion.error is not None


def one_line(text: str) -> str:
    return " ".join(text.split())


def share_found(claim: str, source: str) -> float:
    """Share of a claim's characters that stand in words which the source has too (single characters, for Han and
    kana); 1 where the source has all of them in a row, however spaced, and for a claim without words."""
    units, known = _UNITS.findall(claim.casefold()), _UNITS.findall(source.casefold())
    if "".join(units) in "".join(known):
        return 1.0
    found = set(known)
    return sum(len(u) for u in units if u in found) / sum(map(len, units))


def supporting_sentence(text: str, names: Iterable[str], claim: str = "") -> str:
    """The sentence of a text that names the most of `names`, and of those the one most like the claim.

    Likeness is the number of words (characters, for Han and kana) that the two share. Empty where no
    sentence has anything of either.
    """
    wanted = [name for name in names if name]
    words = set(_UNITS.findall(claim.casefold()))

    def score(sentence: str) -> tuple[int, int]:
        named = sum(find_name(name, sentence) is not None for name in wanted)
        return named, len(words & set(_UNITS.findall(sentence.casefold())))

    sentences = [text[start:end] for start, end in split_sentences(text)]
    best = max(sentences, key=score, default="")
    return best if best and score(best) > (0, 0) else ""
