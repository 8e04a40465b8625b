"""Answers of a model, each on disk before it is used, so that no run pays for the same answer twice."""

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from qgrag.errors import ConfigError
from qgrag.llm.records import Reply, Request
from qgrag.llm.usage import Usage

FORMAT = 2
LOCK_SECONDS = 60.0
LOCK_POLL_SECONDS = 0.02

_CREATE = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    step TEXT NOT NULL,
    owner TEXT NOT NULL,
    text TEXT NOT NULL,
    finish_reason TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    rejected INTEGER NOT NULL DEFAULT 0,
    created REAL NOT NULL,
    seconds REAL NOT NULL DEFAULT 0,
    booked INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID
"""
_FROM_FORMAT_1 = ("seconds REAL NOT NULL DEFAULT 0", "booked INTEGER NOT NULL DEFAULT 0")


class ResponseCache:
    """Answers in one SQLite file, shared by any number of threads and processes (write-ahead log).

    A key covers the model, the messages, every parameter of generation and the schema. An answer that
    turned out to be of no use is kept for inspection, marked as rejected, and is not returned again.

    Args:
        path: the file; it and its folder are made if need be.

    Raises:
        ConfigError: the file cannot be written, is no response cache, or one of a newer format.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"response cache {self.path} cannot be opened: {error}; name another file") from error
        try:
            self._open()
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise ConfigError(f"response cache {self.path} cannot be opened: {error}; name another file") from error
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ConfigError(
                f"{self.path} is not a response cache ({error}); remove it, or name another file"
            ) from error

    def _open(self) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {int(LOCK_SECONDS * 1000)}")
        self._switch_to_wal()
        self._connection.execute("PRAGMA synchronous = NORMAL")
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > FORMAT:
            self._connection.close()
            raise ConfigError(
                f"response cache {self.path} has format {version}, this version reads {FORMAT}; name another file"
            )
        self._connection.execute(_CREATE)
        if version == 1:
            for column in _FROM_FORMAT_1:
                self._connection.execute(f"ALTER TABLE replies ADD COLUMN {column}")
        self._connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _switch_to_wal(self) -> None:
        """Wait while another process opens the file too: for this statement SQLite does not heed its own timeout."""
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(LOCK_POLL_SECONDS)

    def get(self, key: str) -> Reply | None:
        """The answer kept under a key, unless it was rejected."""
        rows = self._execute(
            "SELECT text, finish_reason, prompt_tokens, completion_tokens FROM replies WHERE key = ? AND NOT rejected",
            (key,),
        )
        return Reply(*rows[0]) if rows else None

    def put(self, key: str, model: str, step: str, owner: str, reply: Reply) -> None:
        """Keep an answer; it is on disk when this returns."""
        row = (
            key,
            model,
            step,
            owner,
            reply.text,
            reply.finish_reason,
            reply.prompt_tokens,
            reply.completion_tokens,
            time.time(),
            reply.seconds,
        )
        self._execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, 0)", row)

    def reject(self, key: str) -> None:
        """Mark an answer as of no use: the next run asks again."""
        self._execute("UPDATE replies SET rejected = 1 WHERE key = ?", (key,))

    def unbooked(self) -> dict[str, Usage]:
        """What the answers cost that came since the last `book`, by step: those of a run that was killed."""
        rows = self._execute(
            "SELECT step, count(*), sum(prompt_tokens), sum(completion_tokens), sum(seconds) FROM replies"
            " WHERE NOT booked GROUP BY step ORDER BY min(created)"
        )
        return {
            step: Usage(calls=calls, prompt_tokens=prompt, completion_tokens=completion, seconds=seconds)
            for step, calls, prompt, completion, seconds in rows
        }

    def book(self) -> None:
        """Mark every answer as accounted for."""
        self._execute("UPDATE replies SET booked = 1 WHERE NOT booked")

    def __len__(self) -> int:
        return int(self._execute("SELECT count(*) FROM replies WHERE NOT rejected")[0][0])

    def _execute(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Every row of the result.

        Raises:
            ConfigError: the file is damaged, or can no longer be written.
        """
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except sqlite3.DatabaseError as error:
                raise ConfigError(
                    f"response cache {self.path}: {error}; make room for it if its disk is full, or name another file"
                ) from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def request_key(model: str, request: Request) -> str:
    """64 hex digits of BLAKE2b over the model and everything in the request that shapes the answer."""
    content = {
        "model": model,
        "messages": request.messages,
        "sampling": asdict(request.sampling),
        "schema": request.schema,
    }
    text = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode("ascii"), digest_size=32).hexdigest()
