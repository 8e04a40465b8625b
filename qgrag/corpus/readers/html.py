"""HTML, through Beautiful Soup and lxml: one file, one document."""

import codecs

from qgrag.corpus.decoding import Unreadable, check_encoding, decode
from qgrag.corpus.readers.source import Entries, Entry, Source, import_extra
from qgrag.corpus.records import Document
from qgrag.errors import ConfigError

_BROWSERS_ENCODINGS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
    "utf-16": "utf-8",
    "utf-16-le": "utf-8",
    "utf-16-be": "utf-8",
}
"""Codec of a declared label -> the superset that browsers use (WHATWG, Encoding Standard, section 4.2)."""

_UNDEFINED_CP1252 = b"\x81\x8d\x8f\x90\x9d"
_INVISIBLE = ["script", "style", "template", "noscript", "svg"]
_BLOCKS = [
    *("address", "article", "aside", "blockquote", "br", "caption", "dd", "div", "dl", "dt", "figcaption"),
    *("figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav"),
    *("ol", "p", "pre", "section", "table", "title", "tr", "ul"),
]


def read_html(source: Source) -> Entries:
    """The visible text, one line per block, cells joined by ` | `; the title is `<title>` or the first h1."""
    bs4 = import_extra("bs4", "beautifulsoup4")
    import_extra("lxml", "lxml")
    declared = bs4.dammit.EncodingDetector.find_declared_encoding(source.data, is_html=True)
    text = _text(source, declared)
    try:
        page = bs4.BeautifulSoup(text, "lxml")
        for node in page(_INVISIBLE) + page(string=lambda string: isinstance(string, bs4.element.PreformattedString)):
            node.extract()
        heading = page.title or page.h1
        title = _squeeze(heading.get_text()) if heading else ""
        if page.title:
            page.title.decompose()
        for string in page.find_all(string=True):
            if string.find_parent("pre") is None:
                string.replace_with(bs4.NavigableString(str(string).replace("\n", " ")))
        for cell in page(["td", "th"]):
            if cell.find_next_sibling(["td", "th"]):
                cell.append(" | ")
        for tag in page(_BLOCKS):
            tag.insert_before("\n")
            tag.insert_after("\n")
        lines = (_squeeze(line) for line in page.get_text().split("\n"))
    except RecursionError as error:
        raise Unreadable("nested too deeply for Beautiful Soup") from error
    body = "\n".join(line for line in lines if line)
    yield Entry("", Document(source.name, body, title, {"source": source.name}))


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _text(source: Source, declared: str | None) -> str:
    name = source.encoding or _browsers_encoding(declared)
    undefined = _UNDEFINED_CP1252 if name == "cp1252" and not source.encoding else b""
    return decode(source.data.translate(None, undefined), name)


def _browsers_encoding(declared: str | None) -> str | None:
    """The codec by which browsers read pages that declare an encoding; None where Python has none of that name."""
    try:
        name = codecs.lookup(declared).name if declared else None
        check_encoding(name)
    except (LookupError, ConfigError):
        return None
    return _BROWSERS_ENCODINGS.get(name, name) if name else None
