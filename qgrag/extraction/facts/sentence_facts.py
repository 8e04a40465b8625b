"""Facts from names and sentence bounds alone: descriptions, and links from a title to the names in its text."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from qgrag.extraction.records import Description, Mention, Triple
from qgrag.names.vocabulary import VALUE_TYPES


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` stands at `start` to `end - 1` of its chunk."""

    start: int
    end: int
    text: str


def descriptions(
    mentions: Iterable[Mention], sentences: Sequence[Sentence], name_of: Callable[[Mention], str]
) -> list[Description]:
    """Each sentence as a description of every name in it (FG-RAG, section 3.1, without a language model)."""
    found = dict.fromkeys(
        Description(name_of(mention), sentence.text)
        for mention in mentions
        if mention.type not in VALUE_TYPES and (sentence := sentence_at(sentences, mention.start))
    )
    return list(found)


def title_links(
    title: str,
    mentions: Iterable[Mention],
    known: Iterable[Triple],
    sentences: Sequence[Sentence],
    name_of: Callable[[Mention], str],
    relation: str,
) -> list[Triple]:
    """A triple (title, `relation`, name) for every name that no known triple joins to the title yet."""
    pairs = [(triple.head, triple.tail) for triple in known]
    joined = {title, *(name for pair in pairs if title in pair for name in pair)}
    links: dict[str, Triple] = {}
    for mention in mentions:
        name = name_of(mention)
        if title and mention.type not in VALUE_TYPES and name not in joined:
            sentence = sentence_at(sentences, mention.start)
            links.setdefault(name, Triple(title, relation, name, sentence.text if sentence else ""))
    return list(links.values())


def sentence_at(sentences: Sequence[Sentence], offset: int) -> Sentence | None:
    """The sentence that holds a character; sentences are in order and do not overlap."""
    at = bisect_right(sentences, offset, key=lambda sentence: sentence.start) - 1
    return sentences[at] if at >= 0 and offset < sentences[at].end else None
