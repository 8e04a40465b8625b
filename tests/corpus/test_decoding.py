import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgrag.corpus.decoding import Unreadable, check_encoding, decode, decode_lines
from qgrag.errors import ConfigError

ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030"]
LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\ufeff"), max_size=8)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(lines=st.lists(LINE, min_size=1, max_size=6))
def test_text_comes_back_as_it_was_written(encoding: str, lines: list[str]) -> None:
    text = "a" + "\n".join(lines)
    data = text.encode(encoding)
    named = encoding if encoding == "gb18030" else None
    assert decode(data, named) == text
    assert list(decode_lines(data, named)) == list(enumerate(text.split("\n"), start=1))


@pytest.mark.parametrize(
    ("data", "encoding", "place", "reason"),
    [
        (b"abc\xe9\n", None, "byte 3", "not utf-8.*0xe9"),
        (b"\xef\xbb\xbfab\xff", None, "byte 5", "not utf-8"),
        ("ab".encode("utf-16") + b"\x00\xd8", None, "byte 6", "not utf-16-le"),
        ("ab".encode("utf-16") + b"c", None, "byte 6", "not utf-16-le"),
        (b"na\xefve", "ascii", "byte 2", "not ascii"),
    ],
)
def test_the_first_bad_byte_is_named(data: bytes, encoding: str | None, place: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason) as caught:
        decode(data, encoding)
    assert caught.value.location == place


def test_a_bad_line_does_not_cost_the_others() -> None:
    good, bad, last = (line for _, line in decode_lines(b"\xef\xbb\xbfone\nt\xffo\nthree"))
    assert (good, last) == ("one", "three")
    assert isinstance(bad, Unreadable)
    assert bad.location == "byte 8"


def test_an_unknown_encoding_is_refused() -> None:
    check_encoding(None)
    check_encoding("latin-1")
    with pytest.raises(ConfigError, match="utf8000"):
        check_encoding("utf8000")
