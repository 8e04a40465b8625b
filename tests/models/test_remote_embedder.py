import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest
import torch

from qgrag.errors import ConfigError
from qgrag.llm.config import Pace
from qgrag.llm.errors import LLMUnavailableError
from qgrag.models.remote_embedder import RemoteEmbedder
from qgrag.models.remote_embedder_config import RemoteEmbedderConfig
from tests.llm.server import Answer, Behaviour, Call, ChatServer, fail, serving


def vector(text: str) -> list[float]:
    return [float(len(text)), float(sum(map(ord, text)) % 97), 1.0]


def embed(call: Call) -> Answer:
    texts = call.body["input"]
    data = [{"object": "embedding", "index": i, "embedding": vector(t)} for i, t in enumerate(texts)]
    return Answer(
        body={"object": "list", "model": "e", "data": data[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    )


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(embed) as running:
        yield running


def make(server: ChatServer, **config: object) -> RemoteEmbedder:
    settings = {"batch_size": 3, "pace": Pace(concurrency=2, max_retries=1), **config}
    return RemoteEmbedder(RemoteEmbedderConfig("e", server.url, **settings))  # type: ignore[arg-type]


def test_unit_vectors_in_order(server: ChatServer) -> None:
    texts = [f"text {i}" * (i + 1) for i in range(8)] + ["", "李华\ud800"]
    embedder = make(server)
    vectors = embedder.encode(texts)
    sent = [t if t else " " for t in texts[:-1]] + ["李华?"]
    expected = torch.nn.functional.normalize(torch.tensor([vector(t) for t in sent]), dim=1)
    torch.testing.assert_close(vectors, expected)
    assert vectors.dtype == torch.float32
    assert embedder.dimension == 3
    assert max(len(call.body["input"]) for call in server.calls) == 3
    assert embedder.encode([]).shape == (0, 3)
    embedder.close()


def test_prompts_and_dimensions_are_sent(server: ChatServer) -> None:
    embedder = make(server, query_prompt="q: ", passage_prompt="p: ", dimensions=3)
    embedder.encode(["a"])
    embedder.encode_queries(["a"])
    assert [call.body["input"] for call in server.calls] == [["p: a"], ["q: a"]]
    assert server.calls[0].body["dimensions"] == 3
    embedder.close()


def test_the_fingerprint_follows_what_shapes_a_vector(server: ChatServer) -> None:
    embedders = [make(server), make(server, passage_prompt="p: "), make(server, query_prompt="q: ")]
    same = make(server, batch_size=1)
    assert len({e.fingerprint for e in embedders}) == 3
    assert same.fingerprint == embedders[0].fingerprint
    for embedder in (*embedders, same):
        embedder.close()


def once(first: Answer) -> Behaviour:
    return lambda call: first if call.number == 0 else embed(call)


def with_vectors(*vectors: object, indices: Sequence[object] = (0, 1)) -> Answer:
    data = [{"object": "embedding", "index": i, "embedding": v} for i, v in zip(indices, vectors)]
    return Answer(body=json.dumps({"object": "list", "model": "e", "data": data}).encode())


@pytest.mark.parametrize(
    "first",
    [
        fail(429, retry_after="0"),
        fail(500),
        Answer(drop=True),
        Answer(body=b"nothing"),
        Answer(body={"data": []}),
        with_vectors([1.0, 2.0]),
        with_vectors([1.0, 2.0, 3.0], [1.0, 2.0]),
        with_vectors([1.0, math.nan, 3.0], [1.0, 2.0, 3.0]),
        with_vectors([1.0, math.inf, 3.0], [1.0, 2.0, 3.0]),
        with_vectors([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]),
        with_vectors([], []),
        with_vectors(None, None),
        with_vectors("AAAA", "AAAA"),
        with_vectors([[1.0]], [[2.0]]),
        with_vectors([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], indices=(0, 0)),
        with_vectors([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], indices=("a", [])),
        Answer(body={"data": [1, "b"]}),
    ],
)
def test_what_may_pass_is_tried_again(server: ChatServer, first: Answer) -> None:
    server.behave = once(first)
    embedder = make(server)
    assert embedder.encode(["a", "b"]).shape == (2, 3)
    assert len(server.calls) == 2
    embedder.close()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([0.0, 0.0], r"1 of 2 vectors cannot be used, at positions 3 \(all zeros, for 'text 3'\)"),
        ([math.nan, 1.0], r"3 \(not a number"),
        ([1.0, -math.inf], r"3 \(infinite"),
        (None, r"3 \(missing"),
        ([], r"3 \(missing"),
    ],
)
def test_a_vector_that_is_no_direction_is_named_by_its_position(server: ChatServer, bad: object, words: str) -> None:
    server.behave = lambda call: with_vectors([1.0, 2.0], bad if "text 3" in call.body["input"] else [2.0, 1.0])
    embedder = make(server, batch_size=2, pace=Pace(max_retries=0))
    with pytest.raises(LLMUnavailableError, match=words):
        embedder.encode([f"text {i}" for i in range(4)])
    embedder.close()


@pytest.mark.parametrize("indices", [(1,), (None,)])
def test_a_vector_that_is_not_there_is_named(server: ChatServer, indices: tuple[object, ...]) -> None:
    server.behave = lambda call: with_vectors([1.0, 2.0], indices=indices)
    embedder = make(server, pace=Pace(max_retries=0))
    place = 0 if indices == (1,) else 1
    with pytest.raises(
        LLMUnavailableError, match=rf"1 vectors for 2 texts: .*positions {place} \(missing, for 't{place}'"
    ):
        embedder.encode(["t0", "t1"])
    embedder.close()


def test_vectors_without_numbers_are_taken_as_they_come(server: ChatServer) -> None:
    server.behave = lambda call: with_vectors([2.0, 0.0], [0.0, 3.0], indices=(None, None))
    embedder = make(server)
    assert embedder.encode(["a", "b"]).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    embedder.close()


def test_vectors_of_another_dimension_end_the_run(server: ChatServer) -> None:
    embedder = make(server)
    embedder.encode(["a"])
    server.behave = lambda call: with_vectors([1.0, 2.0])
    with pytest.raises(LLMUnavailableError, match="2 dimensions after some of 3"):
        embedder.encode_queries(["a"])
    embedder.close()


@pytest.mark.parametrize(("answer", "attempts"), [(fail(500), 2), (fail(400, "too long"), 1), (fail(404), 1)])
def test_what_does_not_pass_ends_the_run(server: ChatServer, answer: Answer, attempts: int) -> None:
    server.behave = lambda call: answer
    embedder = make(server)
    with pytest.raises(LLMUnavailableError, match=f"'e' at {server.url}: .*HTTP {answer.status}"):
        embedder.encode(["a"])
    assert len(server.calls) == attempts
    embedder.close()


@pytest.mark.parametrize(
    "config",
    [{"model": ""}, {"model": "e", "base_url": "host/v1"}, {"model": "e", "base_url": "http://a:b@h/v1"}],
)
def test_configurations_that_cannot_work(config: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="embedder"):
        RemoteEmbedder(RemoteEmbedderConfig(**config))


def test_a_configuration_loads_no_client() -> None:
    code = "import sys; import qgrag.index.config; assert 'openai' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.getcwd()})
