"""A publisher that continues through every fault."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import requests

from tests.support.product import Flow
from tests.system.operation.installation import eventually

# After a request that was not accepted.
PAUSE_SECONDS = 0.02


class Load:
    """Publishes one message after the other; repeats unanswered requests with their keys."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._publish_on, name="load")
        self.accepted: list[str] = []
        self.refused: list[requests.Response] = []

    @contextmanager
    def running(self) -> Iterator[Self]:
        self._thread.start()
        try:
            yield self
        finally:
            self._is_over.set()
            self._thread.join()

    def wait_for_more(self, count: int) -> None:
        """Wait until so many more messages than now are accepted."""
        wanted = len(self.accepted) + count
        eventually(lambda: len(self.accepted) >= wanted, f"{count} more messages are accepted")

    def _publish_on(self) -> None:
        number = 0
        while not self._is_over.is_set():
            if self._publish(number):
                number += 1
            else:
                # Without it a server that is away would keep a processor busy.
                self._is_over.wait(PAUSE_SECONDS)

    def _publish(self, number: int) -> bool:
        try:
            answer = self._flow.publisher.ask(
                "POST",
                f"events/{self._flow.event_type}/messages",
                body=b"%d" % number,
                headers={
                    "Content-Type": "application/json",
                    "Idempotency-Key": f"message {number}",
                },
            )
        except requests.RequestException:
            return False
        if answer.ok:
            self.accepted.append(answer.json()["id"])
        else:
            self.refused.append(answer)
        return answer.ok
