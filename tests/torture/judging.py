"""Judges a run by the oracle: the rules of each lane, and the log of each finding."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.support.product import Flow
from tests.support.receivers import Received
from tests.torture import oracle, pauses
from tests.torture.clock import LONGEST_STEP_SECONDS
from tests.torture.lanes import MAX_IN_FLIGHT, QUEUE_LANES, ObservedLane
from tests.torture.oracle import Breach
from tests.torture.records import PUBLISHERS, FaultWindow, Fetched, Journal, Published, end_of_fault
from tests.torture.traffic import MailboxClient, TorturePublisher

MAILBOX = "mailbox"
QUEUE = "queue"
# The findings of a lane that are reported with its log.
LOGGED = 3


@dataclass(slots=True)
class TortureResult:
    seed: int
    messages: int = 0
    requests: int = 0
    crashes: int = 0
    faults: Sequence[str] = ()
    # Senders that lost their session while they were stopped, and woke up.
    woken: int = 0
    # Deliveries that a crash left in doubt: sent again with the mark, or held.
    resent: int = 0
    held: int = 0
    findings: list[Breach] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)

    def report(self) -> str:
        lines = [
            f"seed {self.seed}: {self.messages} messages, {self.requests} requests, {self.crashes} "
            f"crashes, {self.resent} sent again in doubt, {self.held} held, {self.woken} woken, "
            f"{len(self.findings)} findings",
            f"faults: {', '.join(self.faults)}",
        ]
        lines += [f"{found.rule} in {found.lane}: {found.text}" for found in self.findings]
        return "\n".join([*lines, *self.logs])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The participants of a run; each has its own record."""

    topic: Flow
    queue: Flow
    lanes: Sequence[ObservedLane]
    workers: Sequence[ObservedLane]
    publishers: Sequence[TorturePublisher]
    clients: Sequence[MailboxClient]
    journal: Journal


class Judge:
    def __init__(self, seen: Seen, *, seed: int) -> None:
        self._seen = seen
        self._journal = seen.journal
        journal = seen.journal
        self.result = TortureResult(
            seed, crashes=len(journal.crashes), faults=journal.faults, woken=len(journal.woken)
        )

    def judge(self) -> TortureResult:
        published = [
            message for publisher in self._seen.publishers for message in publisher.published
        ]
        self.result.messages = len(published)
        self.add(PUBLISHERS, self._judge_publishers(published))
        topic = [message for message in published if message.event == self._seen.topic.event_type]
        for lane in self._seen.lanes:
            self._judge_lane(lane, topic)
        self._judge_queue(
            [message for message in published if message.event == self._seen.queue.event_type]
        )
        self._judge_mailbox(topic)
        return self.result

    def add(
        self, lane: str, findings: Sequence[Breach], came: Iterable[Received | Fetched] = ()
    ) -> None:
        """Add a lane's findings, with its log around the first ones."""
        self.result.findings += findings
        came = list(came)
        for finding in findings[:LOGGED]:
            moment = f"{finding.at - self._journal.began:.3f}"
            self.result.logs.append(f"--- {finding.rule} in {lane} at {moment}: {finding.text}")
            self.result.logs += self._journal.log_of(lane, came, around=finding.at)

    def _judge_publishers(self, published: Sequence[Published]) -> list[Breach]:
        said = [
            Breach(rule, publisher.name, 0.0, text)
            for publisher in self._seen.publishers
            for rule, texts in (
                ("REFUSED", publisher.refused),
                ("ANSWERED OTHERWISE", publisher.answered_otherwise),
            )
            for text in texts
        ]
        return [*said, *pauses.kept_waiting(published, self._journal.excuses)]

    def _judge_lane(self, lane: ObservedLane, published: Sequence[Published]) -> None:
        role, received, journal = lane.role, lane.received, self._journal
        statuses = _statuses(self._seen.topic, lane)
        self.result.requests += len(received)
        self.result.resent += sum(request.redelivery == "in-doubt" for request in received)
        self.result.held += sum(status == "IN_DOUBT" for status in statuses.values())
        inactive = [window for window in journal.inactive if window.lane == lane.name]
        owed = [message for message in published if not _overlaps(message, inactive)]
        findings = [
            *oracle.lost(role.name, owed, statuses, received),
            *oracle.published_twice(role.name, received),
            *oracle.numbered(role.name, received),
            *oracle.unexpected(role.name, statuses, ["IN_DOUBT"] if role.holds_doubt else []),
            *oracle.repeats(role.name, received, holds=role.holds_doubt, faults=journal.excuses),
            *oracle.sent_when_woken(role.name, received, journal.woken),
            *pauses.standing_still(role.name, owed, received, journal.excuses),
            *self._judge_doubts(lane, statuses),
        ]
        if role.is_serial:
            findings += oracle.order(role.name, published, received)
        if role.holds_doubt:
            findings += oracle.overtaken(role.name, received, statuses)
        self.add(role.name, findings, received)

    def _judge_doubts(self, lane: ObservedLane, statuses: Mapping[str, str]) -> list[Breach]:
        role = lane.role
        doubted = {id for id, status in statuses.items() if status == "IN_DOUBT"}
        doubted |= {request.id for request in lane.received if request.redelivery == "in-doubt"}
        doubted_at: list[float] = []
        findings = []
        for id in doubted:
            found = self._doubted_at(lane, id)
            doubted_at += found
            if not found:
                text = f"{id} has no lost attempt in its history"
                findings.append(Breach("IN DOUBT", lane.name, 0.0, text))
        most = 1 if role.is_serial else MAX_IN_FLIGHT + 1
        wrong_by = LONGEST_STEP_SECONDS if self._journal.steps else 0
        crashes = [
            (crash, end_of_fault(crash, self._journal.excuses)) for crash in self._journal.crashes
        ]
        return [
            *findings,
            *oracle.doubts(lane.name, doubted_at, crashes, at_most=most, wrong_by=wrong_by),
        ]

    def _doubted_at(self, lane: ObservedLane, message: str) -> list[float]:
        """Return when attempts were recorded as lost, on this process's clock."""
        attempts = self._seen.topic.delivery(lane.subscribed, message)["attempts"]
        since = time.time() - time.monotonic()
        return [
            datetime.fromisoformat(attempt["started_at"]).timestamp() - since
            for attempt in attempts
            if attempt["outcome"] == "LOST"
        ]

    def _judge_queue(self, published: Sequence[Published]) -> None:
        workers, journal = self._seen.workers, self._journal
        statuses: dict[str, list[str]] = defaultdict(list)
        for lane in workers:
            for message, status in _statuses(self._seen.queue, lane).items():
                statuses[message].append(status)
        received = sorted(
            (request for lane in workers for request in lane.received),
            key=lambda received_request: received_request.at,
        )
        self.result.requests += len(received)
        most = len(journal.crashes) * MAX_IN_FLIGHT * QUEUE_LANES
        findings = [
            *oracle.group(
                QUEUE, published, statuses, received, most_in_doubt=most, faults=journal.excuses
            ),
            *pauses.standing_still(QUEUE, published, received, journal.excuses),
            *oracle.sent_when_woken(QUEUE, received, journal.woken),
        ]
        self.add(QUEUE, findings, received)

    def _judge_mailbox(self, published: Sequence[Published]) -> None:
        fetched = [fetch for client in self._seen.clients for fetch in client.fetched]
        findings = [
            *oracle.mailbox(MAILBOX, published, fetched, steps=self._journal.steps),
            *pauses.standing_still(MAILBOX, published, _firsts(fetched), self._journal.excuses),
        ]
        self.add(MAILBOX, findings, fetched)


def _statuses(flow: Flow, lane: ObservedLane) -> dict[str, str]:
    return {
        delivery["message"]: delivery["status"]
        for delivery in flow.rest.all("deliveries", subscription=lane.subscribed.id)
    }


def _overlaps(message: Published, windows: Sequence[FaultWindow]) -> bool:
    return any(
        message.sent_at <= window.until and message.answered_at >= window.since
        for window in windows
    )


def _firsts(fetched: Sequence[Fetched]) -> list[Fetched]:
    """Return the first fetch of each message: until a later one, the message was leased."""
    firsts: dict[str, Fetched] = {}
    for fetch in sorted(fetched, key=lambda fetch: fetch.answered_at):
        firsts.setdefault(fetch.id, fetch)
    return list(firsts.values())
