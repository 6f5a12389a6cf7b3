"""Clients of a mailbox in a process of their own, which may be killed: they log every answer.

`python -m tests.system.faults.mailbox_client REQUEST`, the FetchRequest as JSON. Each client
fetches a batch, acknowledges it, and so on; it repeats a request that got no answer, or 503. When
standard input ends, each client finishes its current request, logs the answer, and the process
ends.
"""

import http.client
import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

SECONDS = 30
WAIT_SECONDS = 2
# A server that is away is not back at once.
PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRequest:
    """`holds_after` batches are acknowledged before one is kept for ever; None keeps none."""

    port: int
    mailbox: str
    key: str
    log: str
    clients: int
    batch: int
    visibility: int
    holds_after: int | None = None


class Client:
    """One client with a connection of its own.

    Its log has one line of JSON per fact, written before it continues.
    """

    def __init__(self, wanted: FetchRequest, log: int, over: threading.Event) -> None:
        self._wanted = wanted
        self._log = log
        self._over = over
        self._connection = http.client.HTTPConnection("127.0.0.1", wanted.port, timeout=SECONDS)
        self._next = f"next?max={wanted.batch}&wait={WAIT_SECONDS}&visibility={wanted.visibility}"

    def drain(self) -> None:
        batches = 0
        while not self._over.is_set():
            asked_at = time.monotonic()
            messages = self._ask(self._next).get("messages", [])
            if not messages:
                continue
            self._say("fetched", messages, asked_at=asked_at, of=("id", "receive_count", "receipt"))
            if batches == self._wanted.holds_after:
                self._say("holds", [], asked_at=asked_at, of=())
                self._over.wait()
                return
            answer = self._ask("ack", {"receipts": [message["receipt"] for message in messages]})
            self._say("acknowledged", answer["results"], asked_at=asked_at, of=("receipt", "ok"))
            batches += 1

    def _ask(self, verb: str, content: Any = None) -> dict[str, Any]:
        """Repeat the request until there is an answer.

        Repeating an acknowledgement is harmless, and a lost fetch comes back.
        """
        while True:
            status, answer = self._ask_once(
                verb, b"" if content is None else json.dumps(content).encode()
            )
            if status in (200, 409):
                found: dict[str, Any] = json.loads(answer)
                return found
            if status == 204:
                return {}
            self._say(
                "unanswered", [{"verb": verb, "status": status}], asked_at=0, of=("verb", "status")
            )
            self._over.wait(PAUSE_SECONDS)

    def _ask_once(self, verb: str, body: bytes) -> tuple[int, bytes]:
        headers = {
            "Authorization": f"Bearer {self._wanted.key}",
            "Content-Type": "application/json",
        }
        try:
            self._connection.request(
                "POST",
                f"/api/v1/mailboxes/{self._wanted.mailbox}/{verb}",
                body=body,
                headers=headers,
            )
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, b""

    def _say(
        self, fact: str, what: list[dict[str, Any]], *, asked_at: float, of: tuple[str, ...]
    ) -> None:
        line = {
            "fact": fact,
            "asked_at": asked_at,
            "answered_at": time.monotonic(),
            "of": [[message[name] for name in of] for message in what],
        }
        # In one write, unbuffered: the process may be killed at any moment.
        os.write(self._log, json.dumps(line).encode() + b"\n")


def run(wanted: FetchRequest) -> None:
    log = os.open(wanted.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    over = threading.Event()
    drains = [Client(wanted, log, over).drain for _ in range(wanted.clients)]
    clients = [threading.Thread(target=drain, daemon=True) for drain in drains]
    for client in clients:
        client.start()
    sys.stdin.read()
    # The last acknowledged message may be settled before its client gets the answer.
    over.set()
    for client in clients:
        client.join()


if __name__ == "__main__":
    run(FetchRequest(**json.loads(sys.argv[1])))
