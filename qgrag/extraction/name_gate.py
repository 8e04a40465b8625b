"""The gate for names that a language model wrote about one chunk."""

from collections import Counter

from qgrag.corpus.records import Chunk
from qgrag.names.cleaning import clean_model_name, find_name
from qgrag.names.forms import without_punctuation
from qgrag.names.vocabulary import PRONOUNS, is_acronym

_NO_NAMES = PRONOUNS | {
    *("none", "unknown", "n/a", "null"),
    *("他", "她", "它", "他们", "她们", "它们", "我", "你", "我们", "这", "那", "未知"),
}
_FILLERS = frozenset(
    ("true", "false", "yes", "no", "not specified", "not mentioned", "unspecified", "various", "是", "否")
)
_PRONOUN_KEYS = frozenset(without_punctuation(word) for word in _NO_NAMES)


class NameGate:
    """The only way in for names that a model wrote about one chunk.

    A name comes out in the chunk's own wording where the chunk has it. Four kinds are dropped, and counted in `counts`:

    - `empty_names`: what holds no letter or number, or is too long for a name.
    - `pronouns`, but no acronym such as WHO that the chunk writes in capitals.
    - `filler_names`: words that fill a field in place of a name, where the chunk does not have them.
    - `example_names`: names from the prompt's worked examples, where the chunk does not have them.

    Args:
        chunk: what the model was asked about.
        prompt: the text that asked.
    """

    def __init__(self, chunk: Chunk, prompt: str) -> None:
        self._source = f"{chunk.title}\n{chunk.readable}"
        self._prompt = prompt
        self.counts: Counter[str] = Counter()

    def __call__(self, raw: str) -> str:
        """The clean name, empty where it is dropped."""
        name = clean_model_name(raw, self._source)
        reason = self._reason(name, raw)
        if reason:
            self.counts[reason] += 1
            return ""
        return name

    def is_example(self, text: str) -> bool:
        """Whether a sentence was copied from the prompt; counted as `example_texts` if so."""
        copied = text in self._prompt and text not in self._source
        self.counts["example_texts"] += copied
        return copied

    def _reason(self, name: str, raw: str) -> str:
        key = without_punctuation(name)
        if not key:
            return "empty_names"
        if key.casefold() in _PRONOUN_KEYS and not self._writes_in_capitals(raw):
            return "pronouns"
        if key in _FILLERS and not find_name(name, self._source):
            return "filler_names"
        if find_name(name, self._prompt) and not find_name(name, self._source):
            return "example_names"
        return ""

    def _writes_in_capitals(self, raw: str) -> bool:
        """Whether both the model and the chunk write a name in capitals that would be a pronoun otherwise."""
        name = without_punctuation(clean_model_name(raw))
        return is_acronym(name) and not self._source.isupper() and find_name(name, self._source) is not None
