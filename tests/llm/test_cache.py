import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from qgrag.errors import ConfigError
from qgrag.llm.cache import FORMAT, ResponseCache, request_key
from qgrag.llm.config import Pace, Sampling
from qgrag.llm.errors import LLMUnavailableError
from qgrag.llm.records import Reply, Request
from qgrag.llm.usage import Usage, measure
from tests.llm.server import Answer, Call, asking, connected, fail, say, serving

REQUEST = Request(({"role": "user", "content": "谁是李华？"},), Sampling())


def test_the_key_covers_all_that_shapes_an_answer_and_nothing_else() -> None:
    changed = [
        replace(REQUEST, messages=({"role": "system", "content": "谁是李华？"},)),
        replace(REQUEST, messages=({"role": "user", "content": "谁是王伟？"},)),
        replace(REQUEST, schema={"type": "object"}),
        *(
            replace(REQUEST, sampling=sampling)
            for sampling in (
                Sampling(temperature=0.1),
                Sampling(top_p=0.9),
                Sampling(seed=1),
                Sampling(max_tokens=9),
                Sampling(stop=("x",)),
                Sampling(extra={"top_k": 1}),
            )
        ),
    ]
    keys = {request_key("m", REQUEST), request_key("n", REQUEST), *(request_key("m", r) for r in changed)}
    assert len(keys) == len(changed) + 2
    assert request_key("m", replace(REQUEST, owner="chunk 9")) == request_key("m", REQUEST)


def test_what_is_put_is_got_until_it_is_rejected(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "deep" / "cache.sqlite")
    reply = Reply("回答\n\x00", "stop", 3, 4)
    cache.put("k", "m", "step", "chunk", reply)
    assert cache.get("k") == reply
    assert len(cache) == 1
    cache.close()
    cache = ResponseCache(tmp_path / "deep" / "cache.sqlite")
    assert cache.get("k") == reply
    cache.reject("k")
    assert cache.get("k") is None
    assert len(cache) == 0
    cache.close()


def test_what_was_spent_is_known_until_it_is_booked(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "cache.sqlite")
    cache.put("k", "m", "pairs", "chunk", Reply("a", "stop", 3, 4, 1.5))
    cache.put("l", "m", "pairs", "chunk", Reply("b", "stop", 5, 6, 0.5))
    cache.put("n", "m", "triples", "chunk", Reply("c", "stop", 1, 1, 0.5))
    cache.reject("l")
    assert cache.unbooked() == {
        "pairs": Usage(calls=2, prompt_tokens=8, completion_tokens=10, seconds=2.0),
        "triples": Usage(calls=1, prompt_tokens=1, completion_tokens=1, seconds=0.5),
    }
    cache.book()
    assert cache.unbooked() == {}
    cache.put("l", "m", "pairs", "chunk", Reply("b", "stop", 5, 6))
    assert cache.unbooked()["pairs"].calls == 1
    cache.close()


def test_a_file_of_the_first_format_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE replies (key TEXT PRIMARY KEY, model TEXT, step TEXT, owner TEXT, text TEXT, finish_reason TEXT,"
        " prompt_tokens INTEGER, completion_tokens INTEGER, rejected INTEGER, created REAL) WITHOUT ROWID"
    )
    connection.execute("INSERT INTO replies VALUES ('k', 'm', 's', 'o', 'old', 'stop', 1, 2, 0, 0)")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    cache = ResponseCache(path)
    assert cache.get("k") == Reply("old", "stop", 1, 2)
    cache.put("l", "m", "s", "o", Reply("new", "stop", 1, 2))
    assert cache.unbooked()["s"].calls == 2
    cache.close()


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all, but longer than a header of one" * 10)
    with pytest.raises(ConfigError, match="text"):
        ResponseCache(tmp_path / "text")
    for path in (tmp_path, tmp_path / "text" / "cache.sqlite"):
        with pytest.raises(ConfigError, match="cannot be opened"):
            ResponseCache(path)
    connection = sqlite3.connect(tmp_path / "newer")
    connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    with pytest.raises(ConfigError, match="format"):
        ResponseCache(tmp_path / "newer")


def test_damage_is_named_when_it_is_met(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    cache = ResponseCache(path)
    for i in range(300):
        cache.put(f"{i}", "m", "step", "o", Reply("x" * 200, "stop", 1, 1))
    cache.close()
    raw = bytearray(path.read_bytes())
    raw[8192:] = b"\x99" * (len(raw) - 8192)
    path.write_bytes(raw)
    cache = ResponseCache(path)
    with pytest.raises(ConfigError, match=r"cache\.sqlite: .*name another file"):
        [cache.get(f"{i}") for i in range(300)]
    cache.close()


def _fill(path: Path, process: int) -> None:
    cache = ResponseCache(path)
    for i in range(50):
        cache.put(f"{i}", "m", "step", f"{process}", Reply(f"answer {i}", "stop", 1, 1))
        cache.put(f"{process}-{i}", "m", "step", f"{process}", Reply("own", "stop", 1, 1))
    cache.close()


def test_processes_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    workers = [multiprocessing.get_context("spawn").Process(target=_fill, args=(path, p)) for p in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    cache = ResponseCache(path)
    assert len(cache) == 150
    assert all(cache.get(f"{i}") == Reply(f"answer {i}", "stop", 1, 1) for i in range(50))
    cache.close()


def test_a_file_that_another_process_is_making_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    for _ in range(30):
        path.unlink(missing_ok=True)
        start = threading.Barrier(4)

        def opened(start: threading.Barrier = start) -> ResponseCache:
            start.wait()
            return ResponseCache(path)

        with ThreadPoolExecutor(4) as pool:
            caches = [future.result() for future in [pool.submit(opened) for _ in range(4)]]
        for cache in caches:
            cache.close()


def test_nothing_is_paid_twice(tmp_path: Path) -> None:
    with serving(lambda call: say(f"answer to {call.prompt}")) as server:
        with connected(server, tmp_path / "cache.sqlite") as model:
            first = model.complete(asking("a", "b", "a"), step="test")
        assert len(server.calls) == 2
        with connected(server, tmp_path / "cache.sqlite") as model, measure() as meter:
            second = model.complete(asking("a", "b", "c"), step="test", owners=["1", "2", "3"])
        assert len(server.calls) == 3
    assert [c.text for c in first] == ["answer to a", "answer to b", "answer to a"]
    assert [c.cached for c in second] == [True, True, False]
    assert (meter.steps["test"].calls, meter.steps["test"].cache_hits) == (1, 2)
    assert meter.of("1")["test"].cache_hits == 1


def test_without_a_cache_every_run_asks() -> None:
    with serving(lambda call: say("x")) as server:
        for _ in range(2):
            with connected(server) as model:
                model.complete(asking("a"), step="test")
        assert len(server.calls) == 2


def test_answers_before_an_endpoint_broke_are_kept(tmp_path: Path) -> None:
    def behave(call: Call) -> Answer:
        return say("x") if call.number < 7 else fail(401)

    with serving(behave) as server:
        one_at_a_time = Pace(concurrency=1)
        with (
            connected(server, tmp_path / "cache.sqlite", pace=one_at_a_time) as model,
            pytest.raises(LLMUnavailableError),
        ):
            model.complete(asking(*map(str, range(40))), step="test")
        server.behave = lambda call: say("x")
        before = len(server.calls)
        with connected(server, tmp_path / "cache.sqlite") as model:
            completions = model.complete(asking(*map(str, range(40))), step="test")
        assert all(c.text == "x" for c in completions)
        assert len(server.calls) - before == 40 - 7


RUN = """
import signal
import sys
from pathlib import Path
from qgrag.llm.config import LLMConfig, Pace
from qgrag.llm.cached_model import load_language_model
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background hands on a deaf ear
config = LLMConfig(model="stub", base_url=sys.argv[1], pace=Pace(concurrency=2))
model = load_language_model(config, Path(sys.argv[2]))
model.complete([[{"role": "user", "content": str(i)}] for i in range(30)], step="test")
print("finished")
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_run_resumes_without_paying_again(tmp_path: Path, how: signal.Signals) -> None:
    reached, never = threading.Event(), threading.Event()

    def behave(call: Call) -> Answer:
        if call.number >= 12:
            reached.set()
            return Answer(body=say("late").body, wait=never)
        return say(f"answer {call.prompt}")

    with serving(behave) as server:
        arguments = [sys.executable, "-c", RUN, server.url, str(tmp_path / "cache.sqlite")]
        run = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment())
        assert reached.wait(60)
        answered = _wait_for_rows(tmp_path / "cache.sqlite", 12)
        run.send_signal(how)
        _, errors = run.communicate(timeout=60)
        assert run.returncode != 0
        if how == signal.SIGINT:
            assert b"KeyboardInterrupt" in errors
        never.set()
        server.behave = lambda call: say(f"answer {call.prompt}")
        before = len(server.calls)
        output = subprocess.run(arguments, capture_output=True, text=True, timeout=60, env=_environment(), check=True)
        assert output.stdout == "finished\n"
        assert len(server.calls) - before == 30 - answered


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.getcwd()}


def _wait_for_rows(path: Path, rows: int) -> int:
    for _ in range(200):
        cache = ResponseCache(path)
        count = len(cache)
        cache.close()
        if count >= rows:
            break
        time.sleep(0.05)
    return count
