from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.corpus.sentences import split_lines, split_sentences


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("你好。再见！走吗？走", ["你好。", "再见！", "走吗？", "走"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("Ann: Hi!\nBob: Hello. Bye.\n\nAnn: ok", ["Ann: Hi!", "Bob: Hello.", "Bye.", "Ann: ok"]),
        ("Windows\r\nlines\rand\u2028others", ["Windows", "lines", "and", "others"]),
        ("Dr. Lee met J. S. Bach in St. Gallen. They left.", ["Dr. Lee met J. S. Bach in St. Gallen.", "They left."]),
        ("It costs 3.14 at example.com today. Yes.", ["It costs 3.14 at example.com today.", "Yes."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ('"Really?" he asked. (She nodded.) Good.', ['"Really?" he asked.', "(She nodded.)", "Good."]),
        ("She said no. On Jan. 5 he said no. 7 was it.", ["She said no.", "On Jan. 5 he said no. 7 was it."]),
        ("1. First point. 2. Second.", ["1. First point.", "2. Second."]),
        ("Wait... what? yes!! no", ["Wait... what?", "yes!!", "no"]),
        ("The U.S. Army e.g. The rest.", ["The U.S. Army e.g. The rest."]),
        ("यह वाक्य है। दूसरा।", ["यह वाक्य है।", "दूसरा।"]),
        ("  \n \t\n", []),
        ("", []),
        ("...", ["..."]),
    ],
    ids=repr,
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_chat_line_is_one_line() -> None:
    text = "Time: 20260101_10:00\nAnn: Hi! How are you?\n\n Bob: Fine. \n"
    assert [text[a:b] for a, b in split_lines(text)] == ["Time: 20260101_10:00", "Ann: Hi! How are you?", "Bob: Fine."]


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=6), st.sampled_from([". ", "。", "\n", '."', "Dr. ", "\u3000"]))).map("".join)
)
def test_spans_are_ordered_trimmed_disjoint_and_complete(text: str) -> None:
    for spans in (split_sentences(text), split_lines(text)):
        assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        kept = "".join(text[start:end] for start, end in spans)
        assert "".join(kept.split()) == "".join(text.split())


@pytest.mark.parametrize("unit", ["a", ". ", "。", "\n", "Mr. ", '"', "...."])
def test_a_long_run_of_anything_is_linear(unit: str) -> None:
    assert split_sentences(unit * 200_000) is not None
