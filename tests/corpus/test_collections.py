"""Files that hold many documents: JSON lines, JSON lists, SQuAD, the LiHua-World archive."""

import csv
import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qgrag.corpus.readers import read_corpus
from qgrag.errors import InputError

DATA = Path(os.environ.get("QGRAG_DATA", Path(__file__).parents[3] / "shared" / "data"))
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def write_json(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(ANY_TEXT, min_size=1, max_size=8, unique=True))
def test_ids_may_hold_any_character(tmp_path: Path, ids: list[str]) -> None:
    path = tmp_path / "corpus.jsonl"
    records = [{"id": identity, "text": f"text of {identity}"} for identity in ids]
    for ensure_ascii in (True, False):
        lines = (json.dumps(record, ensure_ascii=ensure_ascii) for record in records)
        path.write_bytes("\n".join(lines).encode())
        assert [document.id for document in read_corpus(path).documents] == ids


def test_json_lines_fields(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(
        '{"id": 7, "text": "one", "title": "T", "url": "u", "year": 1999, "none": null, "tags": ["ä"]}\r\n'
        "\n"
        '{"_id": "b", "text": "two", "source": "mine"}'
    )
    first, second = read_corpus(path).documents
    assert (first.id, first.text, first.title) == ("7", "one", "T")
    assert first.metadata == {"source": "corpus.jsonl", "url": "u", "year": "1999", "tags": '["ä"]'}
    assert (second.id, second.title, second.metadata) == ("b", "", {"source": "mine"})


def test_every_bad_line_is_named_and_no_other_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(
        b'{"id": "1", "text": "one"}\n'
        b'{"id": "2", "text": "tw\xff"}\n'
        b'{"id": "3", "text": }\n'
        b'{"id": "4"}\n'
        b'{"text": "no id"}\n'
        b'{"id": "6", "text": 6.5}\n'
        b'["id", "7"]\n'
        b'{"id": "8", "text": "   "}\n'
        b'{"id": "1", "text": "again"}\n'
        b'{"id": "10", "text": "half \\ud83d"}\n'
        b'{"id": "", "text": "x"}\n'
        b'{"id": "12", "text": "last"}'
    )
    report = read_corpus(path, on_error="skip")
    assert [document.id for document in report.documents] == ["1", "12"]
    expected = [
        ("line 2, byte 50", "not utf-8"),
        ("line 3, column 21", "broken JSON"),
        ("line 4", "no field 'text'"),
        ("line 5", "no field 'id'"),
        ("line 6", "'text' is of type float"),
        ("line 7", "expected an object"),
        ("line 8", "no text"),
        ("line 9", f"the id '1' is already that of {path} (line 1)"),
        ("line 10", "half a surrogate pair in the text, at character 5"),
        ("line 11", "the id is empty"),
    ]
    assert [problem.location for problem in report.problems] == [place for place, _ in expected]
    for problem, (_, reason) in zip(report.problems, expected, strict=True):
        assert reason in problem.reason
    assert [problem.kind for problem in report.problems].count("empty") == 1
    with pytest.raises(InputError, match="line 2, byte 50"):
        read_corpus(path)


def test_json_list_ids_come_from_titles_and_none_is_lost(tmp_path: Path) -> None:
    records = [
        {"title": "Rose", "text": "a flower"},
        {"title": "Rose", "text": "a name"},
        {"title": "Rose#2", "text": "a trap"},
        {"title": "Rose", "text": "a colour"},
        {"text": "untitled"},
        {"id": "own", "title": "Rose", "text": "with an id"},
    ]
    report = read_corpus(write_json(tmp_path / "corpus.json", records))
    assert [document.id for document in report.documents] == ["Rose", "Rose#3", "Rose#2", "Rose#4", "4", "own"]
    assert [document.title for document in report.documents] == ["Rose", "Rose", "Rose#2", "Rose", "", "Rose"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"text": "a"},\n {"text": }]', r"line 2, column 11\): broken JSON"),
        ('"text"', "expected a list of objects"),
        ('[{"title": "a"}]', r"item 0\): no field 'text'"),
        ('{"data": [{"title": "T"}]}', r"article 0\): no list 'paragraphs'"),
        ('{"data": [{"title": "T", "paragraphs": [{"qas": []}]}]}', r"article 0, paragraph 0\): no string 'context'"),
    ],
)
def test_broken_collections_are_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "corpus.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read_corpus(tmp_path / "corpus.json")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_squad_paragraphs(tmp_path: Path, indent: int | None, encoding: str) -> None:
    articles = [
        {"title": "Oder", "paragraphs": [{"context": "A river.", "qas": []}, {"context": "Long.", "qas": []}]},
        {"title": "Oder", "paragraphs": [{"context": "Another.", "qas": []}]},
    ]
    path = tmp_path / "squad.json"
    path.write_bytes(json.dumps({"version": "1.1", "data": articles}, indent=indent).encode(encoding))
    documents = read_corpus(path).documents
    assert [document.id for document in documents] == ["Oder/0", "Oder/1", "Oder#2/0"]
    assert {document.title for document in documents} == {"Oder"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lines.json", '{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}'),
        ("list.jsonl", '[{"id": "a", "text": "x"}, {"id": "b", "text": "y"}]'),
        ("data.jsonl", '{"id": "a", "text": "x", "data": []}\n{"id": "b", "text": "y"}'),
        ("pretty.json", '[\n  {"id": "a", "text": "x"},\n  {"id": "b", "text": "y"}\n]'),
    ],
)
def test_json_is_told_apart_by_its_content(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert [document.id for document in read_corpus(tmp_path / name).documents] == ["a", "b"]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_wrapped_documents_and_their_content(tmp_path: Path, name: str, indent: int | None) -> None:
    records = [{"id": "a", "content": "x", "kind": "k"}, {"title": "T", "content": "y"}, {"text": "z", "content": "c"}]
    path = tmp_path / name
    path.write_text(json.dumps({"documents": records}, indent=indent))
    if name == "a.jsonl" and indent:
        pytest.skip("JSON lines hold one object per line")
    documents = read_corpus(path).documents
    assert [(d.id, d.text) for d in documents] == [("a", "x"), ("T", "y"), ("2", "z")]
    assert documents[0].metadata == {"source": name, "kind": "k"}
    assert documents[2].metadata["content"] == "c"


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_rows_with_a_text_are_documents(tmp_path: Path, mark: str) -> None:
    rows = [["id", "title", "text", "year"], ["a", "A", 'x "y"\nz', "1"], ["", "", "", ""], ["", "B", "two", ""]]
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=mark).writerows(rows)
    first, second = read_corpus(path).documents
    assert (first.id, first.title, first.text) == ("a", "A", 'x "y"\nz')
    assert first.metadata == {"source": "a.csv", "year": "1"}
    assert (second.id, second.text) == ("a.csv/2", "two")


def test_other_tables_are_one_document_whose_lines_name_their_columns(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("name\tyear\t\nGrunwald\t1910\tx\n\nLong\nname\t\t\textra\n")
    (tmp_path / "b.csv").write_text("name,year\n")
    report = read_corpus(tmp_path)
    assert [d.text for d in report.documents] == [
        "name: Grunwald; year: 1910; x\nname: Long\nname: name; extra",
    ]
    assert [problem.kind for problem in report.problems] == ["empty"]


def test_a_broken_table_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,2\r3\r")
    report = read_corpus(tmp_path, on_error="skip")
    assert [d.text for d in report.documents] or report.problems[0].location


def test_lihuaworld_archive(tmp_path: Path) -> None:
    path = archive(
        tmp_path / "world.zip",
        {
            "World/": b"",
            "World/week2/20260114_1700.txt": b"Time: 20260114_17:05\nAnn: Hi\n",
            "World/week1/20260101_0900.txt": b"Ann: no time line\n",
            "World/week1/notes.txt": b"no time at all",
            "World/.DS_Store": b"\x00",
            "__MACOSX/._20260101_0900.txt": b"\x00",
            "../escape.txt": b"Time: 20260102_10:00\n",
            "World/week1/20260103_0900.txt": b"Time: 20260103_09:00\n\xff",
            "World/week1/20260104_0900.txt": b"",
        },
    )
    report = read_corpus(path, on_error="skip")
    assert {document.id: document.metadata["folder"] for document in report.documents} == {
        "20260101_09:00": "week1",
        "20260114_17:05": "week2",
    }
    errors = {problem.location: problem.reason for problem in report.errors}
    assert set(errors) == {"../escape.txt", "World/week1/notes.txt", "World/week1/20260103_0900.txt"}
    assert "byte 21" in errors["World/week1/20260103_0900.txt"]
    assert report.summary() == "2 documents, 3 errors, 1 empty, 2 ignored"
    assert {entry.name for entry in tmp_path.parent.iterdir() if entry.name == "escape.txt"} == set()


def test_a_damaged_archive_is_named_and_its_other_members_are_read(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        file.writestr("20260101_0900.txt", b"Time: 20260101_09:00\nfirst")
        file.writestr("20260102_0900.txt", b"Time: 20260102_09:00\nsecond")
    whole = buffer.getvalue()
    path = tmp_path / "world.zip"
    path.write_bytes(whole.replace(b"first", b"fxrst", 1))
    report = read_corpus(path, on_error="skip")
    assert [document.id for document in report.documents] == ["20260102_09:00"]
    assert "CRC" in report.problems[0].reason
    path.write_bytes(whole[:-30])
    with pytest.raises(InputError, match="not a readable zip archive"):
        read_corpus(path)


@pytest.mark.parametrize(
    ("file", "count", "identity"),
    [
        ("lihuaworld/LiHuaWorld.zip", 442, "20260921_16:00"),
        ("2wikimultihopqa/corpus.json", 6119, "Teutberga"),
        ("xquad/xquad.en.dev.json", 180, "Super_Bowl_50/0"),
        ("xquad/xquad.zh.dev.json", 180, "Super_Bowl_50/0"),
        ("graphrag_bench_medical/corpus.json", 1, "Medical"),
    ],
)
def test_published_files_are_read_whole(file: str, count: int, identity: str) -> None:
    if not (DATA / file).is_file():
        pytest.skip(f"no {file} under QGRAG_DATA")
    report = read_corpus(DATA / file)
    assert (len(report.documents), len(report.problems)) == (count, 0)
    assert identity in {document.id for document in report.documents}
