"""Requests copied as curl commands, tried in a real shell with a real receiver."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer
from standardwebhooks import Webhook

from delivery.console.messages import curl
from delivery.console.messages.as_sent import variable
from delivery.models import Delivery, Message, Status
from subscriptions.models import Scope
from tests.support import factories
from tests.support.receivers import Receiver

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("curl", "openssl", "od")),
    reason="the commands need curl, openssl and od",
)
BODIES = [
    b'{"a": "it\'s"}',
    "Gr\u00fcn $HOME `id` \\n %s".encode(),
    b"line\nline\n\n",
    b"'",
    b"-n x",
    b" ",
]
HOSTILE = "$(touch hacked)'\"; touch hacked `touch hacked` \\"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def shell(command: str, folder: Path, **variables: str) -> str:
    environment = {"PATH": os.environ["PATH"], "NO_PROXY": "*"} | variables
    done = subprocess.run(
        ["/bin/sh", "-eu"],
        input=command,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def sent_to(endpoint: str, body: bytes, **fields: Any) -> Delivery:
    event_type = factories.event_type(content_type="text/plain")
    subscription = factories.subscription(event_type=event_type, endpoint=endpoint, **fields)
    message = factories.message(body, event_type=event_type, content_type="text/plain; a='b'")
    return factories.delivery(Status.REJECTED, message=message, subscription=subscription)


@pytest.mark.django_db
@pytest.mark.parametrize("body", BODIES)
def test_the_request_arrives_with_the_exact_body_and_a_signature_that_verifies(
    receiver: Receiver, tmp_path: Path, body: bytes
) -> None:
    endpoint = receiver.endpoint(factories.unique("hook"))
    row = sent_to(
        f"PUT:{endpoint.url}",
        body,
        headers={"X-Own": "s3cret"},
        auth={"type": "bearer", "token": "t"},
    )
    command = curl.send_command(row)
    assert "s3cret" not in command
    secret = row.subscription.secrets.get().secret
    shell(command, tmp_path, SECRET=secret, X_OWN="of mine", KEY="t0ken")
    (got,) = endpoint.received
    assert (got.method, got.body) == ("PUT", body)
    assert got.headers["x-own"] == "of mine"
    assert got.headers["authorization"] == "Bearer t0ken"
    assert got.headers["content-type"] == "text/plain; a='b'"
    assert (got.id, got.delivery, got.attempt) == (row.message.public_id, row.pk, 2)
    # It verifies first, and then parses the body as JSON, which it need not be.
    with suppress(JSONDecodeError):
        Webhook(secret).verify(got.body, dict(got.headers))


@pytest.mark.django_db
@pytest.mark.parametrize("body", [b"\xff\x00", b"x" * 40_000, b"a\r\nb"])
def test_binary_bodies_are_downloaded_first(
    receiver: Receiver, tmp_path: Path, body: bytes
) -> None:
    endpoint = receiver.endpoint(factories.unique("hook"))
    row = sent_to(endpoint.url, body)
    command = curl.send_command(row)
    assert "Download the raw body first" in command
    (tmp_path / f"{row.message.public_id}.txt").write_bytes(body)
    shell(command, tmp_path, SECRET=row.subscription.secrets.get().secret)
    (got,) = endpoint.received
    assert got.body == body


@pytest.mark.django_db(transaction=True)
def test_the_same_message_is_published_again(
    live_server: LiveServer, settings: Settings, tmp_path: Path
) -> None:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, base_url=live_server.url)
    publisher = factories.publisher()
    _, key = factories.api_key(Scope.PUBLISH, publisher=publisher)
    headers = {
        "x-note": HOSTILE,
        "filter-string": "a 'b'",
        "idempotency-key": "once",
        "x-empty": "",
    }
    message = factories.message(b'{"a": "it\'s"}', publisher=publisher, headers=headers)
    assert '"deliveries":0' in shell(curl.publish_command(message), tmp_path, KEY=key).replace(
        " ", ""
    )
    copy = Message.objects.exclude(pk=message.pk).get()
    assert (bytes(copy.body), copy.event_type, copy.content_type) == (
        bytes(message.body),
        message.event_type,
        message.content_type,
    )
    assert copy.headers["x-note"] == HOSTILE
    assert copy.headers["filter-string"] == "a 'b'"
    assert copy.headers["x-empty"] == ""
    assert "idempotency-key" not in copy.headers


@pytest.mark.django_db
def test_shell_characters_in_values_are_quoted(receiver: Receiver, tmp_path: Path) -> None:
    endpoint = receiver.endpoint(factories.unique("hook"))
    row = sent_to(endpoint.url, HOSTILE.encode(), headers={"X-`touch`$HOME'x": "x"})
    row.message.content_type = "$(touch${IFS}hacked)"
    variables = {"X_TOUCH_HOME_X": "x", "SECRET": row.subscription.secrets.get().secret}
    shell(curl.send_command(row), tmp_path, **variables)
    assert endpoint.received[0].headers["content-type"] == "$(touch${IFS}hacked)"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "shown"), [("X-Api-Key", "$X_API_KEY"), ("1-a", "$HEADER_1_A"), ("--", "$HEADER_")]
)
def test_a_value_that_is_not_shown_is_a_variable(name: str, shown: str) -> None:
    assert variable(name) == shown


class TestCurlOnThePage:
    def test_both_are_offered_and_no_secret_is_in_them(self, ann: Client, db: None) -> None:
        row = sent_to(
            "https://receiver.example/hook",
            b"x",
            auth={"type": "basic", "username": "u", "password": "p4ss"},
        )
        message = ann.get(f"/admin/delivery/message/{row.message_id}/change/").text
        assert 'data-copy="curl-publish"' in message
        delivery = ann.get(f"/admin/delivery/delivery/{row.pk}/change/").text
        assert 'data-copy="curl-send"' in delivery
        assert "Basic $KEY" in delivery
        assert "p4ss" not in message + delivery
        assert row.subscription.secrets.get().secret not in message + delivery

    def test_reserved_event_types_have_no_command(self, ann: Client, db: None) -> None:
        message = factories.message(publisher=None)
        assert "curl-publish" not in ann.get(f"/admin/delivery/message/{message.pk}/change/").text
