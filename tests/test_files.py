import json
import os
import stat

import pytest
import torch
from safetensors.torch import save_file

from qgrag.errors import InputError
from qgrag.files import append_json_lines, json_object, read_json_lines, whole_file, whole_folder, write_json_lines


@pytest.fixture
def group_readable():
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def stop_halfway(path):
    path.write_text("half")
    raise RuntimeError


def test_a_file_follows_the_umask_whatever_wrote_it(tmp_path, group_readable):
    path = tmp_path / "a.safetensors"
    with whole_file(path) as aside:
        save_file({"x": torch.zeros(1)}, str(aside))
    assert mode(path) == 0o640
    with whole_folder(tmp_path / "model") as aside:
        save_file({"x": torch.zeros(1)}, str(aside / "a.safetensors"))
    assert mode(tmp_path / "model" / "a.safetensors") == 0o640
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["a.safetensors"]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), whole_file(path) as aside:
        stop_halfway(aside)
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "folder") as aside:
        stop_halfway(aside / "half")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_what_a_killed_writer_left_is_overwritten(tmp_path):
    (tmp_path / "a.txt.partial").write_text("left")
    with whole_file(tmp_path / "a.txt") as aside:
        aside.write_text("new")
    (tmp_path / "folder.partial").mkdir()
    (tmp_path / "folder.partial" / "left").write_text("left")
    with whole_folder(tmp_path / "folder") as aside:
        (aside / "b").write_text("new")
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["a.txt", "folder", "folder/b"]


def test_a_folder_never_takes_the_place_of_a_full_one(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    with pytest.raises(OSError, match="not empty"), whole_folder(tmp_path / "folder") as aside:
        (aside / "b").write_text("new")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["mine"]


def test_a_device_is_written_to(tmp_path):
    assert write_json_lines(tmp_path.__class__("/dev/null"), [{"a": 1}]) == 1
    with pytest.raises(OSError, match="No space left"):
        write_json_lines(tmp_path.__class__("/dev/full"), [{"a": 1}])


def test_json_lines_come_back(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"text": "line\u2028separator and Kaliště"}, {"half a pair": "\ud800"}]
    assert write_json_lines(path, rows) == 2
    append_json_lines(path, [{"n": 1.5}])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b'{"n"', b'\r\n \n{"n"'))
    assert list(read_json_lines(path)) == [(1, rows[0]), (2, rows[1]), (5, {"n": 1.5})]
    assert "Kaliště" in path.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json_lines(path, [{"n": float("nan")}])
    assert len(list(read_json_lines(path))) == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a": ', "line 2, column 6: not JSON"),
        (b"[1, 2]", r"line 2: expected an object, not \[1, 2\]"),
        (b'{"a": "\xff"}', "line 2: not UTF-8 at byte 7 of the line"),
        (b"[" * 200_000, "line 2: not JSON that can be read"),
        (b'{"a": ' + b"9" * 5000 + b"}", "line 2: not JSON that can be read"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{}\n" + line + b"\n")
    with pytest.raises(InputError, match=rf"a\.jsonl, {message}"):
        list(read_json_lines(path))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        list(read_json_lines(tmp_path / "none"))
    with pytest.raises(InputError, match="here: expected an object"):
        json_object(json.dumps("text"), "here")
