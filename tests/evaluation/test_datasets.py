"""Data sets in their publishers' formats, on small files written here and on the published ones where they are."""

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qgrag.errors import InputError
from qgrag.evaluation.datasets import load_dataset, load_documents

LIHUA = {
    "1": {"question": "Who called?", "answer": "Ann", "evidence": "20260101_10:00", "type": "Single"},
    "2": {
        "question": "Who met twice?",
        "answer": "Bob and Ann",
        "evidence": "20260101_10:00<and>20260102_11:30<and>20260102_11:30",
        "type": "Multi",
    },
    "3": {"question": "What of Mars?", "answer": "Insufficient information", "evidence": "N/A", "type": "Null"},
    "4": {"question": "And then?", "answer": "x", "evidence": "20260102_11:30<and>20300101_00:00", "type": "Multi"},
    "5": {"question": "When?", "answer": "x", "evidence": "What", "type": "Single"},
}  # fmt: skip
SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "Rivers",
            "paragraphs": [
                {
                    "context": "The Elbe flows to the North Sea.",
                    "qas": [
                        {
                            "id": "r1",
                            "question": "Where does the Elbe flow?",
                            "answers": [
                                {"text": "the North Sea", "answer_start": 18},
                                {"text": "the North Sea", "answer_start": 18},
                                {"text": "North Sea", "answer_start": 22},
                            ],
                        }
                    ],
                },
                {
                    "context": "长江流入东海。",
                    "qas": [
                        {"id": "r2", "question": "长江流入哪里？", "answers": [{"text": "东海", "answer_start": 4}]},
                        {"id": "r3", "question": "谁？", "answers": [], "is_impossible": True},
                    ],
                },
            ],
        }
    ],
}


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


@pytest.fixture
def lihua(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "LiHuaWorld.zip", "w") as archive:
        archive.writestr("LiHua-World/week1/20260101_1000.txt", "Time: 20260101_10:00\nAnn: Hello!")
        archive.writestr("LiHua-World/week1/20260102_1130.txt", "Time: 20260102_11:30\nBob: Hello!")
    write(tmp_path / "query_set.json", LIHUA)
    return tmp_path


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    write(
        tmp_path / "corpus.json",
        [{"title": "Ann", "text": "Ann is Bob's aunt."}, {"title": "Bob", "text": "Bob was born in Rome."}],
    )
    write(
        tmp_path / "questions_dev.json",
        [{"id": "w0", "question": "Where was Ann's nephew born?", "supporting_titles": ["Ann", "Bob"]}],
    )
    return tmp_path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    lines = [
        {"id": "a", "title": "A", "text": "Same words."},
        {"id": "b", "title": "A", "text": "Same words."},
        {"id": "c", "text": "Other words."},
    ]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    questions = [
        {"id": "1", "question": "One?", "documents": ["b"], "answer": "x", "type": "Comparison"},
        {"id": "2", "question": "Two?", "documents": ["c", "b", "a"], "answer": ["x", "y"]},
        {"id": "3", "question": "None?", "documents": []},
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(json.dumps(line) for line in questions) + "\n\n")
    return tmp_path


def test_lihuaworld(lihua: Path) -> None:
    dataset = load_dataset("lihuaworld", lihua)
    assert {document.id for document in dataset.documents} == {"20260101_10:00", "20260102_11:30"}
    gold = {question.id: (question.type, question.gold) for question in dataset.questions}
    assert gold == {
        "1": ("single", ("20260101_10:00",)),
        "2": ("multi", ("20260101_10:00", "20260102_11:30")),
        "3": ("null", ()),
        "4": ("multi", ("20260102_11:30",)),
        "5": ("single", ()),
    }
    assert dataset.questions[0].answers == ("Ann",)
    assert dataset.problems == (
        "question '4': its evidence '20300101_00:00' names no document",
        "question '5': its evidence 'What' names no document",
    )


def test_lihuaworld_by_its_zip(lihua: Path) -> None:
    assert load_dataset("lihuaworld", lihua / "LiHuaWorld.zip") == load_dataset("lihuaworld", lihua)


def test_other_questions_take_the_place_of_its_own(lihua: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    other = write(tmp_path / "elsewhere" / "mine.json", {"x": LIHUA["1"]})
    dataset = load_dataset("lihuaworld", lihua, other)
    assert [question.id for question in dataset.questions] == ["x"]
    assert dataset.files["questions"]["name"] == "mine.json"
    assert dataset.files["questions"]["sha256"] != load_dataset("lihuaworld", lihua).files["questions"]["sha256"]
    assert dataset.files["documents"] == load_dataset("lihuaworld", lihua).files["documents"]


def test_2wikimultihopqa(wiki: Path) -> None:
    (question,) = load_dataset("2wikimultihopqa", wiki).questions
    assert (question.type, question.gold, question.answers) == ("multi", ("Ann", "Bob"), ())


def test_2wikimultihopqa_prefers_the_full_set_and_takes_what_it_gives(wiki: Path) -> None:
    full = {"id": "w1", "question": "Who?", "supporting_titles": ["Ann", "Eve"], "answer": "Bob", "type": "Bridge"}
    write(wiki / "questions.json", [full])
    dataset = load_dataset("2wikimultihopqa", wiki)
    (question,) = dataset.questions
    assert (question.id, question.type, question.gold, question.answers) == ("w1", "bridge", ("Ann",), ("Bob",))
    assert dataset.problems == ("question 'w1': its evidence 'Eve' names no document",)


def test_squad(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.json", SQUAD)
    dataset = load_dataset("squad", path)
    text = {document.id: document.text for document in dataset.documents}
    elbe, yangtze, impossible = dataset.questions
    assert [text[id_] for id_ in elbe.gold] == ["The Elbe flows to the North Sea."]
    assert [text[id_] for id_ in yangtze.gold] == ["长江流入东海。"]
    assert (elbe.type, elbe.answers) == ("single", ("the North Sea", "North Sea"))
    assert (impossible.type, impossible.gold) == ("null", ())
    assert load_dataset("squad", tmp_path) == dataset


def test_squad_questions_of_other_paragraphs_are_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "dev.json", SQUAD)
    paragraph = {"context": "No such text. " * 20, "qas": SQUAD["data"][0]["paragraphs"][0]["qas"]}
    other = write(tmp_path / "other.txt", {"data": [{"title": "Seas", "paragraphs": [paragraph]}]})
    dataset = load_dataset("squad", path, other)
    assert dataset.questions[0].gold == ()
    assert len(dataset.problems) == 1
    assert "'No such text. No" in dataset.problems[0]
    assert len(dataset.problems[0]) < 200


def test_squad_folder_has_to_hold_one_file(tmp_path: Path) -> None:
    write(tmp_path / "en.json", SQUAD)
    write(tmp_path / "zh.json", SQUAD)
    with pytest.raises(InputError, match=r"expected one corpus, found en\.json, zh\.json; name the file \(--data\)"):
        load_dataset("squad", tmp_path)


def test_own_questions(own: Path) -> None:
    one, two, none = load_dataset("jsonl", own).questions
    assert (one.type, one.gold, one.answers) == ("comparison", ("a",), ("x",))
    assert (two.type, two.gold, two.answers) == ("multi", ("c", "a"), ("x", "y"))
    assert (none.type, none.gold, none.answers) == ("null", (), ())


def test_own_questions_over_a_folder_of_texts(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("About a.")
    (folder / "b.md").write_text("# B\nAbout b.")
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"id": "1", "question": "a?", "documents": ["a.txt"]}\n')
    dataset = load_dataset("jsonl", folder, questions)
    assert dataset.questions[0].gold == ("a.txt",)
    before = dataset.files["documents"]["sha256"]
    (folder / "b.md").write_text("# B\nAbout c.")
    assert load_dataset("jsonl", folder, questions).files["documents"]["sha256"] != before
    with pytest.raises(InputError, match=r"no question file .*--questions"):
        load_dataset("jsonl", folder)
    assert [document.id for document in load_documents("jsonl", folder).documents] == ["a.txt", "b.md"]


def test_documents_need_no_questions(wiki: Path) -> None:
    (wiki / "questions_dev.json").unlink()
    assert [document.id for document in load_documents("2wikimultihopqa", wiki).documents] == ["Ann", "Bob"]
    assert load_documents("demo").documents == list(load_dataset("demo").documents)
    with pytest.raises(InputError, match="unknown data set 'wiki'"):
        load_documents("wiki", wiki)
    with pytest.raises(InputError, match=r"found no corpus \(looked for LiHuaWorld\.zip\)"):
        load_documents("lihuaworld", wiki)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("lihuaworld", "{", r"bad: not JSON at line 1, column 2"),
        ("lihuaworld", "[]", r"bad: expected an object .* found a JSON list"),
        ("lihuaworld", "{}", "holds no question"),
        ("lihuaworld", '{"7": 3}', r"bad, question '7': expected an object, not 3"),
        ("lihuaworld", '{"7": {"question": "q"}}', r"bad, question '7': field 'evidence' is missing"),
        (
            "lihuaworld",
            '{"7": {"question": " ", "answer": "a", "evidence": "N/A", "type": "Null"}}',
            r"bad, question '7': field 'question' is empty",
        ),
        ("2wikimultihopqa", '[1]', r"bad, question 1: expected an object, not 1"),
        (
            "2wikimultihopqa",
            '[{"id": "a", "question": "q", "supporting_titles": "Ann"}]',
            r"bad, question 1: field 'supporting_titles' has to hold a list of texts, not 'Ann'",
        ),
        (
            "2wikimultihopqa",
            '[{"id": "a", "question": "q", "supporting_titles": ["Ann", 7]}]',
            r"field 'supporting_titles' has to hold a list of texts, but one of them is 7",
        ),
        (
            "2wikimultihopqa",
            json.dumps([{"id": "a", "question": "q", "supporting_titles": []}] * 2),
            r"bad: two questions have the id 'a'",
        ),
        ("squad", '{"data": {}}', r"bad, top level: field 'data' has to hold a list of objects"),
        (
            "squad",
            '{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": 5, "answers": []}]}]}]}',
            r"bad, top level, data 1, paragraphs 1, qas 1: field 'id' has to hold a text, not 5",
        ),
        ("jsonl", '{"id": "1"}\nnope', r"bad, line 1: field 'documents' is missing"),
        ("jsonl", '{"id": "1", "question": "q", "documents": []}\n\nnope', r"bad, line 3, column 1: not JSON"),
        ("jsonl", "3", r"bad, line 1: expected an object, not 3"),
    ],
)  # fmt: skip
def test_broken_questions_are_named(
    name: str, content: str, message: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if name == "squad":
        data = write(tmp_path / "dev.json", SQUAD)
    else:
        data = request.getfixturevalue({"lihuaworld": "lihua", "2wikimultihopqa": "wiki", "jsonl": "own"}[name])
    bad = tmp_path / "bad"
    bad.write_text(content)
    with pytest.raises(InputError, match=message):
        load_dataset(name, data, bad)


def test_question_file_that_is_no_text(lihua: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match=r"bad\.json: not UTF-8 at byte 7"):
        load_dataset("lihuaworld", lihua, bad)
    with pytest.raises(InputError, match="no such file"):
        load_dataset("lihuaworld", lihua, tmp_path / "absent.json")


def test_question_file_with_byte_order_mark(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "bom.jsonl"
    path.write_text('{"id": "1", "question": "q", "documents": ["a"]}', encoding="utf-8-sig")
    assert load_dataset("jsonl", own, path).questions[0].gold == ("a",)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown data set 'lihua'; known are demo, jsonl, lihuaworld"):
        load_dataset("lihua", tmp_path)
    with pytest.raises(InputError, match=r"needs its files.*--data"):
        load_dataset("lihuaworld")
    with pytest.raises(InputError, match="no such file or folder"):
        load_dataset("lihuaworld", tmp_path / "absent")
    with pytest.raises(InputError, match=r"found no corpus \(looked for LiHuaWorld\.zip\)"):
        load_dataset("lihuaworld", tmp_path)


def test_demo_comes_with_the_package() -> None:
    dataset = load_dataset("demo")
    assert dataset.problems == ()
    assert {question.type for question in dataset.questions} == {"single", "multi"}
    assert all(question.gold and question.answers for question in dataset.questions)


def test_published_lihuaworld(data_folder: Path) -> None:
    dataset = load_dataset("lihuaworld", data_folder / "lihuaworld", data_folder / "lihuaworld" / "query_set_dev.json")
    assert len(dataset.documents) == 442
    assert Counter(question.type for question in dataset.questions) == {"single": 255, "multi": 24, "null": 34}
    assert Counter(question.type for question in dataset.questions if question.gold) == {"single": 251, "multi": 24}
    assert len(dataset.problems) == 4


def test_published_2wikimultihopqa(data_folder: Path) -> None:
    folder = data_folder / "2wikimultihopqa"
    dataset = load_dataset("2wikimultihopqa", folder, folder / "questions_dev.json")
    assert (len(dataset.documents), len(dataset.questions), dataset.problems) == (6119, 50, ())
    assert Counter(len(question.gold) for question in dataset.questions) == {2: 39, 4: 11}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_published_squad(data_folder: Path, language: str) -> None:
    dataset = load_dataset("squad", data_folder / "xquad" / f"xquad.{language}.dev.json")
    assert (len(dataset.documents), len(dataset.questions), dataset.problems) == (180, 894, ())
    text = {document.id: document.text for document in dataset.documents}
    assert all(answer in text[question.gold[0]] for question in dataset.questions for answer in question.answers)


def test_published_medical_questions(data_folder: Path) -> None:
    dataset = load_dataset("graphrag-bench", data_folder / "graphrag_bench_medical")
    assert (len(dataset.documents), len(dataset.questions), dataset.problems) == (1, 1035, ())
    assert all(question.answers and not question.gold for question in dataset.questions)
    assert len({question.type for question in dataset.questions}) == 4


def test_documents_that_stand_in_for_each_other_are_read_as_groups(tmp_path):
    corpus = [{"id": "a", "text": "One."}, {"id": "b", "text": "Two."}, {"id": "c", "text": "Three."}]
    corpus += [{"id": "b2", "text": "Two."}]
    questions = [
        {"id": "1", "question": "One?", "documents": [["a", "b"], "c"]},
        {"id": "2", "question": "Two?", "documents": [["b", "lost"]]},
        {"id": "3", "question": "Three?", "documents": [["a", "b"], ["b2", "c"]]},
        {"id": "4", "question": "Four?", "documents": ["a", "a"]},
    ]
    for name, rows in (("corpus", corpus), ("questions", questions)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = load_dataset("jsonl", tmp_path)
    assert [(q.gold, q.evidence, q.type) for q in dataset.questions] == [
        (("a", "b", "c"), (("a", "b"), ("c",)), "multi"),
        (("b",), (("b",),), "single"),
        (("a", "b", "c"), (("a", "b", "c"),), "multi"),
        (("a",), (("a",),), "single"),
    ]
    assert dataset.problems == ("question '2': its evidence 'lost' names no document",)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([["a", "b"], "b"], "names 'b' in two groups"),
        ([[]], r"one entry is \[\]"),
        ([{"id": "a"}], "texts and lists of texts"),
    ],
)
def test_groups_that_cannot_be_meant_are_named(tmp_path, documents, message):
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"id": "a", "text": "One."}) + "\n")
    line = json.dumps({"id": "1", "question": "One?", "documents": documents})
    (tmp_path / "questions.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match=f"line 1: field 'documents' .*{message}"):
        load_dataset("jsonl", tmp_path)
