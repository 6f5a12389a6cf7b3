"""A built-in receiver: its answers, the stored part of a request, and the limits of that."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from delivery.maintenance import retention
from delivery.models import BuiltInReceiver, ReceivedRequest, ReceiverAnswer, SignatureCheck
from delivery.models.receiver import KEPT_BODY_BYTES, KEPT_HEADER_BYTES, KEPT_REQUESTS
from delivery.receivers.answers import HANG_SECONDS
from delivery.receivers.late_answers import AFTER_HEADER, CLOSE
from delivery.receivers.stored_requests import url_of
from delivery.senders.http.signing import signature, signing_key
from subscriptions.models import Subscription
from subscriptions.models.subscription import MAX_TIMEOUT_SECONDS
from subscriptions.values.built_in_receivers import built_in_receivers
from tests.support import factories

pytestmark = pytest.mark.django_db

BODY = b'{"greeting": "Hello"}'


@pytest.fixture
def receiver() -> BuiltInReceiver:
    return BuiltInReceiver.objects.create(name="example")


@pytest.fixture
def subscription(receiver: BuiltInReceiver) -> Subscription:
    return factories.subscription(endpoint=url_of(receiver), headers={"X-Api-Key": "hunter2"})


def path(receiver: BuiltInReceiver) -> str:
    return f"/receiver/{receiver.token}"


def signed(
    subscription: Subscription, body: bytes = BODY, *, at: datetime | None = None
) -> Mapping[str, Any]:
    timestamp = int((at or timezone.now()).timestamp())
    keys = [signing_key(secret.secret) for secret in subscription.secrets.all()]
    return {
        "HTTP_WEBHOOK_ID": "msg_7",
        "HTTP_WEBHOOK_TIMESTAMP": str(timestamp),
        "HTTP_WEBHOOK_SIGNATURE": signature(
            keys, webhook_id="msg_7", timestamp=timestamp, body=body
        ),
    }


def post(receiver: BuiltInReceiver, body: bytes = BODY, **headers: Any) -> Any:
    return Client().post(path(receiver), body, content_type="application/json", **headers)


def kept() -> ReceivedRequest:
    return ReceivedRequest.objects.get()


def test_its_url_is_one_that_senders_may_call(receiver: BuiltInReceiver) -> None:
    assert url_of(receiver) in built_in_receivers(settings.ENVIRONMENT.base_url)
    assert url_of(receiver).endswith(path(receiver))


@pytest.mark.parametrize(
    ("answer", "status", "headers"),
    [
        (ReceiverAnswer.OK, 204, {}),
        (ReceiverAnswer.GONE, 410, {}),
        (ReceiverAnswer.TOO_MANY, 429, {"Retry-After": "10"}),
        (ReceiverAnswer.ERROR, 500, {}),
        (ReceiverAnswer.SLOW, 204, {AFTER_HEADER: "5"}),
        (ReceiverAnswer.HANG, 503, {AFTER_HEADER: str(HANG_SECONDS)}),
        (ReceiverAnswer.CLOSE, 503, {AFTER_HEADER: CLOSE}),
    ],
)
def test_it_answers_as_it_is_switched(
    receiver: BuiltInReceiver, answer: ReceiverAnswer, status: int, headers: Mapping[str, str]
) -> None:
    BuiltInReceiver.objects.update(answer=answer)
    answered = post(receiver)
    assert answered.status_code == status
    assert headers.items() <= dict(answered.headers).items()
    assert (AFTER_HEADER in answered.headers) == (AFTER_HEADER in headers)
    assert kept().answer == answer


def test_it_hangs_longer_than_any_subscription_waits() -> None:
    assert HANG_SECONDS > MAX_TIMEOUT_SECONDS


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "head"])
def test_it_takes_every_method(receiver: BuiltInReceiver, method: str) -> None:
    assert getattr(Client(), method)(path(receiver)).status_code == 204
    assert kept().method == method.upper()


@pytest.mark.parametrize("token", ["x" * 32, "short", "x" * 31 + "%00"])
def test_an_unknown_token_is_not_found(token: str) -> None:
    assert Client().post(f"/receiver/{token}", BODY, "application/json").status_code == 404
    assert not ReceivedRequest.objects.exists()


def test_a_body_longer_than_a_message_is_refused(receiver: BuiltInReceiver) -> None:
    assert post(receiver, b"x" * (settings.ENVIRONMENT.max_message_bytes + 1)).status_code == 413
    assert not ReceivedRequest.objects.exists()


def test_body_and_headers_are_kept(receiver: BuiltInReceiver) -> None:
    post(receiver, HTTP_X_CITY="Köln".encode().decode("latin-1"))
    request = kept()
    assert (bytes(request.body), request.size) == (BODY, len(BODY))
    assert {"x-city": "Köln", "content-type": "application/json"}.items() <= dict(
        request.headers
    ).items()
    receiver.refresh_from_db()
    assert receiver.received == 1


def test_a_long_body_is_cut(receiver: BuiltInReceiver) -> None:
    post(receiver, b"x" * (KEPT_BODY_BYTES + 5))
    assert (len(kept().body), kept().size) == (KEPT_BODY_BYTES, KEPT_BODY_BYTES + 5)


def test_long_headers_are_left_out(receiver: BuiltInReceiver) -> None:
    long: dict[str, Any] = {f"HTTP_X_{number:03}": "v" * 1000 for number in range(100)}
    post(receiver, **long)
    headers = kept().headers
    assert sum(len(name) + len(value) for name, value in headers) < KEPT_HEADER_BYTES + 100
    assert headers[-1][0] == "…"


def test_only_the_last_requests_are_kept(receiver: BuiltInReceiver) -> None:
    other = BuiltInReceiver.objects.create(name="other")
    post(other, b"other")
    for number in range(KEPT_REQUESTS + 3):
        post(receiver, b"%d" % number)
    bodies = [bytes(row.body) for row in receiver.requests.order_by("pk")]
    assert bodies == [b"%d" % number for number in range(3, KEPT_REQUESTS + 3)]
    assert other.requests.count() == 1
    receiver.refresh_from_db()
    assert receiver.received == KEPT_REQUESTS + 3


def test_retention_removes_old_requests(receiver: BuiltInReceiver) -> None:
    post(receiver, b"old")
    ReceivedRequest.objects.update(at=timezone.now() - timedelta(days=8))
    post(receiver, b"new")
    assert retention.advance_pass(timezone.now()) == 1
    assert bytes(kept().body) == b"new"


class TestSignatures:
    def test_a_valid_one_names_the_message(
        self, receiver: BuiltInReceiver, subscription: Subscription
    ) -> None:
        post(receiver, **signed(subscription))
        assert (kept().signature, kept().message_id) == (SignatureCheck.VALID, 7)

    def test_it_is_checked_over_the_whole_body(
        self, receiver: BuiltInReceiver, subscription: Subscription
    ) -> None:
        body = b"x" * (KEPT_BODY_BYTES + 5)
        post(receiver, body, **signed(subscription, body))
        assert kept().signature == SignatureCheck.VALID

    def test_one_of_another_body_is_invalid(
        self, receiver: BuiltInReceiver, subscription: Subscription
    ) -> None:
        post(receiver, b"{}", **signed(subscription))
        assert (kept().signature, kept().message_id) == (SignatureCheck.INVALID, None)

    def test_one_with_another_secret_is_invalid(
        self, receiver: BuiltInReceiver, subscription: Subscription
    ) -> None:
        post(receiver, **signed(factories.subscription()))
        assert kept().signature == SignatureCheck.INVALID

    @pytest.mark.parametrize("minutes", [-6, 6])
    def test_an_old_one_is_invalid(
        self, receiver: BuiltInReceiver, subscription: Subscription, minutes: int
    ) -> None:
        post(receiver, **signed(subscription, at=datetime.now(UTC) + timedelta(minutes=minutes)))
        assert kept().signature == SignatureCheck.INVALID

    @pytest.mark.parametrize("timestamp", ["", "soon", "²", "9" * 400, "-5"])
    def test_a_wrong_time_is_invalid(
        self, receiver: BuiltInReceiver, subscription: Subscription, timestamp: str
    ) -> None:
        given = {**signed(subscription), "HTTP_WEBHOOK_TIMESTAMP": timestamp}
        assert post(receiver, **given).status_code == 204
        assert kept().signature == SignatureCheck.INVALID

    def test_without_one_or_without_a_subscription_it_is_said_so(
        self, receiver: BuiltInReceiver
    ) -> None:
        post(receiver)
        assert kept().signature == SignatureCheck.UNSIGNED
        ReceivedRequest.objects.all().delete()
        post(receiver, **signed(factories.subscription()))
        assert kept().signature == SignatureCheck.UNKNOWN

    def test_a_subscription_with_a_method_counts(self, receiver: BuiltInReceiver) -> None:
        row = factories.subscription(endpoint=f"PUT:{url_of(receiver)}")
        post(receiver, **signed(row))
        assert kept().signature == SignatureCheck.VALID


def test_credentials_are_masked_before_they_are_stored(
    receiver: BuiltInReceiver, subscription: Subscription
) -> None:
    post(
        receiver,
        HTTP_AUTHORIZATION="Bearer hunter2",
        HTTP_COOKIE="session=hunter2",
        HTTP_X_API_KEY="hunter2",
        HTTP_CALLBACKURL="https://broker.example/callbacks/hunter2",
        HTTP_INTURN_REPLY="https://broker.example/replies/hunter2",
        HTTP_X_OTHER="seen",
    )
    headers = dict(kept().headers)
    assert "hunter2" not in str(headers)
    assert (headers["authorization"], headers["x-api-key"]) == ("•••", "•••")
    assert headers["x-other"] == "seen"
