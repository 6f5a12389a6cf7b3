"""One torture run: start the product, let traffic and faults go on, wait until all is settled, and judge."""

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tests.product import Flow, Product
from tests.receivers import Receiver
from tests.rest import Rest
from tests.torture import clock, faults, oracle
from tests.torture.lanes import (
    MAX_IN_FLIGHT,
    QUEUE_LANES,
    QUEUE_ROLES,
    ROLES,
    Lane,
    configure_policies,
    subscribe,
)
from tests.torture.oracle import Finding
from tests.torture.records import Fetched, Journal, Published, Window
from tests.torture.stage import Stage
from tests.torture.traffic import MailboxClient, Publisher, Worker

PUBLISHERS = 2
# Of each publisher, between two requests: lanes that block for seconds must keep up.
PAUSE_SECONDS = 0.15
SETTLED_SECONDS = 120.0
MAILBOX = "mailbox"


@dataclass(slots=True)
class Result:
    seed: int
    messages: int = 0
    requests: int = 0
    crashes: int = 0
    # Deliveries that a crash left in doubt: sent again with the mark, or held.
    resent: int = 0
    held: int = 0
    findings: list[Finding] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)

    def report(self) -> str:
        lines = [
            f"seed {self.seed}: {self.messages} messages, {self.requests} requests, {self.crashes} crashes, "
            f"{self.resent} sent again in doubt, {self.held} held, {len(self.findings)} findings"
        ]
        lines += [f"{found.rule} in {found.lane}: {found.text}" for found in self.findings]
        return "\n".join([*lines, *self.logs])


def torture(home: Path, *, seconds: float, seed: int) -> Result:
    """Run it in a folder of its own and return what was found; the seed repeats the plan, not the timing."""
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
        self, product: Product, receiver: Receiver, wall: clock.Clock | None, home: Path, *, seed: int
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
            Publisher([self._topic, self._queue], number=number, seed=seed, pause_seconds=PAUSE_SECONDS)
            for number in range(PUBLISHERS)
        ]
        self._clients = [
            MailboxClient(Rest(client.base_url, client.key), self._mailbox_owner, number=number, seed=seed)
            for number in range(2)
        ]
        self._stage = Stage(product, receiver, self._lanes, self._journal, clock=wall, seed=seed, home=home)

    def judge_after(self, seconds: float) -> Result:
        working: list[Worker] = [*self._publishers, *self._clients]
        for worker in working:
            worker.start()
        over = threading.Event()
        timer = threading.Timer(seconds, over.set)
        timer.start()
        try:
            faults.strike(self._stage, over)
        finally:
            timer.cancel()
            faults.end(self._stage)
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
        return self._judge(unsettled)

    def _wait_until_settled(self) -> int:
        """How many deliveries are still open at the end; a lane that stands still is reported by its messages."""
        deadline = time.monotonic() + SETTLED_SECONDS
        while (count := self._open()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return count

    def _open(self) -> int:
        found = 0
        for status in ("PENDING", "IN_FLIGHT"):
            found += len(self._product.rest.get("deliveries", status=status, limit=500)["results"])
        return found

    def _judge(self, unsettled: int) -> Result:
        published = [message for publisher in self._publishers for message in publisher.published]
        result = Result(self._seed, messages=len(published), crashes=len(self._journal.crashes))
        result.findings += self._judge_publishers(published)
        if unsettled:
            result.findings.append(
                Finding("STUCK", "all", time.monotonic(), f"{unsettled} deliveries are still open")
            )
        topic = [message for message in published if message.event == self._topic.event_type]
        queue = [message for message in published if message.event == self._queue.event_type]
        for lane in self._lanes:
            statuses = self._statuses(self._topic, lane)
            result.held += sum(status == "IN_DOUBT" for status in statuses.values())
            self._add(result, lane, self._judge_lane(lane, topic, statuses))
        for lane in self._workers:
            result.requests += len(lane.received)
        result.findings += self._judge_queue(queue)
        result.findings += self._judge_mailbox(topic)
        return result

    def _judge_publishers(self, published: Sequence[Published]) -> list[Finding]:
        said = [
            Finding(rule, publisher.name, 0.0, text)
            for publisher in self._publishers
            for rule, texts in (
                ("REFUSED", publisher.refused),
                ("ANSWERED OTHERWISE", publisher.answered_otherwise),
            )
            for text in texts
        ]
        return [*said, *oracle.kept_waiting(published, self._journal.excuses)]

    def _judge_mailbox(self, published: Sequence[Published]) -> list[Finding]:
        fetched = [fetch for client in self._clients for fetch in client.fetched]
        standing = oracle.standing_still(MAILBOX, published, _firsts(fetched), self._journal.excuses)
        return [*oracle.mailbox(MAILBOX, published, fetched), *standing]

    def _add(self, result: Result, lane: Lane, findings: Sequence[Finding]) -> None:
        result.requests += len(lane.received)
        result.resent += sum(request.redelivery == "in-doubt" for request in lane.received)
        result.findings += findings
        for finding in findings[:3]:
            result.logs.append(f"--- {finding.rule} in {lane.name}")
            result.logs += self._journal.log_of(lane.name, lane.received, around=finding.at)

    def _judge_lane(
        self, lane: Lane, published: Sequence[Published], statuses: Mapping[str, str]
    ) -> list[Finding]:
        role, received, journal = lane.role, lane.received, self._journal
        inactive = [window for window in journal.inactive if window.lane == lane.name]
        owed = [message for message in published if not _overlaps(message, inactive)]
        findings = [
            *oracle.lost(role.name, owed, statuses, received),
            *oracle.published_twice(role.name, received),
            *oracle.numbered(role.name, received),
            *oracle.unexpected(role.name, statuses, ["IN_DOUBT"] if role.holds_doubt else []),
            *oracle.repeats(role.name, received, holds=role.holds_doubt, faults=journal.excuses),
            *oracle.sent_when_woken(role.name, received, journal.woken),
            *oracle.standing_still(role.name, owed, received, journal.excuses),
            *self._judge_doubts(lane, statuses),
        ]
        if role.is_serial:
            findings += oracle.order(role.name, published, received)
        if role.holds_doubt:
            findings += oracle.overtaken(role.name, received, statuses)
        return findings

    def _judge_doubts(self, lane: Lane, statuses: Mapping[str, str]) -> list[Finding]:
        role = lane.role
        doubted = {id for id, status in statuses.items() if status == "IN_DOUBT"}
        doubted |= {request.id for request in lane.received if request.redelivery == "in-doubt"}
        doubted_at: list[float] = []
        findings = []
        for id in doubted:
            found = self._doubted_at(lane, id)
            doubted_at += found
            if not found:
                findings.append(
                    Finding("IN DOUBT", lane.name, 0.0, f"{id} has no lost attempt in its history")
                )
        most = 1 if role.is_serial else MAX_IN_FLIGHT + 1
        return [*findings, *oracle.doubts(lane.name, doubted_at, self._journal.crashes, at_most=most)]

    def _doubted_at(self, lane: Lane, message: str) -> list[float]:
        """When attempts at the message were noticed to be lost, on this process's monotonic clock."""
        attempts = self._topic.delivery(lane.subscribed, message)["attempts"]
        since = time.time() - time.monotonic()
        return [
            datetime.fromisoformat(attempt["started_at"]).timestamp() - since
            for attempt in attempts
            if attempt["outcome"] == "LOST"
        ]

    def _judge_queue(self, published: Sequence[Published]) -> list[Finding]:
        statuses: dict[str, list[str]] = defaultdict(list)
        for lane in self._workers:
            for message, status in self._statuses(self._queue, lane).items():
                statuses[message].append(status)
        received = sorted(
            (request for lane in self._workers for request in lane.received), key=lambda each: each.at
        )
        most = len(self._journal.crashes) * MAX_IN_FLIGHT * QUEUE_LANES
        return [
            *oracle.group("queue", published, statuses, received, most_in_doubt=most),
            *oracle.standing_still("queue", published, received, self._journal.excuses),
            *oracle.sent_when_woken("queue", received, self._journal.woken),
        ]

    def _statuses(self, flow: Flow, lane: Lane) -> dict[str, str]:
        return {
            delivery["message"]: delivery["status"]
            for delivery in flow.rest.all("deliveries", subscription=lane.subscribed.id)
        }


def _subscribe_mailbox(flow: Flow) -> tuple[str, Rest]:
    owner = flow.subscriber(MAILBOX)
    wish = {"name": MAILBOX, "subscriber": owner, "event_type": flow.event_type, "mode": "PULL"}
    flow.rest.post("subscriptions", wish)
    key = flow.rest.post(f"subscribers/{owner}/keys")["key"]
    return owner, Rest(flow.rest.base_url, key)


def _overlaps(message: Published, windows: Sequence[Window]) -> bool:
    return any(message.sent_at <= window.until and message.answered_at >= window.since for window in windows)


def _firsts(fetched: Sequence[Fetched]) -> list[Fetched]:
    """The first fetch of each message: what comes back later was out meanwhile."""
    firsts: dict[str, Fetched] = {}
    for fetch in sorted(fetched, key=lambda fetch: fetch.answered_at):
        firsts.setdefault(fetch.id, fetch)
    return list(firsts.values())
