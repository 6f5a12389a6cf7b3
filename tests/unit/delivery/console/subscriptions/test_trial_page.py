"""A test message: sent like a message, with answer and journal entry, and not stored."""

import socket
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from standardwebhooks.webhooks import Webhook

from delivery.calls import slots, trial
from delivery.console.subscriptions import trial_page
from delivery.models import Attempt, Delivery, JournalEntry, JournalKind, Lane, Message, UrlHealth
from delivery.models.message import parse_public_id
from delivery.states import OutcomeClass
from subscriptions.models import EventType, Kind, Mode, Subscription, SubscriptionStatus
from tests.support import factories
from tests.support.receivers import Answer, Behaviour, Hold, Receiver, ReceiverEndpoint
from tests.support.receivers.behaviours import Drip
from tests.support.receivers.raw import raw_server


@pytest.fixture
def endpoint(receiver: Receiver) -> ReceiverEndpoint:
    return receiver.endpoint("tested")


@pytest.fixture
def subscription(db: None, endpoint: ReceiverEndpoint) -> Subscription:
    return factories.subscription(
        "orders",
        subscriber=factories.subscriber("crm"),
        event_type=factories.event_type("Order.Made", sample={"order": 7}),
        endpoint=endpoint.url,
        headers={"X-Tenant": "seven"},
        auth={"type": "bearer", "token": "hunter2"},
    )


def address(subscription: Subscription) -> str:
    return f"/admin/subscriptions/subscription/{subscription.pk}/test/"


def send(client: Client, subscription: Subscription, **typed: str) -> Any:
    form = {"content_type": "application/json", "body": '{"order": 7}'} | typed
    return client.post(address(subscription), form)


def test_the_form_begins_with_the_sample(ann: Client, subscription: Subscription) -> None:
    page = ann.get(address(subscription)).text
    assert "{\n  &quot;order&quot;: 7\n}" in page
    assert "hunter2" not in page


def test_a_test_message_looks_like_a_real_one_with_the_test_header(
    ann: Client, subscription: Subscription, endpoint: ReceiverEndpoint
) -> None:
    send(ann, subscription, body='{\r\n"order": 8}')
    (sent,) = endpoint.received
    headers = {name.lower(): value for name, value in sent.headers.items()}
    assert sent.body == b'{\n"order": 8}'
    assert headers["inturn-test"] == "true"
    assert (headers["inturn-event"], headers["inturn-attempt"], headers["inturn-delivery"]) == (
        "Order.Made",
        "1",
        "0",
    )
    assert (headers["x-tenant"], headers["authorization"]) == ("seven", "Bearer hunter2")
    assert headers["content-type"] == "application/json"
    Webhook(subscription.secrets.get().secret).verify(sent.body, headers)


def test_its_id_belongs_to_no_message(
    ann: Client, subscription: Subscription, endpoint: ReceiverEndpoint
) -> None:
    before = factories.message().pk
    send(ann, subscription)
    send(ann, subscription)
    ids = [parse_public_id(sent.headers["webhook-id"]) for sent in endpoint.received]
    assert [before, *ids, factories.message().pk] == list(range(before, before + 4))


def test_the_page_shows_status_time_headers_and_the_first_of_the_answer(
    ann: Client, subscription: Subscription, endpoint: ReceiverEndpoint
) -> None:
    endpoint.always(
        Answer(status=422, headers={"X-Trace": "t-1"}, body=b"<b>no</b>" + b"." * 10_000)
    )
    page = send(ann, subscription).text
    for said in ("422", "X-Trace", "t-1", "&lt;b&gt;no&lt;/b&gt;", "first 4.0", "X-Tenant"):
        assert said in page
    for unsaid in ("<b>no", "." * 4096, "hunter2", "seven<"):
        assert unsaid not in page


@pytest.mark.parametrize("status", SubscriptionStatus.values)
def test_only_the_journal_entry_is_stored(
    ann: Client, subscription: Subscription, endpoint: ReceiverEndpoint, status: str
) -> None:
    Subscription.objects.update(status=status)
    lanes = list(Lane.objects.order_by("pk").values())
    endpoint.always(Answer(status=503, body=b"busy"))
    send(ann, subscription)
    for model in (Message, Delivery, Attempt, UrlHealth):
        assert not model.objects.exists()
    assert list(Lane.objects.order_by("pk").values()) == lanes
    entry = JournalEntry.objects.get()
    assert (entry.kind, entry.actor, entry.subscription_id) == ("TESTED", "ann", subscription.pk)
    assert "was sent to crm/orders as a test message: 503, after" in entry.text


@pytest.mark.parametrize(
    ("kind", "outcome", "reason"),
    [
        (
            Kind.TOPIC,
            OutcomeClass.SUCCESS,
            "200: its answer is malformed: a body that ends early",
        ),
        (Kind.SYNC, OutcomeClass.UNREACHABLE, "200: its answer broke off"),
    ],
    ids=["TOPIC", "SYNC"],
)
def test_its_outcome_is_that_of_a_message_of_the_kind(
    ann: Client, subscription: Subscription, kind: Kind, outcome: OutcomeClass, reason: str
) -> None:
    def talk(connection: socket.socket) -> None:
        request = b""
        while not request.endswith(b'{"order": 7}'):
            request += connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart")

    EventType.objects.update(kind=kind)
    with raw_server(talk) as port:
        Subscription.objects.update(endpoint=f"http://127.0.0.1:{port}/")
        shown = send(ann, subscription).context["shown"]
    assert (shown.outcome.outcome, shown.outcome.reason) == (outcome, reason)
    assert bytes(shown.tested.called.outcome.excerpt) == b"part"


def test_the_journal_has_it_before_the_answer(
    ann: Client, subscription: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(_: object) -> None:
        raise SystemExit

    monkeypatch.setattr(trial, "call_as_sender", crash)
    with pytest.raises(SystemExit):
        send(ann, subscription)
    assert JournalEntry.objects.get().text.endswith("as a test message; no answer is recorded.")


def test_an_address_that_is_not_allowed_is_not_called(
    ann: Client, subscription: Subscription
) -> None:
    Subscription.objects.update(endpoint="http://10.0.0.1/hook")
    page = send(ann, subscription).text
    assert "The address 10.0.0.1 is refused" in page
    assert "10.0.0.1 is refused" in JournalEntry.objects.get().text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "behaviour", "words"),
    [
        (Kind.TOPIC, Hold(), "no answer within 3 s"),
        (Kind.SYNC, Drip(), "no whole answer within 3 s"),
    ],
    ids=["TOPIC", "SYNC"],
)
def test_a_hanging_endpoint_times_out(
    ann: Client,
    subscription: Subscription,
    endpoint: ReceiverEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    kind: Kind,
    behaviour: Behaviour,
    words: str,
) -> None:
    # Long enough for the answer to begin, however busy the machine is.
    monkeypatch.setattr(trial, "LONGEST_WAIT_SECONDS", 3.0)
    EventType.objects.update(kind=kind)
    endpoint.always(behaviour)
    assert words in send(ann, subscription).text


def test_the_number_of_simultaneous_tests_is_limited(
    ann: Client, subscription: Subscription, endpoint: ReceiverEndpoint
) -> None:
    turns = slots.slots_of("test", settings.ENVIRONMENT.web_threads // 8)
    taken = 0
    while turns.acquire(blocking=False):
        taken += 1
    try:
        assert "other test messages are being sent" in send(ann, subscription).text
    finally:
        turns.release(taken)
    assert not endpoint.received
    assert not JournalEntry.objects.exists()


def test_a_subscription_deleted_meanwhile_is_reported(
    ann: Client,
    subscription: Subscription,
    endpoint: ReceiverEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deleted_first(*asked: Any, **more: Any) -> trial.Tested:
        Subscription.objects.get(pk=subscription.pk).delete()
        return trial.send_test(*asked, **more)

    monkeypatch.setattr(trial_page, "send_test", deleted_first)
    form = {"content_type": "application/json", "body": "{}"}
    page = ann.post(address(subscription), form, follow=True)
    assert page.status_code == 200
    assert "Nothing was sent: the subscription has just been deleted." in page.text
    assert not endpoint.received
    assert not JournalEntry.objects.filter(kind=JournalKind.TESTED).exists()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"content_type": "no type"}, "media type"),
        ({"content_type": "a/b\r\nX: 1"}, "media type"),
        ({"body": "x" * (1024 * 1024 + 1)}, "The body is longer than"),
    ],
)
def test_an_unsendable_body_is_refused_at_its_field(
    ann: Client,
    subscription: Subscription,
    endpoint: ReceiverEndpoint,
    typed: dict[str, str],
    said: str,
) -> None:
    assert said in send(ann, subscription, **typed).text
    assert not endpoint.received


def test_a_mailbox_is_fetched_from_instead(ann: Client, db: None) -> None:
    pulled = factories.subscription(mode=Mode.PULL)
    assert "its page shows how to fetch" in ann.get(address(pulled), follow=True).text
    page = ann.get(f"/admin/subscriptions/subscription/{pulled.pk}/").text
    assert "Send test message" not in page


def test_testing_needs_the_right_to_change_subscriptions(
    reader: Client, subscription: Subscription
) -> None:
    assert reader.get(address(subscription)).status_code == 403
    assert send(reader, subscription).status_code == 403
    page = reader.get(f"/admin/subscriptions/subscription/{subscription.pk}/").text
    assert address(subscription) not in page
