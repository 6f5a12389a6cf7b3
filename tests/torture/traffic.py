"""Publishers and mailbox clients that continue through every fault."""

import random
import threading
import time
from collections.abc import Callable

import orjson
import requests

from tests.support.product import Flow
from tests.support.rest import Json, ProductClient
from tests.torture.records import Fetched, Published

# How long a publisher repeats an unanswered request after the end of the run.
LAST_ANSWER_SECONDS = 60.0
REPEAT_SECONDS = 0.1
# The share of a publisher's requests that are repeated although they were answered.
REPEATED_SHARE = 0.05
VISIBILITY_SECONDS = 5
BATCH = 5


class TrafficThread(threading.Thread):
    """A thread that works until the run is over; it keeps an error for the run to report."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.over = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        # The run reports it, and would miss an error of the thread.
        except BaseException as error:  # noqa: BLE001
            self.error = error

    def work(self) -> None:
        raise NotImplementedError


class TorturePublisher(TrafficThread):
    """Publishes numbered messages one after the other, and repeats each until it is answered."""

    def __init__(self, flows: list[Flow], *, number: int, seed: int, pause_seconds: float) -> None:
        super().__init__(f"publisher-{number}")
        self._flows = flows
        # One key for each event type: a publisher may only publish its own.
        self._clients = [
            ProductClient(flow.publisher.base_url, flow.publisher.key) for flow in flows
        ]
        self._chance = random.Random(f"{seed} publisher {number}")
        self._number = number
        self._count = 0
        self._pause_seconds = pause_seconds
        self.published: list[Published] = []
        self.refused: list[str] = []
        # Answers to repeated requests that differ from the first answer.
        self.answered_otherwise: list[str] = []

    def work(self) -> None:
        while not self.over.wait(self._pause_seconds):
            which = 0 if self._chance.random() < 0.8 else 1
            if self._chance.random() < 0.1:
                self._publish_batch(which)
            else:
                self._publish_one(which)

    def _publish_one(self, which: int) -> None:
        event, key = self._flows[which].event_type, self._next_key()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        sent_at = time.monotonic()

        def post() -> requests.Response:
            path = f"events/{event}/messages"
            return self._clients[which].ask("POST", path, body=orjson.dumps(key), headers=headers)

        answer = self._insist(post)
        if answer is None:
            return
        self._keep(event, key, answer.json()["id"], sent_at)
        if self._chance.random() < REPEATED_SHARE:
            self._repeat(post, answer)

    def _repeat(self, post: Callable[[], requests.Response], first: requests.Response) -> None:
        """Repeat the request, like a client that has lost the answer."""
        again = self._insist(post)
        if again is not None and again.content != first.content:
            self.answered_otherwise.append(f"{first.text[:300]}, then {again.text[:300]}")

    def _publish_batch(self, which: int) -> None:
        event = self._flows[which].event_type
        keys = [self._next_key() for _ in range(BATCH)]
        items = [{"event": event, "body": key, "idempotency_key": key} for key in keys]
        sent_at = time.monotonic()
        answer = self._insist(
            lambda: self._clients[which].ask(
                "POST",
                "messages:batch",
                body=orjson.dumps(items),
                headers={"Content-Type": "application/json"},
            )
        )
        if answer is not None:
            for key, result in zip(keys, answer.json()["results"], strict=True):
                self._keep(event, key, result["id"], sent_at)

    def _next_key(self) -> str:
        self._count += 1
        return f"{self._number}/{self._count}"

    def _keep(self, event: str, key: str, id: str, sent_at: float) -> None:
        self.published.append(
            Published(id=id, event=event, key=key, sent_at=sent_at, answered_at=time.monotonic())
        )

    def _insist(self, ask: Callable[[], requests.Response]) -> requests.Response | None:
        """Repeat until the request is accepted; None if there is no answer at the end."""
        deadline: float | None = None
        while True:
            try:
                answer = ask()
            except requests.RequestException:
                pass
            else:
                if answer.ok:
                    return answer
                if answer.status_code != 503:
                    self.refused.append(f"{answer.status_code} {answer.text[:300]}")
            if self.over.is_set():
                deadline = deadline or time.monotonic() + LAST_ANSWER_SECONDS
                if time.monotonic() > deadline:
                    return None
            time.sleep(REPEAT_SECONDS)


class MailboxClient(TrafficThread):
    """Fetches messages, and acknowledges, releases or forgets them."""

    def __init__(self, rest: ProductClient, mailbox: str, *, number: int, seed: int) -> None:
        super().__init__(f"mailbox-client-{number}")
        self._rest = rest
        self._mailbox = mailbox
        self._chance = random.Random(f"{seed} client {number}")
        self.fetched: list[Fetched] = []

    def work(self) -> None:
        while not self.over.is_set():
            asked_at = time.monotonic()
            for message in self._fetch():
                self._conclude(message, asked_at)

    def _fetch(self) -> list[Json]:
        query = {"max": 3, "wait": 1, "visibility": VISIBILITY_SECONDS}
        try:
            answer = self._rest.ask("POST", f"mailboxes/{self._mailbox}/next", query=query)
        except requests.RequestException:
            answer = None
        if answer is None or answer.status_code != 200:
            self.over.wait(REPEAT_SECONDS)
            return []
        messages: list[Json] = answer.json()["messages"]
        return messages

    def _conclude(self, message: Json, asked_at: float) -> None:
        fetch = Fetched(
            id=message["id"],
            asked_at=asked_at,
            answered_at=time.monotonic(),
            visibility=VISIBILITY_SECONDS,
        )
        self.fetched.append(fetch)
        chance = self._chance.random()
        if chance < 0.04:
            return
        verb = "release" if chance < 0.08 else "ack"
        if verb == "release":
            fetch.released_at = time.monotonic()
        if self._says(verb, message["receipt"]) and verb == "ack":
            fetch.acknowledged_at = time.monotonic()

    def _says(self, verb: str, receipt: str) -> bool:
        """Return whether the answer accepted the receipt."""
        body = orjson.dumps({"receipts": [receipt]})
        try:
            answer = self._rest.ask(
                "POST",
                f"mailboxes/{self._mailbox}/{verb}",
                body=body,
                headers={"Content-Type": "application/json"},
            )
        except requests.RequestException:
            return False
        return answer.ok and bool(answer.json()["results"][0]["ok"])
