import os
from pathlib import Path

import pytest

from qgrag.corpus.readers import read_corpus
from qgrag.corpus.readers.detect import READERS
from qgrag.corpus.report import Problem
from qgrag.errors import ConfigError, InputError


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def kinds(problems: list[Problem], root: Path) -> dict[str, str]:
    return {Path(problem.path).relative_to(root).as_posix(): problem.kind for problem in problems}


def test_text_and_markdown_at_any_depth(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "b.txt": "\ufeffplain\r\ntext",
            "a/b.md": "intro\n\n```\n# code\n```\n\n## The *title* ##\n\nbody",
            "a/同名 😀.markdown": "no heading".encode("utf-16"),
            "a/b.TXT": "another b",
        },
    )
    report = read_corpus(tmp_path)
    assert [(d.id, d.title, d.metadata["source"]) for d in report.documents] == [
        ("a/b.TXT", "", "a/b.TXT"),
        ("a/b.md", "The *title*", "a/b.md"),
        ("a/同名 😀.markdown", "", "a/同名 😀.markdown"),
        ("b.txt", "", "b.txt"),
    ]
    assert report.documents[3].text == "plain\r\ntext"
    assert report.documents[2].text == "no heading"
    assert report.summary() == "4 documents, 0 errors, 0 empty, 0 ignored"


def test_skip_keeps_all_that_is_good_and_names_the_rest(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "good.txt": "good",
            "latin.txt": b"caf\xe9",
            "binary.txt": b"a\x00b",
            "empty.txt": b"",
            "blank.md": "\ufeff \n\u3000\t",
            "unseen.txt": "\u200b\u2060\u00ad\n\u3164",
            ".hidden.txt": "x",
            ".git/config.txt": "x",
            "photo.jpg": "x",
            "README": "x",
            "more.jsonl": '{"id": "1", "text": "x"}',
        },
    )
    (tmp_path / "link").symlink_to(tmp_path.parent, target_is_directory=True)
    (tmp_path / "dangling.txt").symlink_to(tmp_path / "nowhere")
    report = read_corpus(tmp_path, on_error="skip")
    assert [document.id for document in report.documents] == ["good.txt"]
    assert kinds(report.problems, tmp_path) == {
        "latin.txt": "error",
        "binary.txt": "error",
        "dangling.txt": "error",
        "empty.txt": "empty",
        "blank.md": "empty",
        "unseen.txt": "empty",
        ".hidden.txt": "ignored",
        ".git": "ignored",
        "photo.jpg": "ignored",
        "README": "ignored",
        "more.jsonl": "ignored",
        "link": "ignored",
    }
    assert {problem.location for problem in report.errors} == {"byte 3", "character 1", ""}
    assert report.summary() == "1 document, 3 errors, 3 empty, 6 ignored"


def test_stop_names_file_reason_and_offset(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "good", "b.txt": b"caf\xe9", "empty.txt": b""})
    with pytest.raises(InputError, match=r"b\.txt \(byte 3\): not utf-8"):
        read_corpus(tmp_path)


def test_empty_and_ignored_files_do_not_stop(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "good", "empty.txt": b"", "x.jpg": b"\xff"})
    assert len(read_corpus(tmp_path, on_error="stop").documents) == 1


def test_stop_names_every_broken_file(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "good", "b.txt": b"caf\xe9", "c.txt": b"a\x00b", "d.pdf": b"%PDF-1.7 cut"})
    with pytest.raises(
        InputError, match=r"3 inputs are broken:\n.*b\.txt.*\n.*c\.txt.*\n.*d\.pdf.*\n.*--on-error skip"
    ):
        read_corpus(tmp_path)


def test_a_reader_that_fails_costs_its_own_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: object) -> None:
        raise KeyError("/Font")

    write(tmp_path, {"a.txt": "good", "b.rst": "broken", "c.txt": "good"})
    monkeypatch.setitem(READERS, "rst", fail)
    report = read_corpus(tmp_path, on_error="skip")
    assert [document.id for document in report.documents] == ["a.txt", "c.txt"]
    assert [problem.reason for problem in report.problems] == ["its reader failed: KeyError: '/Font'"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG image"),
        (b"\x1f\x8b\x08\x00\x00", "a gzip archive"),
        (b"\x7fELF\x02\x01\xff", "a program"),
        (bytes(range(256)) * 4, "unknown kind"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.csv", "a.jsonl"])
def test_binary_files_are_called_so(tmp_path: Path, data: bytes, kind: str, name: str) -> None:
    write(tmp_path, {name: data})
    with pytest.raises(InputError, match=rf"a binary file \({kind}\), not text"):
        read_corpus(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: The *Third* Man\n# no title\n---\n# Heading", "The *Third* Man"),
        ("---\n# a comment\ntags: [a]\n---\n\nText\n\n## Heading", "Heading"),
        ('+++\n# a comment\ntitle = "TOML"\n+++\ntext', "TOML"),
        ("---\n: [broken\n---\n# Heading", "Heading"),
        ("````\n```\n# code\n````\n# Heading #", "Heading"),
        ("    # indented code\n\n# Heading", "Heading"),
        ("<!--\n# comment\n-->\n\n# Heading", "Heading"),
        ("Two\nlines\n=====\n\ntext", "Two lines"),
        ("#hashtag\n\nHeading\n---\n", "Heading"),
        ("#\n\n# Heading", "Heading"),
        ("no heading\n\n---\n\ntext", ""),
    ],
)
def test_the_title_of_markdown(tmp_path: Path, text: str, title: str) -> None:
    write(tmp_path, {"a.md": text})
    (document,) = read_corpus(tmp_path).documents
    assert (document.title, document.text) == (title, text)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("=====\nTitle\n=====\n\ntext", "Title"),
        (".. note:: x\n\nA title\n-------\n\ntext", "A title"),
        ("not a title\n---\n\n标题\n----\n", "标题"),
        ("text alone", ""),
    ],
)
def test_the_title_of_restructured_text(tmp_path: Path, text: str, title: str) -> None:
    write(tmp_path, {"a.rst": text})
    (document,) = read_corpus(tmp_path).documents
    assert (document.title, document.text) == (title, text)


def test_source_code_is_titled_by_its_file(tmp_path: Path) -> None:
    write(tmp_path, {"src/main.py": "print('hi')\n", "web/App.TSX": "export {}"})
    assert [(d.id, d.title) for d in read_corpus(tmp_path).documents] == [
        ("src/main.py", "main.py"),
        ("web/App.TSX", "App.TSX"),
    ]


def test_an_encoding_can_be_named(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "音乐".encode("gb18030"), "b.txt": "音乐".encode("utf-16")})
    report = read_corpus(tmp_path, encoding="gb18030")
    assert [document.text for document in report.documents] == ["音乐", "音乐"]


def test_a_file_name_that_is_no_unicode_is_an_error(tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("x")
    except OSError:
        pytest.skip("this file system takes only Unicode names")
    report = read_corpus(tmp_path, on_error="skip")
    assert [problem.kind for problem in report.problems] == ["error"]
    assert "surrogate" in report.problems[0].reason


def test_one_file_on_its_own(tmp_path: Path) -> None:
    write(tmp_path, {"deep/note.md": "# T\nbody", "data.weird": "just text"})
    (document,) = read_corpus(tmp_path / "deep" / "note.md").documents
    assert (document.id, document.title) == ("note.md", "T")
    with pytest.raises(InputError, match=r"no reader for \.weird; name the format: text"):
        read_corpus(tmp_path / "data.weird")
    assert read_corpus(tmp_path / "data.weird", format="text").documents[0].text == "just text"


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no such file"):
        read_corpus(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="'parquet'"):
        read_corpus(tmp_path, format="parquet")
    with pytest.raises(ConfigError, match="'ignore'"):
        read_corpus(tmp_path, on_error="ignore")  # type: ignore[arg-type]
