import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from qgrag.llm.interpret import interpret
from qgrag.llm.parsing import json_schema, parse_answer
from qgrag.llm.records import Reply


class Pair(BaseModel):
    question: str
    answer: str


class Pairs(BaseModel):
    pairs: list[Pair]


class Verdict(BaseModel):
    correct: bool
    names: list[str]
    reason: str = ""


PAIR = {"question": "谁？", "answer": "李华"}
GOOD = json.dumps({"pairs": [PAIR, PAIR]}, ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        json.dumps({"pairs": [PAIR, PAIR]}),
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        f"Here they are:\n\n{GOOD}\n\nAnything else?",
        json.dumps([PAIR, PAIR]),
        json.dumps([{"pairs": [PAIR, PAIR]}]),
        json.dumps({"questions": [PAIR, PAIR]}),
        json.dumps({"pairs": [json.dumps(PAIR), json.dumps(PAIR)]}),
        GOOD.replace('"', "'"),
        GOOD.replace("}]}", "},]}"),
        GOOD[:-1] + ",\n}",
    ],
)
def test_forms_that_mean_the_same(text: str) -> None:
    parsed = parse_answer(text, Pairs)
    assert parsed.value == Pairs(pairs=[Pair(**PAIR)] * 2)
    assert parsed.dropped == 0


WIDE = GOOD.translate(str.maketrans("{}[],:", "｛｝［］，："))
FIRST = json.dumps({"pairs": [{"question": "who?", "answer": "wrong"}]})


@pytest.mark.parametrize(
    "text",
    [
        WIDE,
        f"答案如下：\n{WIDE}\n以上。",
        f"```json\n{WIDE}\n```",
        GOOD.replace('"pairs"', "“pairs”").replace('"谁？"', "“谁？”"),
        json.dumps({"pairs": json.dumps([PAIR, PAIR])}),
        json.dumps({"pairs": json.dumps([PAIR, PAIR], ensure_ascii=False).replace(",", "，")}),
        json.dumps({"pairs": [json.dumps([PAIR, PAIR])]}),
        json.dumps(GOOD),
        f"{FIRST}\n\nWait, that is wrong. Corrected:\n\n{GOOD}",
        f"```json\n{FIRST}\n```\nI missed one:\n```json\n{GOOD}\n```\nDone [1].",
        f"{FIRST}\n{GOOD}\nThere are no others: []",
        f'Form: {{"pairs": []}}. Answer: {GOOD}',
        f"[wrong] {json.dumps([PAIR])} no, rather {json.dumps([PAIR, PAIR])}",
        f"{GOOD} (see [1] and {{x}})",
        f"{GOOD} {'[' * 70}{']' * 70}",
        f"{json.dumps(PAIR)}\n{json.dumps(PAIR)}",
        f"1. {json.dumps(PAIR)}\n2. {json.dumps(PAIR)}",
    ],
)
def test_more_forms_that_mean_the_same(text: str) -> None:
    parsed = parse_answer(text, Pairs)
    assert parsed.value == Pairs(pairs=[Pair(**PAIR)] * 2)
    assert parsed.dropped == 0


def test_marks_of_chinese_text_inside_of_strings_stay() -> None:
    item = {"question": "谁，何时：｛甲｝？", "answer": "“李华”，［1998］"}
    wide = json.dumps({"pairs": [item]}, ensure_ascii=False).replace('{"', '｛"').replace('"}', '"｝')
    parsed = parse_answer(wide, Pairs)
    assert parsed.value == Pairs(pairs=[Pair(**item)])


def test_a_list_of_names_in_a_string_is_read() -> None:
    parsed = parse_answer('{"correct": true, "names": "[\\"a\\", \\"b\\"]"}', Verdict)
    assert parsed.value == Verdict(correct=True, names=["a", "b"])
    parsed = parse_answer('{"correct": true, "names": "[sic] a"}', Verdict)
    assert parsed.value == Verdict(correct=True, names=["[sic] a"])


@pytest.mark.parametrize("rest", ["", ",", ", ", "]", '], "', ', {"question": "q', ", {"])
def test_a_first_item_that_is_whole_before_a_cut_is_kept(rest: str) -> None:
    parsed = parse_answer(f'{{"pairs": [{json.dumps(PAIR)}{rest}', Pairs, truncated=True)
    assert parsed.value == Pairs(pairs=[Pair(**PAIR)])


def test_a_correction_that_breaks_off_does_not_bring_back_what_it_corrects() -> None:
    parsed = parse_answer(f'{FIRST} Corrected: {{"pairs": [{{"question": "wh', Pairs, truncated=True)
    assert parsed.value is None
    assert "breaks off" in parsed.error
    parsed = parse_answer(
        f'{FIRST} Corrected: {{"pairs": [{json.dumps(PAIR)}, {{"question": "wh', Pairs, truncated=True
    )
    assert parsed.value == Pairs(pairs=[Pair(**PAIR)])


@pytest.mark.parametrize("item", [{"question": "q"}, {"question": 1, "answer": []}, "text", None, [], 3])
def test_a_bad_item_costs_only_itself(item: Any) -> None:
    parsed = parse_answer(json.dumps({"pairs": [PAIR, item, PAIR]}), Pairs)
    assert parsed.value == Pairs(pairs=[Pair(**PAIR)] * 2)
    assert parsed.dropped == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("I cannot do that.", "no JSON"),
        ("3", "got a number"),
        ("{}", "pairs: Field required"),
        ('{"pairs": [{"question": "q"}]}', "pairs.0.answer: Field required"),
        ('{"pairs": [{"question": "q", "ans', "breaks off"),
        ("[" * 3000, "cannot be repaired"),
        ('{"a":' * 70 + "1" + "}" * 70, "nested"),
    ],
)
def test_what_cannot_be_used_says_why(text: str, words: str) -> None:
    parsed = parse_answer(text, Pairs)
    assert parsed.value is None
    assert words in parsed.error


@pytest.mark.parametrize("end", range(len(GOOD)))
def test_wherever_it_breaks_off_only_whole_items_come_through(end: int) -> None:
    parsed = parse_answer(GOOD[:end], Pairs, truncated=True)
    if parsed.value is not None:
        assert isinstance(parsed.value, Pairs)
        assert parsed.value.pairs
        assert all(pair == Pair(**PAIR) for pair in parsed.value.pairs)


def test_a_field_that_breaks_off_is_left_out() -> None:
    parsed = parse_answer('{"correct": true, "names": ["a"], "reason": "beca', Verdict)
    assert parsed.value == Verdict(correct=True, names=["a"])


def test_strict_schemas_demand_every_field_and_nothing_else() -> None:
    schema = json_schema(Verdict)
    assert schema["required"] == ["correct", "names", "reason"]
    assert schema["additionalProperties"] is False
    assert "default" not in json.dumps(schema)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["pairs", "question", "answer", "correct", "names", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)
broken = st.tuples(json_values.map(json.dumps), st.integers(0, 200), st.text(max_size=5)).map(
    lambda t: t[0][: t[1]] + t[2] + t[0][t[1] :]
)
scraps = st.lists(
    st.sampled_from([*'{}[]:,"\\\n｛｝［］，：“”', "pairs", "```json", "```", "null", "1e999", "谁", "//"]), max_size=30
)
answers = (
    st.text(max_size=200) | broken | scraps.map("".join) | st.binary(max_size=80).map(lambda b: b.decode("latin-1"))
)


@settings(deadline=None, max_examples=400)
@given(answers, st.sampled_from([Pairs, Verdict]), st.booleans())
def test_no_text_makes_it_raise_and_nothing_invalid_comes_through(
    text: str, schema: type[BaseModel], truncated: bool
) -> None:
    parsed = parse_answer(text, schema, truncated)
    assert (parsed.value is None) == bool(parsed.error)
    if parsed.value is not None:
        assert schema.model_validate(parsed.value.model_dump()) == parsed.value


@settings(deadline=None, max_examples=200)
@given(answers, st.sampled_from(["stop", "length", "", "odd"]), st.sampled_from([None, Pairs]))
def test_every_reply_becomes_a_text_or_an_error(text: str, reason: str, schema: type[BaseModel] | None) -> None:
    completion = interpret(Reply(text, reason), schema)
    if completion.error is None:
        assert completion.text
        assert schema is None or isinstance(completion.value, schema)
    else:
        assert completion.value is None
        assert completion.error.message
