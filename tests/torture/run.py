"""One torture run: start the product, run traffic and faults, wait for the end, and judge."""

import threading
import time
from pathlib import Path

from tests.support.product import Flow, Product
from tests.support.receivers import Receiver
from tests.support.rest import ProductClient
from tests.torture import clock, faults
from tests.torture.judging import MAILBOX, Judge, Seen, TortureResult
from tests.torture.lanes import QUEUE_ROLES, ROLES, configure_policies, subscribe
from tests.torture.oracle import Breach
from tests.torture.records import Journal
from tests.torture.stage import TortureStage
from tests.torture.traffic import MailboxClient, TorturePublisher, TrafficThread

PUBLISHERS = 2
# Between two requests of a publisher: lanes that block for seconds must keep up.
PAUSE_SECONDS = 0.15
SETTLED_SECONDS = 120.0


def torture(home: Path, *, seconds: float, seed: int) -> TortureResult:
    """Run in a folder of its own and return the result; the seed does not repeat the timing."""
    wall = clock.staged(home)
    product = Product(home / "inturn", **(wall.environment if wall else {}))
    try:
        product.start()
        with Receiver() as receiver:
            return _Run(product, receiver, wall, home, seed=seed).judge_after(seconds)
    finally:
        product.kill_all()


class _Run:
    def __init__(
        self,
        product: Product,
        receiver: Receiver,
        wall: clock.MovedClock | None,
        home: Path,
        *,
        seed: int,
    ) -> None:
        self._seed = seed
        self._product = product
        self._journal = Journal()
        configure_policies(product.rest)
        self._topic = product.flow("Torture.Topic")
        self._queue = product.flow("Torture.Queue", kind="QUEUE")
        self._lanes = subscribe(self._topic, receiver, ROLES, seed=seed)
        self._workers = subscribe(self._queue, receiver, QUEUE_ROLES, seed=seed)
        self._mailbox_owner, client = _subscribe_mailbox(self._topic)
        self._publishers = [
            TorturePublisher(
                [self._topic, self._queue], number=number, seed=seed, pause_seconds=PAUSE_SECONDS
            )
            for number in range(PUBLISHERS)
        ]
        self._clients = [
            MailboxClient(
                ProductClient(client.base_url, client.key),
                self._mailbox_owner,
                number=number,
                seed=seed,
            )
            for number in range(2)
        ]
        self._stage = TortureStage(
            product, receiver, self._lanes, self._journal, clock=wall, seed=seed, home=home
        )

    def judge_after(self, seconds: float) -> TortureResult:
        working: list[TrafficThread] = [*self._publishers, *self._clients]
        for worker in working:
            worker.start()
        over = threading.Event()
        timer = threading.Timer(seconds, over.set)
        timer.start()
        broken = self._break(over)
        timer.cancel()
        for publisher in self._publishers:
            publisher.over.set()
        for publisher in self._publishers:
            publisher.join()
        unsettled = self._wait_until_settled()
        for worker in working:
            worker.over.set()
            worker.join()
            if worker.error is not None:
                raise worker.error
        seen = Seen(
            topic=self._topic,
            queue=self._queue,
            lanes=self._lanes,
            workers=self._workers,
            publishers=self._publishers,
            clients=self._clients,
            journal=self._journal,
        )
        judge = Judge(seen, seed=self._seed)
        judge.add("all", [*broken, *unsettled])
        return judge.judge()

    def _break(self, over: threading.Event) -> list[Breach]:
        """Cause faults until the run is over; a product that does not recover is a finding."""
        try:
            try:
                faults.strike(self._stage, over)
            finally:
                faults.end(self._stage)
        except AssertionError as error:
            return [Breach("NOT WELL", "all", time.monotonic(), str(error))]
        return []

    def _wait_until_settled(self) -> list[Breach]:
        """Wait for open deliveries; the messages reveal a lane that stands still."""
        deadline = time.monotonic() + SETTLED_SECONDS
        while (count := self._open()) and time.monotonic() < deadline:
            time.sleep(0.2)
        if not count:
            return []
        return [Breach("STUCK", "all", time.monotonic(), f"{count} deliveries are still open")]

    def _open(self) -> int:
        found = 0
        for status in ("PENDING", "IN_FLIGHT"):
            found += len(self._product.rest.get("deliveries", status=status, limit=500)["results"])
        return found


def _subscribe_mailbox(flow: Flow) -> tuple[str, ProductClient]:
    owner = flow.subscriber(MAILBOX)
    fields = {"name": MAILBOX, "subscriber": owner, "event_type": flow.event_type, "mode": "PULL"}
    flow.rest.post("subscriptions", fields)
    key = flow.rest.post(f"subscribers/{owner}/keys")["key"]
    return owner, ProductClient(flow.rest.base_url, key)
