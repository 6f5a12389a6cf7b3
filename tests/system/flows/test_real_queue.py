"""Hundreds of payloads as QUEUE messages, over three groups of three endpoints.

One endpoint of each group dies midway.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest
import standardwebhooks

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import OK, Behaviour, Close, Received, Receiver
from tests.system.flows import webhooks
from tests.system.flows.webhooks import Webhook
from tests.system.operation.installation import eventually

pytestmark = pytest.mark.slow

# After so many messages one endpoint of each group takes no more.
DIES_AFTER = 150


@dataclass(frozen=True, slots=True)
class QueueSubscription:
    """A group's filter, in Inturn's language and in Python."""

    name: str
    filter: str
    wants: Callable[[Webhook], bool]


PLANS = [
    QueueSubscription("everything", "", lambda _: True),
    QueueSubscription(
        "sent-by-codertocat",
        "$$->'Body'->'sender'->>'login' = 'Codertocat'",
        lambda webhook: (webhook.body.get("sender") or {}).get("login") == "Codertocat",
    ),
    QueueSubscription(
        "has-a-repository",
        "$$->'Body'->'repository'->>'id' is not null",
        lambda webhook: (webhook.body.get("repository") or {}).get("id") is not None,
    ),
]


class QueueRun:
    """The run; after it all deliveries are settled, and the tests only read."""

    def __init__(self, flow: Flow, receiver: Receiver, *, source: str) -> None:
        self.flow = flow
        self._source = source
        self.messages: dict[str, Webhook] = {}
        self._is_dead = False
        self.groups = {plan.name: self._subscribe(plan, receiver) for plan in PLANS}

    def run(self) -> None:
        for number, webhook in enumerate(webhooks.read(self._source)):
            if number == DIES_AFTER:
                self._is_dead = True
            self.messages[self.flow.publish(webhook.raw)] = webhook
        for plan in PLANS:
            count = len(self.expected(plan))
            eventually(partial(self._are_delivered, plan, count), f"{plan.name} is delivered")

    def expected(self, plan: QueueSubscription) -> list[str]:
        return [id for id, webhook in self.messages.items() if plan.wants(webhook)]

    def received(self, plan: QueueSubscription) -> list[Received]:
        """Return the requests that its endpoints accepted."""
        every = itertools.chain.from_iterable(of.endpoint.received for of in self.groups[plan.name])
        return [request for request in every if request.status == 200]

    def _are_delivered(self, plan: QueueSubscription, count: int) -> bool:
        return len(self.received(plan)) >= count and not any(
            "PENDING" in self.flow.statuses(of) for of in self.groups[plan.name]
        )

    def _subscribe(self, plan: QueueSubscription, receiver: Receiver) -> list[StartedSubscription]:
        group = []
        for name in ("living-1", "living-2", "dying"):
            endpoint = receiver.endpoint(f"{plan.name}-{name}")
            if name == "dying":
                endpoint.follow(self._answer)
            group.append(self.flow.subscribe(endpoint, filter=plan.filter))
        return group

    def _answer(self, _: Received) -> Behaviour:
        return Close() if self._is_dead else OK


@pytest.fixture(scope="module", params=webhooks.SOURCES)
def run(request: pytest.FixtureRequest, product: Product) -> Iterator[QueueRun]:
    with Receiver() as receiver:
        run = QueueRun(product.flow("RealQueue", kind="QUEUE"), receiver, source=request.param)
        run.run()
        yield run


@pytest.fixture(params=PLANS, ids=[plan.name for plan in PLANS])
def plan(request: pytest.FixtureRequest) -> QueueSubscription:
    found: QueueSubscription = request.param
    return found


def test_every_message_reached_the_group_exactly_once(
    run: QueueRun, plan: QueueSubscription
) -> None:
    assert Counter(request.id for request in run.received(plan)) == Counter(run.expected(plan))


def test_each_group_has_one_delivered_and_the_rest_redundant(
    run: QueueRun, plan: QueueSubscription
) -> None:
    statuses: dict[str, Counter[str]] = {}
    for of in run.groups[plan.name]:
        for delivery in run.flow.deliveries(of):
            statuses.setdefault(delivery["message"], Counter())[delivery["status"]] += 1
    assert statuses == {id: Counter(DELIVERED=1, REDUNDANT=2) for id in run.expected(plan)}


def test_surviving_endpoints_share_later_messages_evenly(
    run: QueueRun, plan: QueueSubscription
) -> None:
    late = set(list(run.messages)[DIES_AFTER:])
    shares = [
        sum(request.id in late for request in of.endpoint.received)
        for of in run.groups[plan.name][:2]
    ]
    assert max(shares) <= 1.2 * sum(shares) / len(shares)


def test_bytes_and_signatures_are_right(run: QueueRun, plan: QueueSubscription) -> None:
    secrets = {of.endpoint.url.rpartition("/")[2]: of.secret for of in run.groups[plan.name]}
    for request in run.received(plan):
        secret = secrets[request.path.removeprefix("/")]
        standardwebhooks.Webhook(secret).verify(request.body, dict(request.headers))
        assert request.body == run.messages[request.id].raw
