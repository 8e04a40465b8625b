import pytest

from qgrag.cli.data import run
from qgrag.corpus.records import Document
from qgrag.errors import InputError
from qgrag.index.builder import build_index
from qgrag.index.reader import Index
from qgrag.training.bridge_questions import bridge_questions
from qgrag.training.gold_pairs import GoldQuestion, document_groups, pairs_of_index, question_groups
from qgrag.training.pairs import TrainingPair
from qgrag.training.reward_examples import read_rewards

TEXTS = {
    "The Glass Harbour": "The Glass Harbour is a film directed by Maren Holt. It was released in Oslo in 1961.",
    "Maren Holt (director)": "Maren Holt was born in Bergen in 1920. Maren Holt won the Silver Lamp in 1964.",
    "Winter Orchard": "Winter Orchard is a novel written by Tomas Reed. It was published in London in 1950.",
    "Tomas Reed": "Tomas Reed was born in Dublin. Tomas Reed died in Lisbon in 1988.",
    "Stone Bridge": "Stone Bridge crosses the river Ald. It was built in 1702.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory, embedder) -> Index:
    folder = tmp_path_factory.mktemp("bridge") / "index"
    documents = [Document(f"d{i}", text, title) for i, (title, text) in enumerate(TEXTS.items())]
    build_index(documents, folder, embedder=embedder)
    return Index.open(folder, embedder=embedder)


def own(index):
    return pairs_of_index(index, document_groups(index, "document"))


def test_a_name_is_replaced_by_how_another_document_leads_to_it(index):
    questions = bridge_questions(index, own(index), seed=0)
    texts = {question.text: question.documents for question in questions}
    assert texts["Where was the one that The Glass Harbour directed by born in 1920?"] == ("d0", "d1")
    assert any("the one that Winter Orchard written by" in text for text in texts)
    hidden = {"d1": "Maren Holt", "d3": "Tomas Reed"}
    assert {target for _, target in texts.values()} == set(hidden)
    assert not any(hidden[target] in text for text, (_, target) in texts.items())


def test_every_document_is_on_one_bridge_and_the_seed_fixes_them(index):
    pairs = own(index)
    questions = bridge_questions(index, pairs, seed=3, per_bridge=1)
    assert questions == bridge_questions(index, pairs, seed=3, per_bridge=1)
    documents = [name for question in questions for name in question.documents]
    assert len(documents) == len(set(documents))
    groups = question_groups(bridge_questions(index, pairs, seed=3), document_groups(index, "document"))
    assert len(set(groups)) == len(questions)


def test_a_name_is_replaced_wherever_it_stands_whole_and_nowhere_else(index):
    pair = lambda query: TrainingPair(query, ("p",), (), ("d1",), (), "d1")  # noqa: E731
    inside = [pair("Who are the Maren Holters?"), pair("Is xMaren Holt a name?")]
    with pytest.raises(InputError, match="no statement leads"):
        bridge_questions(index, inside, seed=0)
    (question,) = bridge_questions(index, [*inside, pair("Is Maren Holt's home that of Maren Holt?")], seed=0)
    told = "the one that The Glass Harbour directed by"
    assert question == GoldQuestion(f"Is {told}'s home that of {told}?", ("d0", "d1"))


def test_without_titles_that_are_led_to_there_is_no_bridge(tmp_path, embedder):
    build_index([Document("a", "Maren Holt was born in Bergen in 1920.")], tmp_path / "i", embedder=embedder)
    index = Index.open(tmp_path / "i", embedder=embedder)
    with pytest.raises(InputError, match="no statement leads from one titled document to another"):
        bridge_questions(index, own(index), seed=0)


def test_the_command_adds_them_to_the_single_ones(index, tmp_path, capsys):
    arguments = [str(index.path), "--cache", str(tmp_path / "vectors"), "--limit", "6", "--bridges", "4"]
    run(["rewards", *arguments, "--out", str(tmp_path / "r"), "--split", "[0.6,0.4]"])
    assert "of 10 questions have at least two subgraphs" in capsys.readouterr().out
    examples = [e for part in ("train", "val") for e in read_rewards(tmp_path / "r" / f"{part}.jsonl")]
    assert any("the one that" in example.query for example in examples)
    with pytest.raises(InputError, match="leave --dataset out"):
        run(["rewards", *arguments, "--out", str(tmp_path / "r"), "--dataset", "demo"])
    with pytest.raises(InputError, match="--bridges at least 0, not 6 and -1"):
        run(["rewards", *arguments, "--out", str(tmp_path / "r"), "--bridges", "-1"])
