"""The rows of the benchmark's database: subscribers, their lanes and a backlog."""

from dataclasses import dataclass

from django.db import connection

from delivery.models import Delivery, Lane, LaneKind, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import (
    ApiKey,
    EventType,
    Kind,
    Policy,
    Publisher,
    Scope,
    SigningSecret,
    Subscriber,
    Subscription,
    SubscriptionStatus,
)
from subscriptions.models.api_key import new_key
from tests.bench.message import BODY
from tests.bench.receiver import UNORDERED

HEALTHY, HANGING = "healthy", "hanging"
# The most deliveries per transaction of the backlog.
BATCH = 20_000
# Lanes catch up to their backlog's end, and no backlog of a benchmark ends here.
NEVER_CAUGHT_UP = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSetup:
    """A scenario's subscribers and event type: each message goes to so many `lanes`."""

    event_type: EventType
    publisher: Publisher
    lanes: int
    hanging: int = 0

    def let_in(self, *, hanging: bool) -> None:
        """Make the subscriptions ACTIVE, the hanging subscriptions only if `hanging`."""
        names = [HEALTHY, HANGING] if hanging else [HEALTHY]
        self.event_type.subscriptions.filter(name__in=names).update(
            status=SubscriptionStatus.ACTIVE
        )

    def keep_pace(self, rate: float) -> None:
        """Let each lane begin at most about so many deliveries per second, as after a release.

        The lanes' rates differ by up to a tenth: with the same rate all lanes would send at the
        same moments, and share their commits as lanes in use do not.
        """
        lanes = Lane.objects.filter(subscriber__subscriptions__event_type=self.event_type)
        for place, lane in enumerate(lanes.order_by("pk")):
            lane.catch_up_rate = rate * (0.9 + 0.2 * (place + 0.5) / self.lanes)
            lane.catch_up_to = NEVER_CAUGHT_UP
            lane.save(update_fields=["catch_up_rate", "catch_up_to"])

    def hold(self) -> None:
        """Make all subscriptions INACTIVE: their backlog stays."""
        self.event_type.subscriptions.update(status=SubscriptionStatus.INACTIVE)

    def gather(self) -> None:
        """Make all subscriptions HELD: their messages wait until they are ACTIVE."""
        self.event_type.subscriptions.update(status=SubscriptionStatus.HELD)

    def make_key(self) -> str:
        """Create a key with which to publish."""
        row = ApiKey(scope=Scope.PUBLISH, publisher=self.publisher)
        key = new_key()
        row.set_key(key)
        row.save()
        return key

    def publish(self, messages: int) -> None:
        """Write the backlog: so many messages, each to every ACTIVE subscription."""
        draft = Draft(
            event_type=self.event_type,
            headers={"content-type": "application/json"},
            body=BODY,
            content_type="application/json",
        )
        batch = max(1, BATCH // (self.lanes + self.hanging))
        for done in range(0, messages, batch):
            publish(self.publisher, [draft] * min(batch, messages - done))
        analyze()


def make_cast(
    name: str, *, url: str, lanes: int, hanging: int = 0, timeout_seconds: int = 30
) -> BenchSetup:
    """Create an event type with so many subscribers with a subscription each."""
    event_type = EventType.objects.create(name=f"Bench.{name}")
    publisher, _ = Publisher.objects.get_or_create(name="bench")
    policy = Policy.objects.get(name="teamforge")
    subscribers = Subscriber.objects.bulk_create(
        Subscriber(name=f"bench-{name}-{number}") for number in range(lanes + hanging)
    )
    Lane.objects.bulk_create(
        Lane(kind=LaneKind.TOPIC, subscriber=subscriber) for subscriber in subscribers
    )
    subscriptions = Subscription.objects.bulk_create(
        Subscription(
            name=HANGING if number >= lanes else HEALTHY,
            subscriber=subscriber,
            event_type=event_type,
            policy=policy,
            endpoint=f"{url}/{'hang' if number >= lanes else 'lane'}/{subscriber.pk}",
            timeout_seconds=timeout_seconds,
            status=SubscriptionStatus.INACTIVE,
        )
        for number, subscriber in enumerate(subscribers)
    )
    SigningSecret.objects.bulk_create(
        SigningSecret(subscription=subscription) for subscription in subscriptions
    )
    return BenchSetup(event_type=event_type, publisher=publisher, lanes=lanes, hanging=hanging)


def make_queue_cast(name: str, *, url: str, endpoints: int) -> BenchSetup:
    """Create a QUEUE event type with a group of endpoints; the receiver sees a single endpoint."""
    event_type = EventType.objects.create(name=f"Bench.{name}", kind=Kind.QUEUE)
    publisher, _ = Publisher.objects.get_or_create(name="bench")
    policy = Policy.objects.get(name="teamforge")
    for number in range(endpoints):
        subscription = Subscription.objects.create(
            name=HEALTHY,
            subscriber=Subscriber.objects.create(name=f"bench-{name}-{number}"),
            event_type=event_type,
            policy=policy,
            endpoint=f"{url}{UNORDERED}{event_type.pk}?{number}",
            status=SubscriptionStatus.INACTIVE,
        )
        SigningSecret.objects.create(subscription=subscription)
    return BenchSetup(event_type=event_type, publisher=publisher, lanes=1)


@dataclass(frozen=True, slots=True)
class WaitingDeliveries:
    """Deliveries in the retry lane not due during the measurement."""

    subscription: Subscription
    count: int

    def fill(self) -> None:
        """Fill the retry lane with messages tried once, as a sender leaves them."""
        with connection.cursor() as cursor:
            cursor.execute(
                _FILL, [self.count, self.subscription.event_type_id, BODY, self.subscription.pk]
            )


_FILL = """
    WITH failed AS (
        INSERT INTO delivery_message (event_type_id, headers, content_type, body)
        SELECT one.event_type_id, '{}', 'application/json', one.body
        FROM generate_series(1, %s), (SELECT %s::bigint AS event_type_id, %s::bytea AS body) AS one
        RETURNING id
    ), waiting AS (
        INSERT INTO delivery_waiting (
            id, message_id, subscription_id, lane_id, status, attempts, skipped, redelivery, reason,
            receive_count, next_attempt_at
        )
        SELECT
            failed.id << 20, failed.id, %s, lane.id, 'PENDING', 1, true, '', '503', 0,
            now() + interval '1 hour' + failed.id %% 1000 * interval '1 second'
        FROM failed, delivery_lane lane
        WHERE lane.kind = 'RETRY'
        RETURNING id
    )
    INSERT INTO delivery_loggedattempt (
        delivery_id, number, started_at, duration_ms, outcome, status_code, error, excerpt
    )
    SELECT id, 1, now(), 1, 'UNAVAILABLE', 503, '', '' FROM waiting
"""


def make_waiting(name: str, *, url: str, count: int) -> WaitingDeliveries:
    """Create the subscription whose deliveries wait."""
    subscription = Subscription.objects.create(
        name=HEALTHY,
        subscriber=Subscriber.objects.create(name=f"bench-{name}"),
        event_type=EventType.objects.create(name=f"Bench.{name}"),
        policy=Policy.objects.get(name="workfront-2017"),
        endpoint=f"{url}/lane/waiting",
    )
    return WaitingDeliveries(subscription, count)


def analyze() -> None:
    """Collect the statistics of a database in use."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def clear() -> None:
    """Delete all messages, and reset the lanes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE delivery_loggedattempt, delivery_delivery, delivery_message, "
            "delivery_idempotencykey, delivery_journalentry, delivery_callback, "
            "delivery_failurenotice, delivery_dedupkey, delivery_scriptoutput"
        )
        # Before the backlog, not after it: in normal use messages are written and settled within a
        # checkpoint.
        cursor.execute("CHECKPOINT")
    Lane.objects.update(
        state="IDLE",
        reason="",
        delivery_id=None,
        failures=0,
        next_try_at=None,
        run_ids=[],
        run_attempts=[],
        catch_up_rate=None,
        catch_up_to=None,
    )


def senders() -> int:
    """Return the number of running senders."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'inturn sender %'"
        )
        (count,) = cursor.fetchone() or (0,)
    return int(count)


def written() -> tuple[int, int]:
    """Return the bytes of WAL so far, and the flushes: sessions report them within a second."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint, sum(fsyncs)::bigint"
            " FROM pg_stat_io WHERE object = 'wal'"
        )
        wal, flushes = cursor.fetchone() or (0, 0)
    return int(wal), int(flushes)


def lost_attempts() -> int:
    """Return the number of attempts left without an outcome by a crash, as recorded."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM delivery_loggedattempt WHERE outcome = 'LOST'")
        (count,) = cursor.fetchone() or (0,)
    return int(count)


def delivered() -> int:
    return Delivery.objects.filter(status=Status.DELIVERED).count()
