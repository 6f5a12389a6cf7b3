"""The headers of a request: those of the message that are forwarded, and replies."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings

from delivery.calls.client_thread import client_thread
from delivery.calls.http import call_for_answer
from delivery.outcome import Outcome
from delivery.publishing.callback_tokens import make_token
from delivery.publishing.reply_headers import reply_key
from delivery.senders.http.client import HttpClient
from delivery.senders.http.request import make_request
from delivery.senders.parcel import Endpoint
from tests.support.receivers import OK, Answer, Receiver
from tests.support.receivers.received import Received
from tests.unit.delivery.senders.http.test_client import LOOPBACK, PARCEL, endpoint


def pushed(to: Endpoint, headers: Mapping[str, str]) -> Outcome:
    async def sending() -> Outcome:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            return await client.send(replace(PARCEL, headers=headers), to)

    return asyncio.run(sending())


def called(to: Endpoint, headers: Mapping[str, str]) -> Outcome:
    request = make_request(replace(PARCEL, headers=headers), to, now=datetime.now(UTC))
    return call_for_answer(request, client=client_thread(allowed_networks=LOOPBACK)).outcome


def values(got: Received, name: str) -> list[str]:
    return [value for sent, value in got.headers.items() if sent.lower() == name]


WAYS = pytest.mark.parametrize("way", [pushed, called])


@WAYS
def test_they_are_sent_beside_our_own(receiver: Receiver, way: Any) -> None:
    hook = receiver.endpoint("hook")
    to = endpoint(hook.url, headers={"X-Team": "ours"}, forward_headers=("x-*", "user-agent"))
    ended = way(
        to, {"x-github-event": "push", "x-team": "theirs", "user-agent": "GitHub", "accept": "a/b"}
    )
    (got,) = hook.received
    assert got.headers["X-GitHub-Event"] == "push"
    assert values(got, "x-team") == ["ours"]
    assert values(got, "user-agent") == ["GitHub"]
    assert values(got, "webhook-id") == ["msg_7"]
    assert values(got, "content-type") == ["application/json"]
    assert got.headers.get("Accept") != "a/b"
    assert (ended.reason, ended.error) == ("200", "")


@WAYS
def test_a_value_beyond_ascii_is_sent_as_utf_8(receiver: Receiver, way: Any) -> None:
    hook = receiver.endpoint("hook")
    way(endpoint(hook.url, forward_headers=("*",)), {"x-author": "Müller, 日本"})
    (got,) = hook.received
    # The receiver reads bytes that are no UTF-8 as surrogates.
    assert got.headers["X-Author"] == "Müller, 日本"


@WAYS
def test_an_attempt_says_what_was_left_out(receiver: Receiver, way: Any) -> None:
    hook = receiver.endpoint("hook")
    hook.next(OK, Answer(500))
    to = endpoint(hook.url, forward_headers=("*",))
    headers = {"x-fits": "1", "x-evil": "a\r\nX-Injected: 1"}
    delivered, failed = way(to, headers), way(to, headers)
    for got in hook.received:
        assert got.headers["X-Fits"] == "1"
        assert not {"X-Evil", "X-Injected"} & set(got.headers)
    assert delivered.error.startswith("sent without headers of the message: x-evil (at most 50")
    assert failed.reason.startswith("500: sent without headers of the message: x-evil")


def test_without_patterns_the_same_headers_are_made() -> None:
    now = datetime.now(UTC)
    to = endpoint("http://127.0.0.1/")
    with_headers = make_request(replace(PARCEL, headers={"x-a": "1"}), to, now=now)
    assert with_headers.headers == make_request(PARCEL, to, now=now).headers


def test_the_address_for_a_reply_has_the_token_of_the_delivery() -> None:
    to, now = endpoint("http://127.0.0.1/"), datetime.now(UTC)
    wanting_reply = replace(PARCEL, headers={"replyto": "Quote.Made"})
    token = make_token(PARCEL.delivery_id, key=reply_key(settings.SECRET_KEY))
    plain = make_request(PARCEL, to, now=now).headers
    sent = make_request(wanting_reply, to, now=now).headers
    assert sent == plain | {"inturn-reply": f"{settings.ENVIRONMENT.base_url}/replies/{token}"}
    # Neither a replay nor an answer to a callback asks for replies.
    for other in ({"replay_id": 7}, {"event": "Inturn.Callback"}):
        made = make_request(replace(wanting_reply, **other), to, now=now)
        assert "inturn-reply" not in made.headers


def test_a_reply_names_its_message_without_forward_headers() -> None:
    said = {"inturn-replied-message": "msg_1", "inturn-replied-delivery": "2"}
    reply = replace(PARCEL, headers={"x-a": "1"} | said)
    sent = make_request(reply, endpoint("http://127.0.0.1/"), now=datetime.now(UTC)).headers
    assert said.items() <= sent.items()
    assert not {"x-a", "inturn-reply"} & sent.keys()
