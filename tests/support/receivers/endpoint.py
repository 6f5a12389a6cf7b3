"""A path of a receiver: the answers and the requests it got."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.support.receivers.behaviours import OK, Behaviour
from tests.support.receivers.received import Received

# A longer lasting condition has failed.
DEADLINE_SECONDS = 30.0

Script = Callable[[Received], Behaviour]


class ReceiverEndpoint:
    """Written by the receiver's thread; read and instructed by the test's thread."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._changed = threading.Condition()
        self._received: list[Received] = []
        self._tries: Counter[str] = Counter()
        self._next: deque[Behaviour] = deque()
        self._script: Script = lambda _received: OK

    def always(self, behaviour: Behaviour) -> None:
        self.follow(lambda _received: behaviour)

    def follow(self, script: Script) -> None:
        """Answer by this script from now on; it sees the number of tries of a webhook-id."""
        with self._changed:
            self._script = script

    def next(self, *behaviours: Behaviour) -> None:
        """Show these behaviours for the next requests, then continue as usual."""
        with self._changed:
            self._next.extend(behaviours)

    @property
    def received(self) -> list[Received]:
        with self._changed:
            return list(self._received)

    @property
    def accepted(self) -> list[Received]:
        """The requests answered 2xx."""
        return [request for request in self.received if request.was_accepted]

    def wait_for(
        self, condition: Callable[[list[Received]], object], *, seconds: float = DEADLINE_SECONDS
    ) -> list[Received]:
        """Wait until the requests so far fulfil the condition, and return them."""
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self._received), timeout=seconds):
                got = [
                    (request.id, request.attempt, request.status)
                    for request in self._received[-20:]
                ]
                raise AssertionError(f"{self.url} got {len(self._received)}, the last: {got}")
            return list(self._received)

    def wait_for_count(self, count: int, *, seconds: float = DEADLINE_SECONDS) -> list[Received]:
        return self.wait_for(lambda received: len(received) >= count, seconds=seconds)

    def wait_for_last(self, id: str, *, seconds: float = DEADLINE_SECONDS) -> list[Received]:
        """Wait until the latest request is for the message."""
        return self.wait_for(lambda received: received and received[-1].id == id, seconds=seconds)

    def wait_for_later(self, moment: float, *, seconds: float = DEADLINE_SECONDS) -> Received:
        """Wait for the first request after the moment of the monotonic clock."""
        received = self.wait_for(
            lambda received: received and received[-1].at > moment, seconds=seconds
        )
        return next(request for request in received if request.at > moment)

    def take(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, *, port: int = 0
    ) -> Behaviour:
        """Record a request and return the answering behaviour."""
        with self._changed:
            id = headers.get("webhook-id", "")
            self._tries[id] += 1
            received = Received(
                at=time.monotonic(),
                method=method,
                path=path,
                headers=headers,
                body=body,
                tries=self._tries[id],
                port=port,
            )
            behaviour = self._next.popleft() if self._next else self._script(received)
            self._received.append(replace(received, status=behaviour.status))
            self._changed.notify_all()
            return behaviour
