"""Markdown, through markdown-it-py: one file, one document."""

import re
import tomllib
from functools import lru_cache
from itertools import pairwise

import yaml
from markdown_it import MarkdownIt

from qgrag.corpus.readers.source import Entries, Entry, Source
from qgrag.corpus.readers.text import decode_text
from qgrag.corpus.records import Document

_FRONT_MATTER = re.compile(
    r"\A(?P<mark>---|\+\+\+)[ \t]*\r?\n(?P<body>.*?)^(?:(?P=mark)|\.\.\.)[ \t]*\r?$", re.M | re.S
)


def read_markdown(source: Source) -> Entries:
    """A Markdown file; its title is that of its front matter, else its first heading."""
    text = decode_text(source)
    front = _FRONT_MATTER.match(text)
    title = _front_title(front["mark"], front["body"]) if front else ""
    title = title or _first_heading(text[front.end() :] if front else text)
    yield Entry("", Document(source.name, text, title, {"source": source.name}))


def _front_title(mark: str, body: str) -> str:
    """The `title` of YAML between '---' or TOML between '+++'; empty where there is none, or the block is neither."""
    try:
        fields = yaml.safe_load(body) if mark == "---" else tomllib.loads(body)
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError):
        return ""
    title = fields.get("title") if isinstance(fields, dict) else None
    return " ".join(str(title).split()) if isinstance(title, str | int | float) else ""


def _first_heading(text: str) -> str:
    tokens = _parser().parse(text)
    headings = (" ".join(body.content.split()) for at, body in pairwise(tokens) if at.type == "heading_open")
    return next(filter(None, headings), "")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Blocks alone: what stands inside a heading is left as it is written."""
    return MarkdownIt("commonmark").disable("inline")
