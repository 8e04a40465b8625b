"""SQuAD's JSON: articles made of paragraphs; each paragraph is a document."""

from typing import Any

from qgrag.corpus.decoding import Unreadable, decode
from qgrag.corpus.readers.fields import parse_json
from qgrag.corpus.readers.json_list import UniqueNames
from qgrag.corpus.readers.source import Entries, Entry, Rejection, Source
from qgrag.corpus.records import Document


def paragraph_id(title: str, number: int) -> str:
    """The id of an article's paragraph; `number` counts from 0: `Super_Bowl_50/0`."""
    return f"{title}/{number}"


def read_squad(source: Source) -> Entries:
    """Yield one document per paragraph, with the title of its article. A repeated title is numbered: `Title#2/0`."""
    content = parse_json(decode(source.data, source.encoding))
    articles = content.get("data") if isinstance(content, dict) else None
    if not isinstance(articles, list):
        raise Unreadable("not in SQuAD format: no list 'data' at the top")
    unique = UniqueNames(str(article.get("title", "")) for article in articles if isinstance(article, dict))
    for index, article in enumerate(articles):
        place = f"article {index}"
        if not isinstance(article, dict) or not isinstance(article.get("paragraphs"), list):
            yield Entry(place, Rejection("no list 'paragraphs'"))
            continue
        title = str(article.get("title", ""))
        name = unique(title)
        for number, paragraph in enumerate(article["paragraphs"]):
            yield Entry(
                f"{place}, paragraph {number}",
                _document(paragraph, paragraph_id(name, number), title, source),
            )


def _document(paragraph: Any, identity: str, title: str, source: Source) -> Document | Rejection:
    context = paragraph.get("context") if isinstance(paragraph, dict) else None
    if not isinstance(context, str):
        return Rejection("no string 'context'")
    return Document(identity, context, title, {"source": source.name})
