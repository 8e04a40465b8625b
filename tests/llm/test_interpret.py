import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgrag.llm.interpret import find_repetition, strip_reasoning


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>hm</think>Paris", "Paris"),
        ("\n<think>\nhm\n\n</think>\n\nParis", "Paris"),
        ("<thinking>hm</thinking> Paris", "Paris"),
        ("<THINK>hm</THINK>\nParis", "Paris"),
        ("<seed:think>hm</seed:think>Paris", "Paris"),
        ("[THINK]hm[/THINK]Paris", "Paris"),
        ("◁think▷hm◁/think▷Paris", "Paris"),
        ("[Thought] is a journal.", "[Thought] is a journal."),
        ("hm, let me see\n</think>\n\nParis", "Paris"),
        ('hm</think>{"a": 1}', '{"a": 1}'),
        ("<think>it never ends", ""),
        ("Paris", "Paris"),
        ("The page uses <think>a tag</think> here.", "The page uses <think>a tag</think> here."),
        ('It ends at the tag "</think>"\nas the source says.', 'It ends at the tag "</think>"\nas the source says.'),
        ("Write `</think>`\nto end it.", "Write `</think>`\nto end it."),
        ("The tag </think> ends it.", "The tag </think> ends it."),
        ('{"answer": "it says </think>\\n so"}', '{"answer": "it says </think>\\n so"}'),
        ("<think>a</think>The log says <think>b</think>.", "The log says <think>b</think>."),
    ],
)
def test_only_a_leading_reasoning_block_goes(text: str, left: str) -> None:
    assert strip_reasoning(text) == left


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "\n", "{", '"', "。"]), max_size=12).map("".join))
def test_what_is_left_is_an_end_of_the_text(text: str) -> None:
    assert text.endswith(strip_reasoning(text))


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("ha" * 60, 2),
        ("begin " + "no, " * 40, 10),
        ("李华说" * 40, 3),
        ("x" * 79, None),
        ("a normal sentence, a normal sentence", None),
        ("| a | b |\n" * 7, None),
        ("", None),
    ],
)
def test_repetition(text: str, start: int | None) -> None:
    assert find_repetition(text) == start


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=30), st.text(min_size=1, max_size=20), st.integers(80, 120))
def test_repetition_to_the_end_is_found(head: str, unit: str, times: int) -> None:
    text = head + unit * times
    start = find_repetition(text)
    assert start is not None
    assert start <= len(head) + len(unit)
