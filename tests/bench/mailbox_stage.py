"""The mailboxes of the benchmark, filled by SQL: through REST it would take an hour."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.db import connection

from delivery.database.connections import connection_parameters
from subscriptions.models import ApiKey, EventType, Policy, Scope, Subscriber, Subscription
from subscriptions.models.api_key import new_key
from subscriptions.models.subscription import Mode
from tests.bench import bare_mailbox
from tests.bench.children import measured
from tests.bench.clients import MailboxPlan
from tests.bench.drained import Drained
from tests.bench.message import BODY
from tests.support.databases import database_beside

# The most messages per transaction.
BATCH = 50_000

# The rows are as `accept.sql` leaves them.
_FILL = """
    WITH published AS (
        INSERT INTO delivery_message (event_type_id, headers, content_type, body)
        SELECT
            one.event_type_id, '{"content-type": "application/json"}', 'application/json', one.body
        FROM generate_series(1, %s), (SELECT %s::bigint AS event_type_id, %s::bytea AS body) AS one
        RETURNING id
    )
    INSERT INTO delivery_waiting (
        id, message_id, subscription_id, status, attempts, skipped, redelivery, reason,
        receive_count, expires_at
    )
    SELECT
        id << 20, id, %s, 'PENDING', 0, false, '', '', 0, clock_timestamp() + interval '4 days'
    FROM published
"""
# The table is a constant.
_FILL_BARE = (
    f"INSERT INTO {bare_mailbox.TABLE} (body) "  # noqa: S608
    "SELECT %s::bytea FROM generate_series(1, %s)"
)
_DELIVERED = """
    SELECT count(*) FROM delivery_settled
    WHERE status = 'DELIVERED' AND subscription_id = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailbox:
    """A mailbox in the database of the name, Django's own or a copy."""

    subscriber: str
    key: str
    event_type_id: int
    subscription_id: int
    database: str = ""

    def connect(self) -> psycopg.Connection:
        parameters = connection_parameters()
        return psycopg.connect(
            **parameters | {"dbname": self.database or parameters["dbname"]}, autocommit=True
        )

    def fill(self, messages: int) -> None:
        """Add so many messages."""
        with self.connect() as connection:
            for done in range(0, messages, BATCH):
                count = min(BATCH, messages - done)
                connection.execute(_FILL, (count, self.event_type_id, BODY, self.subscription_id))

    def vacuum_and_checkpoint(self) -> None:
        """Do autovacuum's work for a gradually filled mailbox, and leave no checkpoint to the
        measurement.
        """
        with self.connect() as connection:
            connection.execute(
                "VACUUM ANALYZE delivery_message, delivery_waiting, delivery_settled"
            )
            connection.execute("CHECKPOINT")

    def delivered(self) -> int:
        with self.connect() as connection:
            row = connection.execute(_DELIVERED, (self.subscription_id,)).fetchone()
        assert row is not None
        count: int = row[0]
        return count

    def drain(self, port: int, *, clients: int, batch: int, messages: int) -> Drained:
        """Fetch and acknowledge so many messages with clients of the web server at the port."""
        plan = MailboxPlan(
            port=port,
            mailbox=self.subscriber,
            key=self.key,
            clients=clients,
            batch=batch,
            messages=messages,
        )
        return measured("-m", "tests.bench.clients", json.dumps(asdict(plan)))


def make_mailbox(name: str) -> Mailbox:
    """Create a subscriber with a PULL subscription, and the key to fetch."""
    subscriber = Subscriber.objects.create(name=f"bench-{name}")
    event_type = EventType.objects.create(name=f"Bench.{name}")
    subscription = Subscription.objects.create(
        name="mailbox",
        subscriber=subscriber,
        event_type=event_type,
        policy=Policy.objects.get(name="teamforge"),
        mode=Mode.PULL,
    )
    key = new_key()
    row = ApiKey(scope=Scope.FETCH, subscriber=subscriber)
    row.set_key(key)
    row.save()
    return Mailbox(
        subscriber=subscriber.name,
        key=key,
        event_type_id=event_type.pk,
        subscription_id=subscription.pk,
    )


@contextmanager
def copied_database(name: str) -> Iterator[None]:
    """Copy the whole database; there may be no other connection to it."""
    connection.close()
    parameters = connection_parameters()
    with (
        psycopg.connect(**parameters | {"dbname": "postgres"}, autocommit=True) as other,
        database_beside(other, name, template=parameters["dbname"]),
    ):
        yield


def url_of_database(name: str) -> str:
    """Return the URL of another database of the same server."""
    url: str = urlsplit(settings.ENVIRONMENT.database_url)._replace(path=f"/{name}").geturl()
    return url


def fill_bare(messages: int) -> None:
    """Fill the bare loop's table again: the same bodies, and no more than it needs."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {bare_mailbox.TABLE}")
        cursor.execute(
            f"CREATE TABLE {bare_mailbox.TABLE} (id bigserial PRIMARY KEY, body bytea NOT NULL)"
        )
        cursor.execute(_FILL_BARE, [BODY, messages])
        cursor.execute(f"VACUUM ANALYZE {bare_mailbox.TABLE}")
        cursor.execute("CHECKPOINT")


def drain_bare(*, connections: int, batch: int) -> Drained:
    return measured("-m", "tests.bench.bare_mailbox", str(connections), str(batch))
