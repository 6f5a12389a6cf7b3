"""The started product as run by users: `manage.py up`, used through the REST API."""

import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from config.embedded.postgres import running_url
from tests.support.receivers import ReceiverEndpoint
from tests.support.rest import Json, ProductClient
from tests.support.surroundings import NETWORKS
from tests.system.operation.installation import StartedInstallation, eventually

BOOTSTRAP_KEY = f"inturn_{secrets.token_urlsafe(32)}"


class Product(StartedInstallation):
    """An `up` with a separate home, port and, by default, embedded PostgreSQL."""

    def __init__(self, home: Path, *, prefix: Sequence[str] = (), **environment: str) -> None:
        super().__init__(home, prefix=prefix)
        self._environment = environment
        self.rest = ProductClient(f"http://127.0.0.1:{self.port}", BOOTSTRAP_KEY)

    def launch(self, **changed: str) -> subprocess.Popen[str]:
        given = {"INTURN_BOOTSTRAP_KEY": BOOTSTRAP_KEY, "INTURN_ALLOWED_NETWORKS": NETWORKS}
        return super().launch(**given | self._environment | changed)

    def connect(self) -> psycopg.Connection:
        """Open a connection of the test to the product's database."""
        url = self._environment.get("DATABASE_URL") or running_url(self.home)
        if url is None:
            raise psycopg.OperationalError("PostgreSQL does not run")
        return psycopg.connect(url, autocommit=True, application_name="test")

    def hold_waiting(self) -> None:
        """Make all subscriptions with waiting deliveries INACTIVE, except the one of all callbacks.

        A product outlives a test, whose retries would take processor time from all later tests. The
        last callback of a test may be waiting for the commit of the outcome.
        """
        with self.connect() as connection:
            connection.execute(
                "UPDATE subscriptions_subscription SET status = 'INACTIVE' WHERE status = 'ACTIVE'"
                " AND id IN (SELECT subscription_id FROM delivery_waiting)"
                " AND event_type_id NOT IN"
                " (SELECT id FROM subscriptions_eventtype WHERE name = 'Inturn.Callback')"
            )

    def flow(self, name: str, **fields: Any) -> "Flow":
        """Create an event type and a publisher unused by other tests."""
        unique = f"{name}.{secrets.token_hex(4)}"
        self.rest.post("event-types", {"name": unique, **fields})
        self.rest.post("publishers", {"name": unique})
        return Flow(self, unique, self.publisher_of(unique))

    def publisher_of(self, name: str) -> ProductClient:
        key = self.rest.post(f"publishers/{name}/keys")["key"]
        return ProductClient(self.rest.base_url, key)


@dataclass(frozen=True, slots=True)
class StartedSubscription:
    """A subscription and the endpoint."""

    endpoint: ReceiverEndpoint
    subscriber: str
    id: int
    secret: str


@dataclass(frozen=True, slots=True)
class Flow:
    """An event type and the publisher of it on a product."""

    product: Product
    event_type: str
    publisher: ProductClient

    @property
    def rest(self) -> ProductClient:
        return self.product.rest

    def subscriber(self, name: str, **fields: Any) -> str:
        unique = f"{self.event_type}.{name}"
        self.rest.post("subscribers", {"name": unique, **fields})
        return unique

    def subscribe(
        self, endpoint: ReceiverEndpoint, /, *, subscriber: str = "", **fields: Any
    ) -> StartedSubscription:
        """Subscribe an endpoint, for a new subscriber unless a subscriber is named."""
        name = endpoint.url.rpartition("/")[2]
        owner = subscriber or self.subscriber(name)
        values = {
            "name": name,
            "subscriber": owner,
            "event_type": self.event_type,
            "endpoint": endpoint.url,
        }
        made = self.rest.post("subscriptions", values | fields)
        return StartedSubscription(endpoint, owner, made["id"], made["secret"])

    def publish(self, body: bytes = b"{}", **headers: str) -> str:
        """Publish and return the message's public id."""
        id: str = self.publisher.publish(self.event_type, body, **headers)["id"]
        return id

    def publish_numbered(self, count: int) -> list[str]:
        """Publish so many messages in one transaction and return their ids."""
        items = [{"event": self.event_type, "body": {"number": number}} for number in range(count)]
        return [result["id"] for result in self.publisher.publish_batch(items)]

    def deliveries(self, of: StartedSubscription) -> list[Json]:
        """Return the subscription's deliveries in publication order."""
        found = self.rest.all("deliveries", subscription=of.id)
        return sorted(found, key=lambda delivery: int(delivery["id"]))

    def statuses(self, of: StartedSubscription) -> list[str]:
        return [delivery["status"] for delivery in self.deliveries(of)]

    def delivery(self, of: StartedSubscription, message: str) -> Json:
        """Return the delivery of the message, with the attempts."""
        found = self.rest.get("deliveries", subscription=of.id, message=message)["results"]
        assert len(found) == 1, found
        return self.rest.get(f"deliveries/{found[0]['id']}")

    def lane(self, of: StartedSubscription) -> Json:
        return self.rest.get(f"lanes/{of.subscriber}")

    def endpoint_state(self, of: StartedSubscription) -> str:
        state: str = self.rest.get(f"subscriptions/{of.id}")["endpoint_state"]
        return state

    def wait_until_blocked(self, of: StartedSubscription) -> Json:
        eventually(
            lambda: self.lane(of)["state"] == "BLOCKED", f"the lane of {of.subscriber} is BLOCKED"
        )
        return self.lane(of)

    def wait_until_settled(self, of: StartedSubscription) -> list[str]:
        """Wait until the subscription has no open delivery, and return the statuses."""
        eventually(lambda: "PENDING" not in self.statuses(of), f"all of {of.subscriber} is settled")
        return self.statuses(of)
