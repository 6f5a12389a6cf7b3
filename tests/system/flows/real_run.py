"""One run of all payloads of a source through the started product, to good and bad endpoints."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.product import Product
from tests.support.receivers import (
    OK,
    Answer,
    Behaviour,
    Hold,
    Received,
    Receiver,
    ReceiverEndpoint,
)
from tests.support.rest import Json, ProductClient
from tests.system.flows import webhooks
from tests.system.flows.webhooks import Webhook
from tests.system.operation.installation import eventually

HELLO_WORLD = "Codertocat/Hello-World"

Bad = Callable[[int], Behaviour | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealSubscription:
    """A subscriber's filter, in Inturn's language and in Python, and its endpoint's misbehaviour.

    `bad` is called with the message's number; the answer, if any, is given to the first `times`
    tries of that message.
    """

    name: str
    policy: str
    wants: Callable[[Webhook], bool]
    header_filter_string: str = ""
    filter: str = ""
    bad: Bad = field(default=lambda _number: None)
    times: int = 1
    refuses: bool = False

    @property
    def is_strict(self) -> bool:
        return self.policy == "strict"


def every(nth: int, behaviour: Behaviour) -> Bad:
    return lambda number: behaviour if number % nth == nth - 1 else None


def at(numbers: Sequence[int], behaviour: Behaviour) -> Bad:
    return lambda number: behaviour if number in numbers else None


PLANS = [
    RealSubscription(
        name="all-500",
        policy="teamforge",
        wants=lambda _: True,
        bad=every(10, Answer(500)),
        times=2,
    ),
    RealSubscription(
        name="all-strict-500",
        policy="strict",
        wants=lambda _: True,
        bad=at([0, 150, 300], Answer(500)),
        times=2,
    ),
    RealSubscription(
        name="repository-404",
        policy="teamforge",
        header_filter_string=HELLO_WORLD,
        wants=lambda webhook: webhook.repository == HELLO_WORLD,
        bad=every(7, Answer(404)),
    ),
    RealSubscription(
        name="action-301",
        policy="strict",
        filter="$$->'Body'->>'action' in ('created', 'opened')",
        wants=lambda webhook: webhook.body.get("action") in ("created", "opened"),
        bad=every(9, Answer(301, headers={"Location": "/elsewhere"})),
    ),
    RealSubscription(
        name="both-hanging",
        policy="teamforge",
        header_filter_string=HELLO_WORLD,
        filter="$$->'Body'->'sender'->>'login' = 'Codertocat' "
        "AND NOT $$->'Body'->>'action' = 'created'",
        wants=lambda webhook: (
            webhook.repository == HELLO_WORLD
            and (webhook.body.get("sender") or {}).get("login") == "Codertocat"
            # A missing action is null, and so is its comparison: not true.
            and webhook.body.get("action") not in (None, "created")
        ),
        bad=at([3, 40], Hold()),
    ),
    RealSubscription(name="all-refusing", policy="strict", wants=lambda _: True, refuses=True),
    RealSubscription(
        name="header",
        policy="teamforge",
        filter="$$->'Header'->>'x-github-event' like 'GitHub.Issue%'",
        wants=lambda webhook: webhook.event.startswith("GitHub.Issue"),
    ),
    RealSubscription(
        name="private-or-installed",
        policy="strict",
        filter="$$->'Body'->'repository'->'private' = true "
        "OR $$->'Body'->'installation'->>'id' is not null",
        wants=lambda webhook: (
            (webhook.body.get("repository") or {}).get("private") is True
            or (webhook.body.get("installation") or {}).get("id") is not None
        ),
    ),
]


class RealSubscriber:
    """One of the subscribers: a subscription to each event type, all with one endpoint."""

    def __init__(self, plan: RealSubscription, endpoint: ReceiverEndpoint, name: str) -> None:
        self.plan = plan
        self.endpoint = endpoint
        self.name = name
        self.secrets: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        endpoint.follow(self._answer)

    def _answer(self, request: Received) -> Behaviour:
        number = self._numbers.setdefault(request.id, len(self._numbers))
        bad = self.plan.bad(number) if request.tries <= self.plan.times else None
        return bad or OK

    @property
    def received(self) -> list[Received]:
        return self.endpoint.received


class RealRun:
    """The run: after it all deliveries are settled, and the other tests only read."""

    def __init__(
        self, product: Product, receiver: Receiver, refusing: Receiver, *, source: str
    ) -> None:
        self.product = product
        self.webhooks = webhooks.read(source)
        self.areas = webhooks.frequent_areas(self.webhooks)
        self.prefix = f"GitHub{secrets.token_hex(3)}"
        self.refusing = refusing
        self.messages: dict[str, Webhook] = {}
        self.answers: list[Json] = []
        event_types = self._make_event_types()
        self.subscribers = [
            self._subscribe(plan, refusing if plan.refuses else receiver, event_types)
            for plan in PLANS
        ]

    def event_type(self, webhook: Webhook) -> str:
        return f"{self.prefix}.{webhook.area if webhook.area in self.areas else 'Other'}"

    def expected(self, of: RealSubscriber) -> list[str]:
        """Return the ids that the subscriber should get, in publication order."""
        return [id for id, webhook in self.messages.items() if of.plan.wants(webhook)]

    def deliveries(self, of: RealSubscriber) -> dict[str, Json]:
        return {
            found["message"]: found
            for found in self.product.rest.all("deliveries", subscriber=of.name)
        }

    def run(self) -> None:
        self.refusing.refuse_connections()
        publisher = self._publisher()
        for webhook in self.webhooks:
            self._publish(publisher, webhook)
        self._refuse_for_a_while()
        eventually(lambda: all(map(self._is_settled, self.subscribers)), "all of it is settled")

    def _make_event_types(self) -> list[str]:
        names = [f"{self.prefix}.{area}" for area in [*self.areas, "Other"]]
        for name in names:
            self.product.rest.post("event-types", {"name": name})
        return names

    def _publisher(self) -> ProductClient:
        self.product.rest.post("publishers", {"name": self.prefix})
        return self.product.publisher_of(self.prefix)

    def _publish(self, publisher: ProductClient, webhook: Webhook) -> None:
        headers = {"FILTER_STRING": webhook.repository, "X_GitHub_Event": webhook.event}
        answer = publisher.publish(self.event_type(webhook), webhook.raw, **headers)
        self.answers.append(answer)
        self.messages[answer["id"]] = webhook

    def _subscribe(
        self, plan: RealSubscription, receiver: Receiver, event_types: list[str]
    ) -> RealSubscriber:
        name = f"{self.prefix}.{plan.name}"
        self.product.rest.post(
            "subscribers", {"name": name, "max_queued_to_send": 50, "refill_level": 10}
        )
        of = RealSubscriber(plan, receiver.endpoint(plan.name), name)
        for event_type in event_types:
            wanted: dict[str, Any] = {
                "name": event_type,
                "subscriber": name,
                "event_type": event_type,
                "endpoint": of.endpoint.url,
                "policy": plan.policy,
                "header_filter_string": plan.header_filter_string,
                "filter": plan.filter,
                "timeout_seconds": 1,
            }
            of.secrets[event_type] = self.product.rest.post("subscriptions", wanted)["secret"]
        return of

    def _refuse_for_a_while(self) -> None:
        """Open the port, closed from the beginning, and close it once more in the middle."""
        (of,) = [of for of in self.subscribers if of.plan.refuses]
        self._wait_until_unreachable(of)
        # While this one gets the bad answer, no other request is in flight that closing would cut
        # off.
        of.endpoint.next(*[OK] * 100, Answer(500))
        self.refusing.accept_connections()
        of.endpoint.wait_for_count(101)
        eventually(
            lambda: self._lane(of)["reason"].startswith("500"), "it is blocked by its answer"
        )
        self.refusing.refuse_connections()
        self._wait_until_unreachable(of)
        self.refusing.accept_connections()

    def _wait_until_unreachable(self, of: RealSubscriber) -> None:
        def is_unreachable() -> bool:
            lane = self._lane(of)
            return lane["state"] == "BLOCKED" and not lane["reason"].startswith("500")

        eventually(is_unreachable, f"{of.name} is blocked because it cannot be reached")

    def _lane(self, of: RealSubscriber) -> Json:
        return self.product.rest.get(f"lanes/{of.name}")

    def _is_settled(self, of: RealSubscriber) -> bool:
        pending = self.product.rest.get("deliveries", subscriber=of.name, status="PENDING", limit=1)
        return not pending["results"]
