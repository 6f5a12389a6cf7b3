"""An engine process and the connection to it, used by one thread."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from subscriptions.scripts.engine import LENGTH

_ENGINE = Path(__file__).with_name("engine.py")
# Far more than a script may take: after such a silence the process is stopped, or the machine is.
SILENCE_SECONDS = 20.0
# Answers of so much time are read together: each time a thread wakes up, it takes the interpreter
# from the event loop.
COLLECT_SECONDS = 0.001
MOST_BYTES = 1 << 20


class WorkerDiedError(Exception):
    """The process is gone.

    `is_runaway`: the kernel ended it because the script exceeded the time limit.
    """

    def __init__(self, *, is_runaway: bool) -> None:
        super().__init__("the process that executes scripts is gone")
        self.is_runaway = is_runaway


class Worker:
    """Starts a process on first use, and again after its death. Use it from a single thread."""

    def __init__(self, *, niceness: int) -> None:
        self._niceness = niceness
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    def answers(self, request: dict[str, Any]) -> Iterator[Any]:
        """Send a request and yield the answers; raises WorkerDiedError.

        If the caller does not read all answers, the process is ended.
        """
        connection = self._connection()
        text = orjson.dumps(request)
        try:
            connection.sendall(LENGTH.pack(len(text)) + text)
            unread = bytearray()
            while piece := connection.recv(MOST_BYTES):
                unread += piece
                for answer in _take_whole(unread):
                    if answer is None:
                        return
                    yield answer
                time.sleep(COLLECT_SECONDS)
        except OSError:
            pass
        except GeneratorExit:
            self.end()
            raise
        raise WorkerDiedError(is_runaway=self.end() == -signal.SIGPROF)

    def end(self) -> int | None:
        """End the process and return the exit code."""
        if self._process is None:
            return None
        process, self._process = self._process, None
        if self._socket is not None:
            self._socket.close()
        try:
            return process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _connection(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            self.end()
        if self._process is None or self._socket is None:
            ours, theirs = socket.socketpair()
            with theirs:
                # Neither our environment nor our folder: an escaped script cannot leak them.
                command = [sys.executable, "-I", str(_ENGINE), str(self._niceness)]
                self._process = subprocess.Popen(
                    command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, env={}, cwd="/"
                )
            ours.settimeout(SILENCE_SECONDS)
            self._socket = ours
        return self._socket


def _take_whole(unread: bytearray) -> list[Any]:
    """Take the complete values off the beginning, and return them."""
    values: list[Any] = []
    at = 0
    while len(unread) >= at + LENGTH.size:
        begin = at + LENGTH.size
        end = begin + LENGTH.unpack_from(unread, at)[0]
        if len(unread) < end:
            break
        values.append(orjson.loads(bytes(unread[begin:end])))
        at = end
    del unread[:at]
    return values
