"""A chat endpoint on loopback that plays whatever a real one may do."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from qgrag.llm.cached_model import CachedLanguageModel, load_language_model
from qgrag.llm.config import LLMConfig, Pace, Sampling
from qgrag.llm.records import Message


@dataclass(frozen=True)
class Call:
    """One request: its number from 0, its path, body and headers (names in lower case)."""

    number: int
    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def prompt(self) -> str:
        return str(self.body["messages"][-1]["content"])

    @property
    def format(self) -> str:
        return str(self.body.get("response_format", {}).get("type", "none"))


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; `drop` closes the connection in its place, `wait` is an event to wait for first."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    wait: threading.Event | None = None


Behaviour = Callable[[Call], Answer]


def say(text: str | None, finish_reason: str = "stop", tokens: int = 5, **message: Any) -> Answer:
    """A chat completion."""
    return Answer(
        body={
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "stub",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish_reason,
                    "message": {"role": "assistant", "content": text, **message},
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens},
        }
    )


def fail(status: int, message: str = "broken", code: str | None = None, **headers: str) -> Answer:
    """An error in OpenAI's form; headers by keyword with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, {"error": {"message": message, "code": code, "type": "x", "param": None}}, named)


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the play."""


class ChatServer:
    """Answers every POST as `behave` says, and remembers what it was asked."""

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.calls: list[Call] = []
        self.open = 0
        self.most_open = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                with outer._lock:
                    call = Call(len(outer.calls), self.path, json.loads(raw), headers)
                    outer.calls.append(call)
                    outer.open += 1
                    outer.most_open = max(outer.most_open, outer.open)
                try:
                    self._send(outer.behave(call))
                finally:
                    with outer._lock:
                        outer.open -= 1

            def _send(self, answer: Answer) -> None:
                if answer.wait is not None:
                    answer.wait.wait(30)
                if answer.drop:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                try:
                    self.send_response(answer.status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(raw)))
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(raw)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def prompts(self) -> list[str]:
        return [call.prompt for call in self.calls]

    @contextmanager
    def running(self) -> Iterator["ChatServer"]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


@contextmanager
def serving(behave: Behaviour) -> Iterator[ChatServer]:
    """A running server."""
    with ChatServer(behave).running() as server:
        yield server


@contextmanager
def connected(
    server: ChatServer,
    cache: Path | None = None,
    *,
    sampling: Sampling | None = None,
    pace: Pace | None = None,
    **config: Any,
) -> Iterator[CachedLanguageModel]:
    """A language model that asks the server."""
    settings = LLMConfig(
        model="stub",
        base_url=server.url,
        sampling=sampling or Sampling(max_tokens=100),
        pace=pace or Pace(concurrency=4, max_retries=1),
        **config,
    )
    model = load_language_model(settings, cache)
    try:
        yield model
    finally:
        model.close()


def asking(*texts: str) -> list[list[Message]]:
    """One conversation per text."""
    return [[{"role": "user", "content": text}] for text in texts]
