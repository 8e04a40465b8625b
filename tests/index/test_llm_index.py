import json
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from qgrag.corpus.records import Document
from qgrag.errors import BuildStoppedError, ConfigError, IndexFormatError
from qgrag.index.builder import build_index, plan_index
from qgrag.index.config import IndexConfig
from qgrag.index.extractions import LLM_CACHE
from qgrag.index.knowledge.build import KnowledgeGraphConfig
from qgrag.index.query_graph import QueryGraphConfig
from qgrag.index.reader import Index
from qgrag.llm.config import LLMConfig, Pace
from qgrag.models.remote_embedder_config import RemoteEmbedderConfig
from qgrag.retrieval.registry import load_retriever
from tests.llm.server import Answer, Call, ChatServer, fail, say, serving

PLACES = {"rhine": "Basel", "danube": "Vienna", "elbe": "Dresden", "seine": "Paris"}
DOCUMENTS = [Document(name, f"The {name.title()} flows through {city}.") for name, city in PLACES.items()]
KEY = "sk-never-to-be-written"


def asked_for(call: Call) -> str:
    """The field that the call's schema asks for: pairs, triples or entities."""
    return next(iter(call.body["response_format"]["json_schema"]["schema"]["properties"]))


def place_of(call: Call) -> str:
    text = call.prompt.casefold()
    return next(name for name in PLACES if f"the {name} flows" in text)


def extract(call: Call) -> Answer:
    """A sensible answer for each document."""
    name = place_of(call)
    city, river = PLACES[name], name.title()
    answers = {
        "pairs": [{"question": f"Which water does {city} look out on?", "answer": river}],
        "triples": [{"head": river, "relation": "flows through", "tail": city}],
    }
    return say(json.dumps({asked_for(call): answers[asked_for(call)]}))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "QGRAG_LLM_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("qgrag.llm.endpoint.pacing.BACKOFF_BASE_SECONDS", 0.01)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(extract) as running:
        yield running


def asking(server: ChatServer, **llm: object) -> IndexConfig:
    settings = {"model": "stub", "base_url": server.url, "pace": Pace(concurrency=1, max_retries=0), **llm}
    return IndexConfig(
        query_graph=QueryGraphConfig(generator="llm", pairs=2, sentences="fallback"),
        knowledge_graph=KnowledgeGraphConfig(extractor="triples", title_mentions=False),
        llm=LLMConfig(**settings),  # type: ignore[arg-type]
    )


def test_an_index_by_a_language_model_needs_none_to_be_searched(tmp_path, embedder, monkeypatch, caplog):
    monkeypatch.setenv("QGRAG_LLM_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    with serving(extract) as server:
        report = build_index(DOCUMENTS, tmp_path / "i", asking(server), embedder=embedder)
    assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {KEY}"}
    monkeypatch.delenv("QGRAG_LLM_API_KEY")

    index = Index.open(tmp_path / "i", embedder=embedder)
    assert index.check() == []
    (result,) = load_retriever(index, "qcg").retrieve(["Which water does Dresden look out on?"], top_k=1)
    assert result.hits[0].document_id == "elbe"
    assert "Which water does Dresden look out on?" in json.dumps(result.to_dict()["hits"][0]["evidence"])
    assert {"Elbe", "Dresden"} <= set(index.knowledge_graph.names)

    usage = index.manifest.usage
    assert {step: (u["calls"], u["prompt_tokens"], u["completion_tokens"]) for step, u in usage.items()} == {
        "pairs": (4, 40, 20),
        "triples": (4, 40, 20),
    }
    assert report.usage == usage
    assert all(name.startswith("llm-") for name in index.manifest.extractors.values())
    written = [path for path in (tmp_path / "i").rglob("*") if path.is_file()]
    assert tmp_path / "i" / LLM_CACHE in written
    assert not [path for path in written if KEY.encode() in path.read_bytes()]
    assert KEY not in caplog.text


@pytest.mark.parametrize("most", [0, 3, 6])
def test_a_spent_budget_stops_and_the_next_build_pays_for_the_rest_alone(server, tmp_path, embedder, most):
    with pytest.raises(BuildStoppedError, match=r"the budget is spent .* Finished work is kept"):
        build_index(DOCUMENTS, tmp_path / "i", asking(server, max_calls=most), embedder=embedder)
    assert len(server.calls) == most
    assert not (tmp_path / "i" / "manifest.json").exists()

    plan = plan_index(DOCUMENTS, tmp_path / "i", asking(server))
    assert sum(estimate.calls for estimate in plan.estimates) == 8 - most
    assert len(server.calls) == most

    report = build_index(DOCUMENTS, tmp_path / "i", asking(server), embedder=embedder)
    assert len(server.calls) == 8
    assert sum(usage["calls"] for usage in report.usage.values()) == 8 - most
    usage = Index.open(tmp_path / "i", embedder=embedder).manifest.usage
    assert (usage["pairs"]["calls"], usage["triples"]["calls"]) == (4, 4)


def test_tokens_are_a_budget_too(server, tmp_path, embedder):
    with pytest.raises(BuildStoppedError, match="30 of 30 tokens"):
        build_index(DOCUMENTS, tmp_path / "i", asking(server, max_tokens_total=30), embedder=embedder)
    assert len(server.calls) == 2


def test_a_growing_index_asks_about_new_chunks_and_adds_up_what_was_spent(server, tmp_path, embedder):
    build_index(DOCUMENTS[:3], tmp_path / "i", asking(server), embedder=embedder)
    report = build_index(DOCUMENTS, tmp_path / "i", asking(server), embedder=embedder)
    assert [place_of(call) for call in server.calls[6:]] == ["seine", "seine"]
    assert report.usage["pairs"]["calls"] == 1
    assert Index.open(tmp_path / "i", embedder=embedder).manifest.usage["pairs"]["calls"] == 4


def test_a_refused_key_ends_the_build_and_keeps_what_was_answered(server, tmp_path, embedder):
    server.behave = lambda call: extract(call) if call.number < 3 else fail(401, "no such key")
    with pytest.raises(BuildStoppedError, match=r"QGRAG_LLM_API_KEY.*Finished work is kept"):
        build_index(DOCUMENTS, tmp_path / "i", asking(server), embedder=embedder)
    server.behave = extract
    build_index(DOCUMENTS, tmp_path / "i", asking(server), embedder=embedder)
    assert len(server.calls) == 8 + 1


def test_a_killed_build_pays_nothing_twice(tmp_path, embedder):
    stuck, forever = threading.Event(), threading.Event()

    def hang(call: Call) -> Answer:
        if call.number < 3:
            return extract(call)
        stuck.set()
        return replace(extract(call), wait=forever)

    corpus, config = tmp_path / "corpus.jsonl", tmp_path / "c.yaml"
    corpus.write_text("\n".join(json.dumps({"id": d.id, "text": d.text}) for d in DOCUMENTS))
    config.write_text("query_graph: {generator: llm, pairs: 2}\nknowledge_graph: null\nllm: {pace: {concurrency: 1}}\n")
    with serving(hang) as server:
        arguments = ["--config", str(config), "--llm-base-url", server.url, "--llm-model", "stub"]
        command = ["index", str(corpus), "--out", str(tmp_path / "i"), *arguments]
        process = subprocess.Popen([sys.executable, "-m", "qgrag.cli.main", *command], stderr=subprocess.DEVNULL)
        try:
            assert stuck.wait(120)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            forever.set()
        server.behave = extract
        documents = [Document(d.id, d.text) for d in DOCUMENTS]
        llm = LLMConfig(model="stub", base_url=server.url)
        graph = QueryGraphConfig(generator="llm", pairs=2)
        report = build_index(documents, tmp_path / "i", IndexConfig(query_graph=graph, knowledge_graph=None, llm=llm))
        assert report.usage["pairs"]["cache_hits"] == 3
        assert report.usage["pairs"]["calls"] == 1
        assert Index.open(tmp_path / "i").manifest.usage["pairs"]["calls"] == 4
        assert Index.open(tmp_path / "i").manifest.usage["pairs"]["prompt_tokens"] == 40
    asked = [place_of(call) for call in server.calls]
    assert sorted(asked) == sorted([*PLACES, asked[3]])


def test_plan_counts_calls_and_tokens_and_sends_and_writes_nothing(server, tmp_path):
    plan = plan_index(DOCUMENTS, tmp_path / "i", asking(server))
    assert [(e.step, e.calls, e.cache_hits) for e in plan.estimates] == [("pairs", 4, 0), ("triples", 4, 0)]
    assert all(e.prompt_tokens > 0 and e.completion_tokens > 0 for e in plan.estimates)
    assert server.calls == []
    assert not (tmp_path / "i").exists()
    assert plan_index(DOCUMENTS, tmp_path / "i").estimates == ()


def test_failed_and_empty_chunks_are_named_and_only_the_failed_asked_again(server, tmp_path, embedder):
    def behave(call: Call) -> Answer:
        if asked_for(call) == "triples" and place_of(call) == "elbe":
            return say("I would rather not.")
        if asked_for(call) == "triples" and place_of(call) == "seine":
            return say('{"triples": []}')
        return extract(call)

    server.behave = behave
    config = asking(server, asks_again=0)
    report = build_index(DOCUMENTS, tmp_path / "i", config, embedder=embedder)
    assert len(report.failures) == len(report.empty) == 1
    assert report.failures[0].startswith("facts of elbe-0: invalid")
    assert report.empty[0].startswith("facts of seine-0: the model found no statement")
    assert (report.counts["failed"], report.counts["empty_facts"]) == (1, 1)
    assert report.extraction["facts"]["failed_answers"] == 1
    assert Index.open(tmp_path / "i", embedder=embedder).manifest.extraction == report.extraction

    server.behave = extract
    again = build_index(DOCUMENTS, tmp_path / "i", config, embedder=embedder)
    assert [(asked_for(call), place_of(call)) for call in server.calls[8:]] == [("triples", "elbe")]
    assert again.failures == ()
    assert again.extraction["facts"] == {}
    assert not build_index(DOCUMENTS, tmp_path / "i", config, embedder=embedder).done


def test_only_what_changes_answers_rebuilds(server, tmp_path, embedder):
    build_index(DOCUMENTS, tmp_path / "i", asking(server), embedder=embedder)
    config = asking(server, max_calls=1, base_url=server.url + "/", pace=Pace(concurrency=3), structured="prompt")
    assert not build_index(DOCUMENTS, tmp_path / "i", config, embedder=embedder).done
    assert len(server.calls) == 8
    assert build_index(DOCUMENTS, tmp_path / "i", asking(server, model="other"), embedder=embedder).done
    assert len(server.calls) == 16


def test_without_a_cache_no_answer_is_kept(server, tmp_path, embedder):
    build_index(DOCUMENTS, tmp_path / "i", asking(server), embedder=embedder, llm_cache=False)
    assert not (tmp_path / "i" / LLM_CACHE).exists()


@pytest.mark.parametrize(("mode", "bare"), [("all", list(PLACES)), ("fallback", ["elbe"])])
def test_sentences_stand_beside_pairs_or_in_for_them(server, tmp_path, embedder, mode, bare):
    server.behave = lambda call: say("no") if place_of(call) == "elbe" else extract(call)
    graph = QueryGraphConfig(generator="llm", pairs=2, sentences=mode)
    config = replace(asking(server, asks_again=0), query_graph=graph, knowledge_graph=None)
    report = build_index(DOCUMENTS, tmp_path / "i", config, embedder=embedder)
    assert len(report.failures) == 1
    index = Index.open(tmp_path / "i", embedder=embedder)
    pairs = index.query_graph.pairs.to_pylist()
    assert [index.chunks[p["chunk"]].document_id for p in pairs if not p["question"]] == sorted(bare)
    assert len([p for p in pairs if p["question"]]) == 3


def test_a_language_model_that_nobody_named_is_asked_for(tmp_path, embedder):
    config = IndexConfig(query_graph=QueryGraphConfig(generator="llm"))
    with pytest.raises(ConfigError, match=r"llm\.model is empty"):
        build_index(DOCUMENTS, tmp_path / "i", config, embedder=embedder)


def embed(call: Call) -> Answer:
    vectors = [[float(text.count(letter)) + 0.1 for letter in "abcdefgh"] for text in call.body["input"]]
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return Answer(body={"object": "list", "model": "e", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}})


def test_vectors_may_come_from_an_endpoint(tmp_path, embedder):
    with serving(embed) as server:
        remote = RemoteEmbedderConfig("e", server.url, pace=Pace(max_retries=0))
        config = IndexConfig(remote_embedder=remote, query_graph=None, knowledge_graph=None)
        build_index(DOCUMENTS, tmp_path / "i", config)
        index = Index.open(tmp_path / "i")
        assert (index.manifest.embedder["name"], index.manifest.embedder["dimension"]) == ("e", 8)
        (result,) = load_retriever(index, "naive").retrieve([DOCUMENTS[2].text], top_k=1)
        assert result.hits[0].document_id == "elbe"
        moved = replace(config, remote_embedder=replace(remote, batch_size=2, pace=Pace(concurrency=2)))
        assert not build_index(DOCUMENTS, tmp_path / "i", moved).done
        with pytest.raises(IndexFormatError, match="built with embedding model 'e'"):
            Index.open(tmp_path / "i", embedder=embedder)
    bm25 = load_retriever(Index.open(tmp_path / "i"), "bm25")
    assert bm25.retrieve(["Dresden"], top_k=1)[0].hits[0].document_id == "elbe"
