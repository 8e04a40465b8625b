import pytest

from qgrag.corpus.queries import Query, read_queries
from qgrag.errors import InputError


def test_questions_keep_their_ids_and_lines_without_one_are_numbered(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"id": 7, "question": "a"}\r\n\r\n'
        + '{"query": "b\u2028c", "id": "x"}\n{"question": "d"}'.encode()
    )
    assert read_queries(path) == [Query("7", "a"), Query("x", "b\u2028c"), Query("4", "d")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"question": "a"}\n{"question": 3}', r"q\.jsonl, line 2: needs \"question\""),
        (b'{"question": "a"}\n{"question', r"line 2, column \d+: not JSON"),
        (b'{"question": "\xff"}', r"q\.jsonl, line 1: .*save it as UTF-8"),
        (b"[1]", "line 1: expected an object"),
        ('{"question": "\u200b\u3000"}'.encode(), "line 1: needs .* not blank"),
        (b"\n", "holds no question"),
    ],
)
def test_bad_lines_are_named(tmp_path, data, message):
    path = tmp_path / "q.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_queries(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl: cannot be read"):
        read_queries(tmp_path / "none.jsonl")
