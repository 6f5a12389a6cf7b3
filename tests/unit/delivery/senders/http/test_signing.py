"""Signatures, verified by the official library of Standard Webhooks."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from delivery.senders.http.signing import signature, signing_key
from subscriptions.models.secret import new_secret


def signed_headers(*secrets: str, body: bytes) -> dict[str, str]:
    timestamp = int(datetime.now(UTC).timestamp())
    keys = [signing_key(secret) for secret in secrets]
    return {
        "webhook-id": "msg_7",
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(keys, webhook_id="msg_7", timestamp=timestamp, body=body),
    }


@given(st.text())
def test_the_official_library_verifies_our_signatures(text: str) -> None:
    secret, body = new_secret(), b'"' + text.encode(errors="ignore").hex().encode() + b'"'
    assert Webhook(secret).verify(body, signed_headers(secret, body=body)) is not None


def test_every_valid_secret_signs() -> None:
    old, new = new_secret(), new_secret()
    headers = signed_headers(new, old, body=b"{}")
    assert Webhook(old).verify(b"{}", headers) == Webhook(new).verify(b"{}", headers) == {}


def test_another_body_does_not_verify() -> None:
    secret = new_secret()
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(b'{"a":2}', signed_headers(secret, body=b'{"a":1}'))


def test_another_secret_does_not_verify() -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(b"{}", signed_headers(new_secret(), body=b"{}"))


def test_a_secret_that_is_not_base64_is_refused() -> None:
    with pytest.raises(ValueError, match=r"base64|padding"):
        signing_key("whsec_no base64!")
