"""Batches on the short way: one transaction, one answer per item, and no effect on other posts."""

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from django.conf import settings

from delivery.database.connections import connection_parameters
from delivery.incoming import rate_limit
from delivery.incoming.short_way import posts
from delivery.models import Delivery, Message
from delivery.models.message import parse_public_id
from subscriptions.models import EventType
from tests.support import factories
from tests.support.read_only_database import set_read_only
from tests.unit.delivery.incoming.short_way.posting import (
    JSON,
    PostAnswer,
    Posting,
    environ_of_batch,
    with_intake,
)
from tests.unit.delivery.incoming.short_way.test_intake import end_committers, end_those_that_wait
from tests.unit.delivery.senders.running import elsewhere

pytestmark = pytest.mark.django_db(transaction=True)

ITEM = {"event": "Build.Done", "body": {"is": "green"}}
BAD = {"event": "Build.Done", "body": {}, "headers": {"Content-Type": "text/plain"}}


def keyed(*keys: str, body: Any = "keyed") -> list[dict[str, Any]]:
    return [ITEM | {"body": body, "idempotency_key": key} for key in keys]


def ids_of(answer: PostAnswer) -> list[int]:
    found = [parse_public_id(result["id"]) for result in answer.content["results"]]
    return [id for id in found if id is not None]


@pytest.mark.parametrize("query", ["", "partial=true"])
def test_a_plain_batch_is_one_transaction_in_its_order(
    key: str, wanted: EventType, query: str
) -> None:
    items = [ITEM | {"body": number} for number in range(20)] + keyed("1", "2")

    async def scenario(posting: Posting) -> None:
        answer = await posting.batch(items, key=key, query=query)
        assert (answer.status, answer.is_short) == (202, True)
        assert ids_of(answer) == await elsewhere(_ids)

    with_intake(scenario)
    assert [bytes(message.body) for message in Message.objects.order_by("id")[:20]] == [
        b"%d" % number for number in range(20)
    ]
    assert Delivery.objects.count() == 44
    assert len(set(Message.objects.values_list("transaction_id", flat=True))) == 1


def _ids() -> list[int]:
    return list(Message.objects.order_by("id").values_list("id", flat=True))


def test_lines_are_plain_as_well(key: str, wanted: EventType) -> None:
    body = b'{"event": "Build.Done", "body": { "n" :1.0}}\n\n{"event": "Build.Done", "body": 2}\n'

    async def scenario(posting: Posting) -> None:
        environ = environ_of_batch(body, key=key, content_type="application/x-ndjson")
        answer = await posting.answer(environ, body)
        assert (answer.status, answer.is_short) == (202, True)

    with_intake(scenario)
    assert [bytes(message.body) for message in Message.objects.order_by("id")] == [
        b'{ "n" :1.0}',
        b"2",
    ]


def test_under_partial_a_bad_item_fails_alone(key: str, wanted: EventType) -> None:
    async def scenario(posting: Posting) -> None:
        answer = await posting.batch([ITEM, BAD, ITEM], key=key, query="partial=true")
        assert (answer.status, answer.is_short) == (202, True)
        first, bad, last = answer.content["results"]
        assert (first["deliveries"], bad["error"]["status"], last["deliveries"]) == (2, 415, 2)

    with_intake(scenario)
    assert Message.objects.count() == 2


def test_a_bad_item_fails_its_batch_and_no_neighbour(key: str, wanted: EventType) -> None:
    async def scenario(posting: Posting) -> None:
        failed, *others = await asyncio.gather(
            posting.batch([ITEM, BAD, ITEM], key=key),
            posting.batch([ITEM, ITEM], key=key),
            posting.post(wanted.name, key=key, headers=JSON),
        )
        assert (failed.status, failed.content["index"], failed.is_short) == (415, 1, False)
        assert [(answer.status, answer.is_short) for answer in others] == [(202, True)] * 2

    with_intake(scenario)
    assert Message.objects.count() == 3


def test_a_repeated_batch_gets_the_first_answers(key: str, wanted: EventType) -> None:
    async def scenario(posting: Posting) -> None:
        first = await posting.batch(keyed("1", "2"), key=key)
        again, more, neighbour = await asyncio.gather(
            posting.batch(keyed("1", "2"), key=key),
            posting.batch(keyed("2", "3"), key=key),
            posting.batch(keyed("4", "5"), key=key),
        )
        assert again.content == first.content
        assert ids_of(more)[0] == ids_of(first)[1]
        assert (first.is_short, again.is_short, more.is_short, neighbour.is_short) == (
            True,
            False,
            False,
            True,
        )

    with_intake(scenario)
    assert Message.objects.count() == 5


def test_a_conflict_rolls_its_batch_back(key: str, wanted: EventType) -> None:
    async def scenario(posting: Posting) -> None:
        await posting.batch(keyed("1"), key=key)
        conflict, neighbour = await asyncio.gather(
            posting.batch(keyed("0", "1", "2", body="another"), key=key),
            posting.batch([ITEM], key=key),
        )
        assert (conflict.status, conflict.content["index"]) == (409, 1)
        assert (neighbour.status, neighbour.is_short) == (202, True)
        # The keys were released.
        assert (await posting.batch(keyed("0", "2", body="another"), key=key)).is_short

    with_intake(scenario)
    assert Message.objects.count() == 4


def test_a_locked_row_holds_up_no_other_batch(key: str, wanted: EventType) -> None:
    factories.event_type("Another")
    another = [{"event": "Another", "body": 1}] * 3

    async def scenario(posting: Posting) -> None:
        await posting.batch([ITEM], key=key)
        with psycopg.connect(**connection_parameters()) as holding:
            holding.execute(
                "SELECT FROM subscriptions_eventtype WHERE id = %s FOR UPDATE", [wanted.pk]
            )
            held = asyncio.create_task(posting.batch([ITEM] * 2, key=key))
            others = await asyncio.gather(*(posting.batch(another, key=key) for _ in range(4)))
            assert [answer.status for answer in others] == [202] * 4
            assert not held.done()
        assert (await held).status == 202

    with_intake(scenario)
    assert Message.objects.count() == 15


@pytest.mark.parametrize("items", [[ITEM] * 3, keyed("1", "2", "3")], ids=["no keys", "keys"])
def test_a_connection_that_breaks_on_the_way_leaves_no_half_batch(
    key: str, wanted: EventType, items: Sequence[Any]
) -> None:
    async def scenario(posting: Posting) -> None:
        await posting.batch([ITEM], key=key)
        with psycopg.connect(**connection_parameters()) as holding:
            holding.execute(
                "SELECT FROM subscriptions_eventtype WHERE id = %s FOR UPDATE", [wanted.pk]
            )
            broken = asyncio.create_task(posting.batch(items, key=key))
            while not await elsewhere(end_those_that_wait):
                assert not broken.done()
            answer = await broken
        assert (answer.status, answer.content["type"]) == (503, "urn:inturn:problem:database-away")
        assert await elsewhere(Message.objects.count) == 1
        again = await posting.batch(items, key=key)
        assert (again.status, again.is_short) == (202, True)

    with_intake(scenario)
    assert Message.objects.count() == 4


def test_a_read_only_database_stores_nothing(key: str, wanted: EventType) -> None:
    async def scenario(posting: Posting) -> None:
        assert (await posting.batch([ITEM], key=key)).is_short
        await elsewhere(set_read_only, "on")
        try:
            await elsewhere(end_committers)
            refused = await posting.batch(keyed("2", "3"), key=key)
        finally:
            await elsewhere(set_read_only, "off")
        assert (refused.status, "Retry-After" in refused.headers) == (503, True)
        assert (await posting.batch(keyed("2", "3"), key=key)).is_short

    with_intake(scenario)
    assert Message.objects.count() == 3


def test_a_change_counts_for_the_next_batch(key: str, wanted: EventType) -> None:
    async def scenario(posting: Posting) -> None:
        assert (await posting.batch([ITEM, BAD], key=key, query="partial=true")).is_short
        await elsewhere(
            lambda: EventType.objects.filter(pk=wanted.pk).update(content_type="text/plain")
        )
        after = await posting.batch([ITEM, BAD], key=key, query="partial=true")
        assert [result["deliveries"] for result in after.content["results"]] == [2, 2]

    with_intake(scenario)


def test_a_batch_that_is_left_to_the_view_is_counted_once(
    key: str, wanted: EventType, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = dataclasses.replace(settings.ENVIRONMENT, publish_rate_limit="6/h")
    monkeypatch.setattr(settings, "ENVIRONMENT", limited)
    rate_limit.bucket_of.cache_clear()

    async def scenario(posting: Posting) -> None:
        for _ in range(3):
            assert (await posting.batch(keyed("1", "2"), key=key)).status == 202
        refused = await posting.batch(keyed("1", "2"), key=key)
        assert (refused.status, "Retry-After" in refused.headers) == (429, True)

    with_intake(scenario)
    rate_limit.bucket_of.cache_clear()


def test_a_full_queue_refuses_with_retry_after(
    key: str, wanted: EventType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posts, "MOST_MESSAGES_WAITING", 0)

    async def scenario(posting: Posting) -> None:
        for answer in await asyncio.gather(
            posting.batch([ITEM], key=key), posting.post(wanted.name, key=key, headers=JSON)
        ):
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
            assert answer.content["type"] == "urn:inturn:problem:too-many-posts"

    with_intake(scenario)
    assert not Message.objects.exists()
