"""Publishing in the console: the form, its checks, the trace, the journal."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from delivery.models import BuiltInReceiver, JournalEntry, JournalKind, Message
from delivery.receivers.stored_requests import url_of
from delivery.states import Status
from subscriptions.models import EventType, Publisher
from tests.support import factories
from tests.support.receivers import Receiver
from tests.unit.delivery.console.refreshing import refresh


@pytest.fixture
def event_type(db: None) -> EventType:
    return factories.event_type("Order.Made", sample={"order": 7})


@pytest.fixture
def publisher(event_type: EventType) -> Publisher:
    return factories.publisher("shop")


def address(event_type: EventType) -> str:
    return f"/admin/subscriptions/eventtype/{event_type.pk}/publish/"


def once_of(page: str) -> str:
    found = re.search(r'name="once" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def publish(client: Client, event_type: EventType, publisher: Publisher, **typed: str) -> Any:
    form = {
        "publisher": str(publisher.pk),
        "content_type": "application/json",
        "body": '{"order": 8}',
        "once": once_of(client.get(address(event_type)).text),
    }
    return client.post(address(event_type), form | typed)


def test_the_form_begins_with_the_sample(
    ann: Client, event_type: EventType, publisher: Publisher
) -> None:
    page = ann.get(address(event_type)).text
    assert "{\n  &quot;order&quot;: 7\n}" in page
    assert "shop" in page
    assert (
        address(event_type)
        in ann.get(f"/admin/subscriptions/eventtype/{event_type.pk}/change/").text
    )


def test_a_message_is_published_and_journaled(
    ann: Client, event_type: EventType, publisher: Publisher
) -> None:
    subscription = factories.subscription(event_type=event_type)
    answer = publish(
        ann, event_type, publisher, body='{\r\n"order": 8}', headers="FILTER_STRING: big\nX-A: b"
    )
    message = Message.objects.get()
    assert answer.headers["Location"] == f"{address(event_type)}?message={message.public_id}"
    assert (bytes(message.body), message.publisher) == (b'{\n"order": 8}', publisher)
    assert message.headers == {
        "content-type": "application/json",
        "filter-string": "big",
        "x-a": "b",
    }
    entry = JournalEntry.objects.get(kind=JournalKind.PUBLISHED)
    assert (entry.actor, entry.message_id) == ("ann", message.pk)
    page = ann.get(answer.headers["Location"]).text
    assert message.public_id in page
    assert str(subscription) in page
    assert 'id="trace"' in page


def test_a_form_that_is_sent_twice_publishes_once(
    ann: Client, event_type: EventType, publisher: Publisher
) -> None:
    once = once_of(ann.get(address(event_type)).text)
    first, second = (publish(ann, event_type, publisher, once=once) for _ in range(2))
    assert first.headers["Location"] == second.headers["Location"]
    assert Message.objects.count() == 1
    assert "use a new key" in publish(ann, event_type, publisher, once=once, body="{}").text


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"body": "{"}, "The body is not JSON"),
        ({"body": '{"order": "x"}'}, "does not satisfy the event type&#x27;s schema at"),
        ({"content_type": "text/plain"}, "are JSON: write application/json"),
        ({"content_type": "json"}, "Give a media type"),
        ({"headers": "no colon"}, "is not a header"),
        ({"headers": "Authorization: Bearer x"}, "is not stored with a message"),
        ({"headers": "Idempotency-Key: x"}, "is not stored with a message"),
        ({"headers": "Destination: nobody"}, "nobody"),
        ({"once": "guessed"}, "Open this page again"),
    ],
)
def test_what_rest_would_refuse_is_refused(
    ann: Client, event_type: EventType, publisher: Publisher, typed: dict[str, str], said: str
) -> None:
    EventType.objects.update(
        json_schema={"type": "object", "properties": {"order": {"type": "integer"}}}
    )
    answer = publish(ann, event_type, publisher, **typed)
    assert answer.status_code == 200
    assert said in answer.text
    assert not Message.objects.exists()
    assert not JournalEntry.objects.exists()


def test_only_publishers_that_may_are_offered(ann: Client, event_type: EventType) -> None:
    other = factories.publisher("other", all_event_types=False)
    assert "No publisher may publish it" in ann.get(address(event_type)).text
    factories.publisher("shop")
    refused = publish(ann, event_type, other)
    assert "Select a valid choice" in refused.text
    other.event_types.add(event_type)
    assert publish(ann, event_type, other).status_code == 302


def test_own_event_types_are_not_published_by_people(ann: Client, db: None) -> None:
    own = factories.event_type("Inturn.Mine")
    assert ann.get(address(own)).status_code == 404


def test_a_sync_message_is_answered_at_once(
    ann: Client, publisher: Publisher, receiver: Receiver
) -> None:
    endpoint = receiver.endpoint("sync")
    event_type = factories.event_type("Order.Checked", kind="SYNC")
    factories.subscription(event_type=event_type, endpoint=endpoint.url)
    answer = publish(ann, event_type, publisher)
    assert [request.body for request in endpoint.received] == [b'{"order": 8}']
    assert "DELIVERED" in ann.get(answer.headers["Location"]).text


def test_the_trace_polls_until_all_is_settled(ann: Client, event_type: EventType) -> None:
    message = factories.message(event_type=event_type)
    page = f"{address(event_type)}?message={message.public_id}"
    assert "no subscription matched" in refresh(ann, page, "trace").text
    delivery = factories.delivery(message=message, subscription=factories.subscription())
    shown = refresh(ann, page, "trace").text
    assert "Publish another" not in shown
    assert 'hx-trigger="every 1s"' in shown
    assert "PENDING" in shown
    delivery.delete()
    factories.delivery(Status.DELIVERED, message=message, subscription=factories.subscription())
    shown = refresh(ann, page, "trace").text
    assert "Publish another" not in shown
    assert "hx-trigger" not in shown
    assert "DELIVERED" in shown


def test_the_trace_leads_to_a_built_in_receiver(ann: Client, event_type: EventType) -> None:
    receiver = BuiltInReceiver.objects.create(name="example")
    message = factories.message(event_type=event_type)
    for endpoint in (url_of(receiver), "https://other.example/receiver/x"):
        factories.delivery(message=message, subscription=factories.subscription(endpoint=endpoint))
    page = ann.get(address(event_type), {"message": message.public_id}).text
    assert page.count("See") == 1
    assert f"/admin/delivery/builtinreceiver/{receiver.pk}/" in page


def test_a_message_of_another_event_type_has_no_trace_here(
    ann: Client, event_type: EventType
) -> None:
    other = factories.message()
    page = ann.get(address(event_type), {"message": other.public_id})
    assert page.status_code == 404


def test_support_and_auditors_may_not_publish(event_type: EventType, publisher: Publisher) -> None:
    for role in ("Support", "Auditors"):
        user = User.objects.create_user(role, is_staff=True)
        user.groups.add(Group.objects.get(name=role))
        client = Client()
        client.force_login(user)
        assert client.get(address(event_type)).status_code == 403
        page = client.get(f"/admin/subscriptions/eventtype/{event_type.pk}/change/").text
        assert address(event_type) not in page
