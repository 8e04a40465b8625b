"""Broad questions about a corpus, by rules and by a language model on loopback."""

import json
from collections import Counter

import pytest

from qgrag.corpus.records import Document
from qgrag.errors import InputError
from qgrag.evaluation.answers.broad_questions import LLMQuestionMaker, LocalQuestionMaker, QFSConfig, overview
from qgrag.llm.errors import LLMUnavailableError
from tests.llm.server import Answer, Call, connected, say, serving

CORPUS = [
    Document(str(n), f"{name} met Ada Lovelace in London. {name} left for Vienna in 18{n:02}.", name)
    for n, name in enumerate(
        f"{first} {last}"
        for first in ("Clara", "Franz", "Johann", "Fanny", "Felix")
        for last in ("Schumann", "Liszt", "Brahms", "Hensel", "Spohr")
    )
]


def test_rules_make_five_by_five_by_five_questions() -> None:
    questions = LocalQuestionMaker()(CORPUS)
    assert len(questions) == len({q.text for q in questions}) == len({q.id for q in questions}) == 125
    assert set(Counter(q.user for q in questions).values()) == {25}
    assert set(Counter((q.user, q.task) for q in questions).values()) == {5}
    assert "Ada Lovelace" in LocalQuestionMaker().topics(CORPUS, 3)
    assert LocalQuestionMaker()(CORPUS) == questions
    with pytest.raises(InputError, match="forms of question"):
        LocalQuestionMaker(QFSConfig(questions=6))


def test_a_language_model_makes_users_tasks_and_questions() -> None:
    users = {"users": [{"user": f"user {u}", "tasks": [f"task {u}{t}" for t in range(3)]} for u in range(3)]}

    def behave(call: Call) -> Answer:
        if "Task:" not in call.prompt:
            return say(json.dumps(users))
        task = call.prompt.rsplit("Task: ", 1)[1]
        return say(json.dumps({"questions": [f"{task}, question {n}?" for n in range(4)]}))

    with serving(behave) as server, connected(server) as model:
        made = LLMQuestionMaker(model, QFSConfig(users=2, tasks=3, questions=2))(CORPUS)
        assert len(server.calls) == 1 + 6
        assert all("Clara Schumann" in prompt for prompt in server.prompts)
    assert [q.text for q in made[:2]] == ["task 00, question 0?", "task 00, question 1?"]
    assert len(made) == 12
    assert [made[-1].user, made[-1].task, made[-1].id] == ["user 1", "task 12", "qfs-1-2-1"]


def test_ids_follow_users_and_tasks_where_there_are_fewer(caplog: pytest.LogCaptureFixture) -> None:
    users = {"users": [{"user": "a", "tasks": ["a0"]}, {"user": "b", "tasks": ["b0", "b1", "b2"]}]}
    given = {
        "a0": ["What changed?", "Who led it?"],
        "b0": [" what  CHANGED? ", "", "Who followed?"],
        "b1": ["Who led it?", "Why then?"],
    }

    def behave(call: Call) -> Answer:
        if "Task:" not in call.prompt:
            return say(json.dumps(users))
        task = call.prompt.rsplit("Task: ", 1)[1].strip()
        return say(json.dumps({"questions": given[task]})) if task in given else say("nothing comes to mind")

    config = QFSConfig(users=3, tasks=4, questions=3)
    with serving(behave) as server, connected(server) as model, caplog.at_level("WARNING"):
        made = LLMQuestionMaker(model, config)(CORPUS)
    assert [(q.id, q.user, q.task, q.text) for q in made] == [
        ("qfs-0-0-0", "a", "a0", "What changed?"),
        ("qfs-0-0-1", "a", "a0", "Who led it?"),
        ("qfs-1-0-2", "b", "b0", "Who followed?"),
        ("qfs-1-1-1", "b", "b1", "Why then?"),
    ]
    assert "no questions for user 'b', task 'b2'" in caplog.text
    assert config.total == 36


def test_no_users_is_an_error() -> None:
    with (
        serving(lambda call: say('{"users": []}')) as server,
        connected(server) as model,
        pytest.raises(LLMUnavailableError),
    ):
        LLMQuestionMaker(model)(CORPUS)


def test_an_overview_is_spread_over_the_corpus() -> None:
    seen = overview(CORPUS, 120).splitlines()
    assert len(seen) < len(CORPUS)
    assert seen[0].startswith("Clara Schumann: Clara Schumann met")
    assert any(line.startswith("Fel") for line in seen)
