import math

import pytest
import torch

from qgrag.cli.data import run
from qgrag.errors import InputError
from qgrag.extraction.records import Triple
from qgrag.generation.subgraph_scores import SubgraphScore
from qgrag.retrieval.methods.qmkgf.retriever import QMKGFConfig
from qgrag.training import reward_labels
from qgrag.training.gold_pairs import GoldQuestion
from qgrag.training.reward_examples import LabelledSubgraph, RewardExample, best_shares, read_rewards
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


@pytest.mark.parametrize("join", ["vectors", "text"])
def test_a_triple_that_leads_to_the_gold_is_worth_more(demo_index, join):
    gold = demo_index.documents.unique[0]
    helpful = Triple(gold.title, "is told of in", " ".join(gold.text.split()[:12]))
    useless = Triple("an unrelated thing", "is", "of another kind")
    question = GoldQuestion("Who or what is meant?", (gold.id,))
    candidates = [[Candidate("good", (helpful,)), Candidate("bad", (useless,)), Candidate("none", ())]]
    (example,) = label_by_utility([question], candidates, ["g"], demo_index, demo_index.embedder, join)
    good, bad = example.subgraphs
    assert (good.name, bad.name, example.group) == ("good", "bad", "g")
    assert 1 >= good.reward > bad.reward >= 0
    twice = GoldQuestion(question.text, (gold.id, gold.id))
    assert label_by_utility([twice], candidates, ["g"], demo_index, demo_index.embedder, join) == [example]


def test_joined_by_vectors_a_question_costs_the_encoder_its_text_and_its_triples(demo_index):
    asked: list[str] = []

    class Counted:
        fingerprint, dimension = demo_index.embedder.fingerprint, demo_index.embedder.dimension

        def encode(self, texts):
            asked.extend(texts)
            return demo_index.embedder.encode(texts)

        def encode_queries(self, queries):
            asked.extend(queries)
            return demo_index.embedder.encode_queries(queries)

    gold, title = demo_index.documents.unique[0].id, demo_index.documents.unique[0].title
    candidates = [[Candidate("a", (Triple("a", "b", "c"),)), Candidate("d", (Triple("d", "e", "f"),))]] * 2
    questions = [GoldQuestion(title, (gold,)), GoldQuestion("second?", (gold,))]
    examples = label_by_utility(questions, candidates, ["g", "g"], demo_index, Counted(), "vectors")
    assert sorted(asked) == sorted(["a b c", "d e f", title, "second?"])
    q, t = demo_index.embedder.encode_queries([title, "a b c"])
    joined = torch.nn.functional.normalize(q + t, dim=0)
    passages = demo_index.passages.vectors.cpu()
    score = passages @ joined + passages @ q
    rank = 1 + int((score > score[0]).sum())
    assert demo_index.chunks[0].document_id == gold
    assert len(passages) == len(demo_index.documents.unique)
    assert 1 <= rank <= 10
    assert examples[0].subgraphs[0].reward == pytest.approx(1 / math.log2(1 + rank), abs=1e-6)


@pytest.mark.parametrize("join", ["vectors", "text"])
def test_labels_do_not_depend_on_how_many_subgraphs_are_in_memory(demo_index, questions, monkeypatch, join):
    candidates = subgraph_candidates([q.text for q in questions], demo_index, QMKGFConfig(nodes=3))
    groups = [q.text for q in questions]
    whole = label_by_utility(questions, candidates, groups, demo_index, demo_index.embedder, join)
    monkeypatch.setattr(reward_labels, "BLOCK", 2)
    parts = label_by_utility(questions, candidates, groups, demo_index, demo_index.embedder, join)
    assert len(whole) > 3
    assert [(e.query, e.group) for e in parts] == [(e.query, e.group) for e in whole]
    for one, other in zip(parts, whole, strict=True):
        assert [s.reward for s in one.subgraphs] == pytest.approx([s.reward for s in other.subgraphs], abs=1e-6)


def test_gold_has_to_be_in_the_index(demo_index):
    embedder, question = demo_index.embedder, GoldQuestion("q", ("nowhere",))
    candidates = [[Candidate("a", (Triple("a", "b", "c"),)), Candidate("d", (Triple("d", "e", "f"),))]]
    with pytest.raises(InputError, match="'nowhere', which the index lacks"):
        label_by_utility([question], candidates, ["g"], demo_index, embedder)
    assert label_by_utility([question], [candidates[0][:1]], ["g"], demo_index, embedder) == []


def test_marks_of_a_judge_become_rewards():
    a, b, c = (Candidate(name, (Triple(name, "is", "x"),)) for name in "abc")
    marks = {"a": SubgraphScore(0.9, 0.6, 0.3), "b": SubgraphScore(0, 0, 0), "c": None}
    judge = lambda queries, graphs: [marks[triples[0].head] for triples in graphs]  # noqa: E731
    examples = label_by_judge(["q", "r"], [[a, b, c], [a, c]], ["g", "h"], judge)
    assert [(e.query, e.group) for e in examples] == [("q", "g")]
    assert [(s.name, s.reward) for s in examples[0].subgraphs] == [("a", pytest.approx(0.6)), ("b", 0.0)]


def test_shares_of_the_most_useful_kinds():
    subgraphs = lambda *row: tuple(LabelledSubgraph(n, ("t",), r) for n, r in zip("abc", row, strict=True))  # noqa: E731
    examples = [
        RewardExample("q", subgraphs(*rewards)) for rewards in ((0.1, 0.9, 0.9), (0.5, 0.5, 0.5), (0.2, 0.1, 0))
    ]
    assert best_shares(examples) == {"a": 0.5, "b": 0.25, "c": 0.25}
    assert best_shares(examples[1:2]) == {}


def test_command_labels_the_questions_of_an_index(tmp_path, demo_folder, capsys):
    arguments = [str(demo_folder), "--out", str(tmp_path), "--limit", "30", "--subgraphs.nodes", "4"]
    arguments += ["--cache", str(tmp_path / "vectors")]
    assert run(["rewards", *arguments, "--split", "[0.5, 0.5]"]) == 0
    train, val = read_rewards(tmp_path / "train.jsonl"), read_rewards(tmp_path / "val.jsonl")
    assert not {e.group for e in train} & {e.group for e in val}
    assert any(example.informative for example in train)
    said = capsys.readouterr().out
    assert "questions have at least two subgraphs" in said
    assert "most useful: " in said
    with pytest.raises(InputError, match="needs --llm FILE"):
        run(["rewards", *arguments, "--labels", "llm"])
