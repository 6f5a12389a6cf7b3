"""Senders that are identified before a body is read, and the longest body of each path."""

import asyncio
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from config.web.body_limits import RequestClients, limit_of
from delivery.database.connections import connection_parameters
from delivery.publishing.callback_tokens import callback_key, make_token
from delivery.publishing.reply_headers import reply_key
from subscriptions.models import ApiKey
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


def is_known(path: str = "/api/v1/messages:batch", **headers: str) -> bool:
    environ: dict[str, Any] = {"PATH_INFO": path} | {
        f"HTTP_{name}": value for name, value in headers.items()
    }
    return bool(asyncio.run(RequestClients()(environ)))


def test_a_key_is_accepted_until_it_is_revoked() -> None:
    _, key = factories.api_key()
    assert is_known(AUTHORIZATION=f"Bearer {key}")
    ApiKey.objects.update(revoked_at=timezone.now())
    assert not is_known(AUTHORIZATION=f"Bearer {key}")


@pytest.mark.parametrize(
    "given", [{}, {"AUTHORIZATION": "Bearer x"}, {"AUTHORIZATION": "Basic eDp5"}, {"COOKIE": "="}]
)
def test_others_are_strangers(given: dict[str, str]) -> None:
    assert not is_known(**given)


def test_a_session_is_accepted() -> None:
    ann = Client()
    ann.force_login(User.objects.create_superuser("ann"))
    name = settings.SESSION_COOKIE_NAME
    assert is_known("/admin/", COOKIE=f"a=b; {name}={ann.cookies[name].value}")
    assert not is_known("/admin/", COOKIE=f"{name}=x")


def test_a_callback_token_is_accepted() -> None:
    token = make_token(17, key=callback_key(settings.SECRET_KEY))
    assert is_known(f"/callbacks/{token}")
    assert not is_known(f"/callbacks/18{token[2:]}")


def test_a_reply_token_is_accepted() -> None:
    token = make_token(17, key=reply_key(settings.SECRET_KEY))
    assert is_known(f"/replies/{token}")
    assert not is_known(f"/callbacks/{token}")


def test_one_query_serves_all_requests_of_a_sender_and_bounds_the_wait_of_strangers() -> None:
    _, key = factories.api_key()
    environ: dict[str, Any] = {"PATH_INFO": "/api/v1/messages:batch"}

    async def scenario() -> None:
        senders = RequestClients(seconds=0.2)
        known = environ | {"HTTP_AUTHORIZATION": f"Bearer {key}"}
        with psycopg.connect(**connection_parameters()) as holding:
            # As while the database is away, for every key look-up.
            holding.execute("LOCK subscriptions_apikey")
            assert await asyncio.gather(*(senders(known) for _ in range(5))) == [""] * 5
            assert len(senders._look_ups) == 1
        (sought,) = senders._look_ups.values()
        assert await sought
        assert await senders(known)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/api/v1/messages:batch", 20_000),
        ("/api/v1/events/A.B/messages", 1000),
        ("/callbacks/17.x", 1000),
        ("/replies/17.x", 1000),
        ("/api/v1/mailboxes/abc/reply", 1000),
        ("/admin/login/", 4000),
        ("/x", 4000),
    ],
)
def test_each_path_has_its_limit(path: str, limit: int) -> None:
    assert limit_of(path, max_message_bytes=1000, max_batch_bytes=20_000) == limit
