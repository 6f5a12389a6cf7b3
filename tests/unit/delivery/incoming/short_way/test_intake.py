"""Posts on the short way are stored and answered as if each had been alone with its view."""

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from delivery.database.connections import CHANNEL, connection_parameters
from delivery.lifecycle import notifier
from delivery.models import Delivery, IdempotencyKey, Message
from delivery.models.message import parse_public_id
from delivery.senders.notifications import notification_of
from subscriptions.models import (
    EventType,
    Kind,
    Mode,
    Scope,
    Subscription,
)
from tests.support import factories
from tests.support.read_only_database import set_read_only
from tests.unit.delivery.incoming.short_way.posting import (
    JSON,
    PostAnswer,
    Posting,
    by_view,
    environ_of,
    stored,
    with_intake,
)
from tests.unit.delivery.senders.running import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


def id_of(answer: PostAnswer) -> int:
    message_id = parse_public_id(answer.content["id"])
    assert message_id is not None
    return message_id


PLAIN: dict[str, tuple[bytes, Mapping[str, str]]] = {
    "json": (b'{"is": "green"}', JSON),
    "matches a filter": (b'{"is": "red"}', JSON),
    "matches a header string": (b"{}", JSON | {"FILTER_STRING": "proj1008"}),
    "bytes": (b'{"is": 1.50, "t": "\xc3\xbc\\u00fc"}', JSON),
    "no content type": (b"{}", {}),
    "curl's content type": (b"{}", {"Content-Type": "application/x-www-form-urlencoded"}),
    "headers": (b"[]", JSON | {"X-Priority": "low", "Cookie": "a=b", "Connection": "close"}),
}


@pytest.mark.parametrize("kind", [Kind.TOPIC, Kind.QUEUE])
def test_messages_of_a_group_are_stored_like_single_ones(
    key: str, wanted: EventType, kind: Kind
) -> None:
    EventType.objects.filter(pk=wanted.pk).update(kind=kind)
    Subscription.objects.filter(mode=Mode.PULL).delete()
    nobodys = factories.event_type("Nobody.Cares")

    async def scenario(posting: Posting) -> None:
        posts = [(wanted.name, *plain) for plain in PLAIN.values()] + [(nobodys.name, b"{}", JSON)]
        grouped = await asyncio.gather(
            *(posting.post(name, body, key=key, headers=headers) for name, body, headers in posts)
        )
        for (name, body, headers), answer in zip(posts, grouped, strict=True):
            environ = environ_of(name, body, key=key, headers=headers)
            alone = await elsewhere(by_view, environ, body)
            assert answer.is_short
            assert (answer.status, answer.content["deliveries"]) == (
                alone.status,
                alone.content["deliveries"],
            )
            alike = {
                name: value for name, value in alone.headers.items() if name != "Content-Length"
            }
            assert dict(answer.headers) == alike
            assert await elsewhere(stored, answer.content["id"]) == await elsewhere(
                stored, alone.content["id"]
            )

    with_intake(scenario)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", JSON | {"X-Bell": "\x07"}, 400),
        (b"{}", JSON | {"Idempotency-Key": "\xfc"}, 400),
        (b"{}", JSON | {"Destination": "nobody"}, 404),
        (b"{}", JSON | {"Host": "somebody.else"}, 400),
    ],
)
def test_refusals_are_the_views(
    key: str, wanted: EventType, body: bytes, headers: Mapping[str, str], status: int
) -> None:
    async def scenario(posting: Posting) -> None:
        refused, *accepted = await asyncio.gather(
            posting.post(wanted.name, body, key=key, headers=headers),
            *(posting.post(wanted.name, key=key, headers=JSON) for _ in range(5)),
        )
        assert (refused.status, refused.is_short) == (status, False)
        assert [(answer.status, answer.is_short) for answer in accepted] == [(202, True)] * 5

    with_intake(scenario)


def test_a_key_is_answered_once(key: str, wanted: EventType) -> None:
    async def scenario(posting: Posting) -> None:
        def post(of: str, body: bytes = b"{}") -> Coroutine[Any, Any, PostAnswer]:
            return posting.post(wanted.name, body, key=key, headers=JSON | {"Idempotency-Key": of})

        first, again, other = await asyncio.gather(post("1"), post("1"), post("2"))
        assert (first.is_short, again.is_short, other.is_short) == (True, False, True)
        assert first.content == again.content == (await post("1")).content != other.content
        assert (await post("1", b"[]")).status == 409
        await elsewhere(_let_keys_expire)
        assert (await post("1", b"[]")).is_short

    with_intake(scenario)
    assert Message.objects.count() == 3
    assert Delivery.objects.count() == 6


def test_senders_are_notified_once_of_a_post_that_is_alone(key: str, wanted: EventType) -> None:
    heard: list[str] = []

    async def scenario(posting: Posting) -> None:
        for _ in range(2):
            assert (await posting.post(wanted.name, key=key, headers=JSON)).is_short

    with psycopg.connect(**connection_parameters(), autocommit=True) as listening:
        listening.execute(f"LISTEN {CHANNEL}")
        with_intake(scenario)
        notifier.notify_of_work([0])
        for notification in listening.notifies(timeout=30):
            if notification.payload == "work 0":
                break
            heard.append(notification.payload)
    lanes = set(Delivery.objects.exclude(lane=None).values_list("lane_id", flat=True))
    assert [notification_of([payload]).lanes for payload in heard] == [lanes] * 2


def _let_keys_expire() -> None:
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=25))


def test_an_unauthorised_publisher_is_refused(wanted: EventType) -> None:
    limited = factories.publisher("limited", all_event_types=False)
    another = factories.event_type("Another")
    limited.event_types.add(another)
    key = factories.api_key(Scope.PUBLISH, publisher=limited)[1]
    reading = factories.api_key(Scope.READ)[1]

    async def scenario(posting: Posting) -> None:
        assert (await posting.post(another.name, key=key, headers=JSON)).is_short
        assert (await posting.post(wanted.name, key=key, headers=JSON)).status == 403
        assert (await posting.post(wanted.name, key=reading, headers=JSON)).status == 403
        assert (await posting.post(wanted.name, key="nobody's", headers=JSON)).status == 401
        assert (await posting.post("Nothing", key=key, headers=JSON)).status == 404

    with_intake(scenario)


def test_a_locked_row_delays_no_other_publishers_post(key: str, wanted: EventType) -> None:
    another = factories.event_type("Another")

    async def scenario(posting: Posting) -> None:
        await posting.post(wanted.name, key=key, headers=JSON)
        with psycopg.connect(**connection_parameters()) as holding:
            holding.execute(
                "SELECT FROM subscriptions_eventtype WHERE id = %s FOR UPDATE", [wanted.pk]
            )
            held = asyncio.create_task(posting.post(wanted.name, key=key, headers=JSON))
            others = await asyncio.gather(
                *(posting.post(another.name, key=key, headers=JSON) for _ in range(10))
            )
            assert [answer.status for answer in others] == [202] * 10
            assert not held.done()
        assert (await held).status == 202

    with_intake(scenario)
    assert Message.objects.count() == 12


def test_a_broken_connection_is_replaced(key: str, wanted: EventType) -> None:
    async def scenario(posting: Posting) -> None:
        assert (await posting.post(wanted.name, key=key, headers=JSON)).status == 202
        await elsewhere(end_committers)
        after = await posting.post(wanted.name, key=key, headers=JSON)
        assert (after.status, after.is_short) == (202, True)

    with_intake(scenario)


def test_a_connection_that_breaks_on_the_way_leaves_an_answer(key: str, wanted: EventType) -> None:
    """The publisher cannot know whether it was stored: here it was not."""

    async def scenario(posting: Posting) -> None:
        await posting.post(wanted.name, key=key, headers=JSON)
        with psycopg.connect(**connection_parameters()) as holding:
            holding.execute(
                "SELECT FROM subscriptions_eventtype WHERE id = %s FOR UPDATE", [wanted.pk]
            )
            broken = asyncio.create_task(posting.post(wanted.name, key=key, headers=JSON))
            while not await elsewhere(end_those_that_wait):
                assert not broken.done()
            answer = await broken
        assert (answer.status, answer.content["type"]) == (503, "urn:inturn:problem:database-away")
        assert (await posting.post(wanted.name, key=key, headers=JSON)).is_short

    with_intake(scenario)
    assert Message.objects.count() == 2


def end_committers() -> None:
    with connection.cursor() as cursor:
        # pg_stat_activity shows only the first lines.
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND datname = current_database() "
            "AND query LIKE '-- Stores messages with every delivery%%'"
        )
        row = cursor.fetchone()
    assert row != (0,)


def end_those_that_wait() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND usename = current_user "
            "AND wait_event_type = 'Lock'"
        )
        row = cursor.fetchone()
    return int(row[0])


def test_a_read_only_database_is_reported(key: str, wanted: EventType) -> None:
    async def scenario(posting: Posting) -> None:
        assert (await posting.post(wanted.name, key=key, headers=JSON)).is_short
        await elsewhere(set_read_only, "on")
        try:
            await elsewhere(end_committers)
            refused = await posting.post(wanted.name, key=key, headers=JSON)
        finally:
            await elsewhere(set_read_only, "off")
        assert (refused.status, refused.is_short) == (503, False)
        assert (await posting.post(wanted.name, key=key, headers=JSON)).is_short

    with_intake(scenario)


def test_answers_follow_each_other_in_the_order_of_ids(key: str, wanted: EventType) -> None:
    """A publisher that waits for its answers publishes in order, whatever others publish."""

    async def scenario(posting: Posting) -> None:
        async def one_after_the_other() -> list[int]:
            answers = [await posting.post(wanted.name, key=key, headers=JSON) for _ in range(20)]
            return [id_of(answer) for answer in answers]

        for ids in await asyncio.gather(*(one_after_the_other() for _ in range(8))):
            assert ids == sorted(ids)

    with_intake(scenario)
    assert Message.objects.count() == 160
    assert Delivery.objects.count() == 320
