import json

from qgrag.extraction.records import Triple
from qgrag.llm.usage import measure
from qgrag.retrieval.steps.llm_entity_questions import LLMEntityQuestions
from qgrag.retrieval.steps.llm_entity_summaries import LLMEntitySummaries
from qgrag.retrieval.steps.llm_implicit_nodes import LLMImplicitNodes
from qgrag.retrieval.steps.llm_query_entities import LLMQueryEntities
from qgrag.retrieval.steps.protocols import QueryEntitySet
from tests.llm.server import Answer, Call, connected, fail, say, serving


def says(**fields: object) -> Answer:
    return say(json.dumps(fields, ensure_ascii=False))


def test_query_entities() -> None:
    def behave(call: Call) -> Answer:
        if "Solaris" in call.prompt:
            return says(
                explicit=["solaris (1972 film)", "Andrei Tarkovsky", "Lantern Fair"],
                enhanced=["director", "Director", "SOLARIS (1972 film)", "", "founder"],
            )
        return says(explicit=["李华"], enhanced=["生日"]) if "李华" in call.prompt else fail(400)

    queries = ["Who directed Solaris (1972 film)?", "李华的生日是哪天？", "unlucky"]
    with serving(behave) as server, connected(server) as model, measure() as meter:
        sets = LLMQueryEntities(model)(queries)
    assert sets == [
        QueryEntitySet(("Solaris (1972 film)",), ("Andrei Tarkovsky", "director", "founder")),
        QueryEntitySet(("李华",), ("生日",)),
        None,
    ]
    assert meter.of(queries[1])["query_entities"].calls == 1


STATEMENTS = [Triple("Mira Tolland", "founded", "Map House"), Triple("Map House", "lies in", "Port Esk")]


def test_implicit_nodes_come_from_the_statements_and_are_new() -> None:
    answer = says(nodes=["map house", "Mira Tolland", "MIRA TOLLAND", "Atlantis", "Port Esk"])
    with serving(lambda call: answer) as server, connected(server) as model:
        chosen = LLMImplicitNodes(model, count=2)(
            ["Where?", "Where else?"], [["Map House"], ["Map House"]], [STATEMENTS, []]
        )
        assert len(server.calls) == 1
        assert "Mira Tolland | founded | Map House\nMap House | lies in | Port Esk" in server.calls[0].prompt
    assert chosen == [["Mira Tolland", "Port Esk"], []]


def test_statements_beyond_the_limit_are_left_out() -> None:
    many = [Triple(f"node {i}", "leads to", f"node {i + 1}") for i in range(1000)]
    with serving(lambda call: fail(400)) as server, connected(server) as model:
        assert LLMImplicitNodes(model, max_triple_tokens=100)(["q"], [[]], [many]) == [[]]
        assert 5 < server.calls[0].prompt.count("leads to") < 20
        assert "Nodes: none" in server.calls[0].prompt


def test_entity_questions() -> None:
    answer = says(questions=["How so?", "how so", "  ", "Since when?", "Where?"])
    with serving(lambda call: answer) as server, connected(server) as model:
        questions = LLMEntityQuestions(model, count=2)(["q", "r"], ["honey", "bees"])
        assert {"Subject: honey", "Subject: bees"} == {prompt.split("\n")[2] for prompt in server.prompts}
    assert questions == [["How so?", "Since when?"]] * 2


def test_entity_summaries() -> None:
    def behave(call: Call) -> Answer:
        return fail(400) if "bees" in call.prompt else say("## Honey\nIt is sweet.")

    with serving(behave) as server, connected(server) as model:
        summaries = LLMEntitySummaries(model)(
            ["q", "r", "s"], ["honey", "bees", "wax"], [["It is sweet."], ["They fly."], []], [["How so?"], [], []]
        )
        assert len(server.calls) == 2
        assert any("- How so?\nNotes:\n- It is sweet." in prompt for prompt in server.prompts)
    assert summaries == ["## Honey\nIt is sweet.", "", ""]
