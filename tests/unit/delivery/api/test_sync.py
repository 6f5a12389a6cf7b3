"""Publishing to a SYNC event type: the publisher's answer, and the stored rows."""

import pytest
from django.conf import settings
from django.db import connection

from delivery.calls import slots
from delivery.models import Attempt, Delivery, FailureNotice, JournalEntry, Message
from subscriptions.models import EventType, Kind, Subscription
from tests.support import factories
from tests.support.receivers import Answer, Behaviour, Close, Hold, Receiver, ReceiverEndpoint
from tests.unit.delivery.api.client import Caller, refused

EVENT = "Order.Presubmit"
BODY = b'{"number": 7}'


@pytest.fixture(autouse=True)
def event_type(db: None) -> EventType:
    return factories.event_type(EVENT, kind=Kind.SYNC)


@pytest.fixture
def rules(receiver: Receiver) -> ReceiverEndpoint:
    return receiver.endpoint("rules")


@pytest.fixture
def asked(event_type: EventType, rules: ReceiverEndpoint) -> Subscription:
    """The subscription that is called."""
    return factories.subscription("rules", event_type=event_type, endpoint=rules.url)


def stored() -> Delivery:
    return Delivery.objects.get()


@pytest.mark.parametrize(
    ("status", "settled"),
    [
        (200, "DELIVERED"),
        (201, "DELIVERED"),
        (302, "3xxNOTSUPPORTED"),
        (400, "REJECTED"),
        (404, "REJECTED"),
        (422, "REJECTED"),
        (429, "REJECTED"),
        (500, "FAILED"),
        (503, "FAILED"),
    ],
)
def test_status_and_body_and_content_type_are_the_endpoints(
    publishing: Caller, asked: Subscription, rules: ReceiverEndpoint, status: int, settled: str
) -> None:
    headers = {
        "Content-Type": "text/x-verdict",
        "Set-Cookie": "a=b",
        "Location": "/x",
        "X-Own": "1",
    }
    rules.always(Answer(status, headers=headers, body=b"no: too dear"))
    answer = publishing.publish(EVENT, BODY)
    assert (answer.status, answer.content, answer.content_type) == (
        status,
        b"no: too dear",
        "text/x-verdict",
    )
    assert not {"Set-Cookie", "Location", "X-Own"} & set(answer.headers)
    delivery = stored()
    assert answer.headers["inturn-message"] == f"msg_{delivery.message_id}"
    assert (delivery.status, delivery.subscription, delivery.lane) == (settled, asked, None)
    attempt = Attempt.objects.get()
    assert (attempt.number, attempt.status_code, bytes(attempt.excerpt)) == (
        1,
        status,
        b"no: too dear",
    )
    assert delivery.attempts == 1
    is_reported = FailureNotice.objects.filter(delivery_id=delivery.pk, number=1).exists()
    # A rule that says no has answered; 404 and 429 decide nothing about the message.
    assert is_reported == (settled != "DELIVERED" and status not in (400, 422))
    assert bytes(Message.objects.get().body) == BODY


def test_an_answer_without_a_content_type_is_handed_on_without(
    publishing: Caller, asked: Subscription, rules: ReceiverEndpoint
) -> None:
    rules.always(Answer(204))
    answer = publishing.publish(EVENT)
    assert (answer.status, answer.content) == (204, b"")


def test_without_a_qualifying_subscription_the_answer_is_200_and_empty(
    publishing: Caller, asked: Subscription
) -> None:
    text = "$$->'Body'->>'number' = '8'"
    Subscription.objects.update(filter=text, filter_identity=text)
    answer = publishing.publish(EVENT, BODY)
    assert (answer.status, answer.content, answer.content_type) == (200, b"", "")
    message = Message.objects.get()
    assert answer.headers["inturn-message"] == message.public_id
    assert JournalEntry.objects.get().kind == "UNMATCHED"
    assert not Delivery.objects.exists()


def test_the_first_subscription_by_position_is_called_and_the_journal_lists_all(
    publishing: Caller, event_type: EventType, rules: ReceiverEndpoint, receiver: Receiver
) -> None:
    number = "$$->'Body'->>'number'"
    for name, position, condition in [
        ("late", 2, "= '7'"),
        ("first", 1, "in ('7')"),
        ("next", 1, "is not null"),
    ]:
        url = receiver.endpoint(name).url
        factories.subscription(
            name,
            event_type=event_type,
            endpoint=url,
            position=position,
            filter=f"{number} {condition}",
            subscriber=factories.subscriber(f"team-{name}"),
        )
    assert publishing.publish(EVENT, BODY).status == 200
    assert [len(receiver.endpoint(name).received) for name in ("first", "next", "late")] == [
        1,
        0,
        0,
    ]
    entry = JournalEntry.objects.get()
    delivery = stored()
    assert (entry.kind, entry.message_id, entry.delivery_id) == (
        "AMBIGUOUS",
        delivery.message_id,
        delivery.pk,
    )
    assert entry.text == (
        f"Several subscriptions match msg_{delivery.message_id}; the first is called: "
        "team-first/first, team-next/next, team-late/late."
    )


def test_a_first_only_subscriber_is_no_exception(
    publishing: Caller, event_type: EventType, asked: Subscription, rules: ReceiverEndpoint
) -> None:
    asked.subscriber.match_mode = "FIRST"
    asked.subscriber.save()
    factories.subscription(
        event_type=event_type, subscriber=asked.subscriber, filter="$$->'Body' is not null"
    )
    publishing.publish(EVENT, BODY)
    assert JournalEntry.objects.get().kind == "AMBIGUOUS"


WITHOUT_ANSWER = [
    (Hold(), 504, "no-answer-in-time", "TIMEOUT"),
    (Close(), 502, "no-answer", "UNREACHABLE"),
]


@pytest.mark.parametrize(("behaviour", "status", "code", "outcome"), WITHOUT_ANSWER)
def test_a_missing_answer_is_a_problem(
    publishing: Caller,
    asked: Subscription,
    rules: ReceiverEndpoint,
    behaviour: Behaviour,
    status: int,
    code: str,
    outcome: str,
) -> None:
    Subscription.objects.update(timeout_seconds=1)
    rules.always(behaviour)
    answer = publishing.publish(EVENT, BODY)
    problem = refused(answer, status, code)
    delivery = stored()
    assert problem["message"] == answer.headers["inturn-message"] == f"msg_{delivery.message_id}"
    # The publisher does not learn the endpoint's address.
    assert "127.0.0.1" not in problem["detail"]
    assert delivery.status == "FAILED"
    assert Attempt.objects.get().outcome == outcome
    assert FailureNotice.objects.filter(delivery_id=delivery.pk).exists()


@pytest.mark.parametrize("behaviour", [Hold(), Close()])
def test_a_missing_answer_that_may_pass_is_200_and_empty(
    publishing: Caller, asked: Subscription, rules: ReceiverEndpoint, behaviour: Behaviour
) -> None:
    Subscription.objects.update(lets_pass_on_timeout=True, timeout_seconds=1)
    rules.always(behaviour)
    answer = publishing.publish(EVENT, BODY)
    assert (answer.status, answer.content) == (200, b"")
    assert stored().status == "FAILED"


def test_letting_pass_is_for_want_of_an_answer_and_not_for_a_bad_one(
    publishing: Caller, asked: Subscription, rules: ReceiverEndpoint
) -> None:
    Subscription.objects.update(lets_pass_on_timeout=True)
    rules.next(
        Answer(500, body=b"broken"), Answer(200, headers={"Content-Encoding": "br"}, body=b"?")
    )
    assert (publishing.publish(EVENT).status, publishing.publish(EVENT).status) == (500, 502)


def test_an_address_that_is_not_allowed_is_refused_when_it_is_called(
    publishing: Caller, asked: Subscription
) -> None:
    Subscription.objects.update(endpoint="http://169.254.169.254/latest/meta-data")
    refused(publishing.publish(EVENT), 502, "no-answer")
    assert Attempt.objects.get().outcome == "REFUSED_ADDRESS"
    assert "169.254.169.254" in stored().reason


def test_an_unreadable_secret_is_our_fault_and_calls_nobody(
    publishing: Caller, asked: Subscription, rules: ReceiverEndpoint
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE subscriptions_signingsecret SET secret = 'nonsense'")
    refused(publishing.publish(EVENT), 502, "no-answer")
    assert Attempt.objects.get().outcome == "UNSENDABLE"
    assert rules.received == []


@pytest.mark.parametrize("name", ["idempotency-key", "callbackurl"])
def test_headers_that_make_no_sense_here_are_refused(
    publishing: Caller, asked: Subscription, rules: ReceiverEndpoint, name: str
) -> None:
    answer = publishing.ask(
        "POST", f"events/{EVENT}/messages", BODY, headers={name: "https://a.example/"}
    )
    assert name in refused(answer, 400, "not-with-sync")["detail"]
    assert not Message.objects.exists()
    assert rules.received == []


@pytest.mark.parametrize("partial", ["", "?partial=true"])
def test_a_batch_has_no_place_for_an_answer(
    publishing: Caller, asked: Subscription, rules: ReceiverEndpoint, partial: str
) -> None:
    answer = publishing.post(f"messages:batch{partial}", [{"event": EVENT, "body": {}}])
    problem = (
        answer.body["results"][0]["error"] if partial else refused(answer, 400, "not-with-sync")
    )
    assert problem["type"] == "urn:inturn:problem:not-with-sync"
    assert not Message.objects.exists()
    assert rules.received == []


def test_a_body_is_checked_before_the_call(
    publishing: Caller, event_type: EventType, asked: Subscription, rules: ReceiverEndpoint
) -> None:
    EventType.objects.update(json_schema={"required": ["number"]})
    refused(publishing.publish(EVENT, b"{"), 400, "not-json")
    refused(publishing.publish(EVENT, b"{}"), 422, "schema-violation")
    assert rules.received == []
    assert not Message.objects.exists()


def test_explain_shows_the_subscription_that_would_be_called(
    publishing: Caller,
    manager: Caller,
    event_type: EventType,
    asked: Subscription,
    receiver: Receiver,
) -> None:
    other = factories.subscription(
        "other",
        event_type=event_type,
        position=1,
        endpoint=receiver.endpoint("x").url,
        filter="$$->'Body' is not null",
    )
    id = publishing.publish(EVENT, BODY).headers["inturn-message"]
    found = {
        explanation["subscription_id"]: explanation
        for explanation in manager.get(f"messages/{id}/explain").body["results"]
    }
    assert found[asked.pk]["qualifies"] is True
    assert found[asked.pk]["reason"] == "it matches, and is the one that is called"
    assert found[other.pk]["qualifies"] is False
    assert f"{asked} is first" in found[other.pk]["reason"]


def test_a_call_over_the_limit_is_refused_with_retry_after(
    publishing: Caller, asked: Subscription, rules: ReceiverEndpoint
) -> None:
    turns = slots.slots_of("sync", settings.ENVIRONMENT.web_threads * 3 // 4)
    taken = 0
    while turns.acquire(blocking=False):
        taken += 1
    try:
        answer = publishing.publish(EVENT)
    finally:
        turns.release(taken)
    assert taken == settings.ENVIRONMENT.web_threads * 3 // 4
    refused(answer, 503, "too-many-calls")
    assert answer.headers["Retry-After"] == "1"
    assert not Message.objects.exists()
    assert publishing.publish(EVENT).status == 200
