import pytest

from qgrag.cli.data import run
from qgrag.errors import InputError
from qgrag.extraction.records import Triple
from qgrag.generation.subgraph_scores import SubgraphScore
from qgrag.retrieval.qmkgf import QMKGFConfig
from qgrag.training.gold_pairs import GoldQuestion
from qgrag.training.reward_examples import read_rewards
from qgrag.training.reward_labels import Candidate, label_by_judge, label_by_utility, subgraph_candidates


@pytest.fixture(scope="module")
def questions(demo_index):
    """A question about each of the first documents, by its title."""
    return [GoldQuestion(f"What is known of {d.title}?", (d.id,)) for d in demo_index.documents.unique[:12]]


def test_candidates_are_what_qmkgf_chooses_among(demo_index, questions):
    candidates = subgraph_candidates([q.text for q in questions], demo_index, QMKGFConfig(nodes=4))
    assert [[c.name for c in row] for row in candidates] == [["one-hop", "multi-hop", "importance"]] * len(questions)
    assert sum(bool(row[0].triples) for row in candidates) > len(questions) / 2
    names = set(demo_index.knowledge_graph.names)
    assert all(t.head in names and t.tail in names for row in candidates for c in row for t in c.triples)


def test_a_triple_that_leads_to_the_gold_is_worth_more(demo_index, questions):
    gold = demo_index.documents.unique[0]
    helpful = Triple(gold.title, "is told of in", " ".join(gold.text.split()[:12]))
    useless = Triple("an unrelated thing", "is", "of another kind")
    question = GoldQuestion("Who or what is meant?", (gold.id,))
    candidates = [[Candidate("good", (helpful,)), Candidate("bad", (useless,)), Candidate("none", ())]]
    (example,) = label_by_utility([question], candidates, ["g"], demo_index, demo_index.embedder.encode_queries)
    good, bad = example.subgraphs
    assert (good.name, bad.name, example.group) == ("good", "bad", "g")
    assert 1 >= good.reward > bad.reward > 0


def test_gold_has_to_be_in_the_index(demo_index):
    encode, question = demo_index.embedder.encode_queries, GoldQuestion("q", ("nowhere",))
    candidates = [[Candidate("a", (Triple("a", "b", "c"),)), Candidate("d", (Triple("d", "e", "f"),))]]
    with pytest.raises(InputError, match="'nowhere', which the index lacks"):
        label_by_utility([question], candidates, ["g"], demo_index, encode)
    assert label_by_utility([question], [candidates[0][:1]], ["g"], demo_index, encode) == []


def test_marks_of_a_judge_become_rewards():
    a, b, c = (Candidate(name, (Triple(name, "is", "x"),)) for name in "abc")
    marks = {"a": SubgraphScore(0.9, 0.6, 0.3), "b": SubgraphScore(0, 0, 0), "c": None}
    judge = lambda queries, graphs: [marks[triples[0].head] for triples in graphs]  # noqa: E731
    examples = label_by_judge(["q", "r"], [[a, b, c], [a, c]], ["g", "h"], judge)
    assert [(e.query, e.group) for e in examples] == [("q", "g")]
    assert [(s.name, s.reward) for s in examples[0].subgraphs] == [("a", pytest.approx(0.6)), ("b", 0.0)]


def test_command_labels_the_questions_of_an_index(tmp_path, demo_folder, capsys):
    arguments = [str(demo_folder), "--out", str(tmp_path), "--limit", "30", "--subgraphs.nodes", "4"]
    arguments += ["--cache", str(tmp_path / "vectors")]
    assert run(["rewards", *arguments, "--split", "[0.5, 0.5]"]) == 0
    train, val = read_rewards(tmp_path / "train.jsonl"), read_rewards(tmp_path / "val.jsonl")
    assert not {e.group for e in train} & {e.group for e in val}
    assert any(example.informative for example in train)
    assert "questions have at least two subgraphs" in capsys.readouterr().out
    with pytest.raises(InputError, match="needs --llm FILE"):
        run(["rewards", *arguments, "--labels", "llm"])
