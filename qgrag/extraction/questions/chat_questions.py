"""Questions on a line of a chat: what its speaker says, asks or suggests about something, and who talks of it."""

from collections.abc import Iterator, Mapping

from spacy.tokens import Span

from qgrag.extraction.questions.pronouns import OWN, Scene, is_resolved
from qgrag.extraction.questions.question_forms import Asked
from qgrag.extraction.rendering import render, tidy, words

SUGGESTING = frozenset(("suggest", "recommend", "propose", "try", "consider", "advise"))
FEELING = frozenset(("love", "enjoy", "like", "hate", "prefer", "appreciate", "miss"))
EMPTY_HEADS = words(
    "thing lot time day bit way idea one kind sort luck problem thank thanks hey guy sound moment stuff "
    "deal look today tomorrow fun question reason note case fan part point something everyone worry blast "
    "mind choice touch word heads vibe care plan offer update appreciation pleasure ooh wow haha ah oh "
    "yeah hi hello"
)
MAX_TOPICS = 2
MAX_TOPIC_TOKENS = 8
VALUES = frozenset(("DATE", "TIME", "CARDINAL", "ORDINAL", "PERCENT"))
POINTING = words("this that these those some any another every each no such what which")
MIN_TOKENS = 5


def chat_questions(sentence: Span, scene: Scene, names: Mapping[int, str]) -> Iterator[Asked]:
    """Questions on the `MAX_TOPICS` longest topics; the answer is the sentence or the speaker."""
    if len(sentence) < MIN_TOKENS or not any(token.pos_ in ("VERB", "AUX") for token in sentence):
        return
    answer = tidy(sentence.text)
    act = _act(sentence)
    for rank, topic in enumerate(topics(sentence, names)):
        if act == "feel":
            yield Asked(f"How does {scene.speaker} feel about {topic}?", answer)
        elif act == "ask" and scene.listener:
            yield Asked(f"What does {scene.speaker} ask {scene.listener} about {topic}?", answer)
        else:
            yield Asked(f"What does {scene.speaker} {act} about {topic}?", answer)
        if rank == 0:
            yield Asked(f"Who talks about {topic}?", scene.speaker)


def topics(sentence: Span, names: Mapping[int, str]) -> list[str]:
    """Noun phrases worth asking about, the longest first, without words that point."""
    found: dict[str, int] = {}
    own = {token.i: "their" for token in sentence if OWN.get(token.lower_) in ("first", "both")}
    names = {**names, **own}
    for chunk in sentence.noun_chunks:
        head = chunk.root
        if head.pos_ not in ("NOUN", "PROPN") or head.lemma_.lower() in EMPTY_HEADS or head.ent_type_ in VALUES:
            continue
        tokens = [token for token in chunk if token.lower_ not in POINTING and token.pos_ not in ("ADV", "INTJ")]
        if not 0 < len(tokens) <= MAX_TOPIC_TOKENS or not all(is_resolved(token, names) for token in tokens):
            continue
        text = render(tokens, names)
        if text and text not in names.values():
            weight = sum(token.pos_ in ("NOUN", "PROPN", "ADJ", "NUM") for token in tokens)
            found.setdefault(text, weight + any(token.pos_ == "PROPN" for token in tokens))
    return sorted(found, key=lambda text: -found[text])[:MAX_TOPICS]


def _act(sentence: Span) -> str:
    """What the sentence does: 'ask', 'suggest', 'feel' or 'say'."""
    text = sentence.text.lower()
    lemmas = {token.lemma_.lower() for token in sentence}
    if lemmas & SUGGESTING or "how about" in text or "let's" in text or "should" in lemmas:
        return "suggest"
    if text.rstrip().endswith("?"):
        return "ask"
    return "feel" if lemmas & FEELING else "say"
