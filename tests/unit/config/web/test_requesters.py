"""Requesters are identified before a body is read, whatever others do at that moment."""

import asyncio
import base64
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from config.web import requesters
from config.web.environ import Environ
from config.web.request_bodies import Requester
from config.web.requesters import KnownRequesters
from delivery.database.connections import connection_parameters
from delivery.incoming.problems import Problem
from delivery.publishing.callback_tokens import callback_key, make_token
from delivery.publishing.reply_headers import reply_key
from subscriptions.models import ApiKey
from subscriptions.publish_ids import rotate_publish_id
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)

BATCH = "/api/v1/messages:batch"


def environ_of(path: str = BATCH, **headers: str) -> Environ:
    return {"PATH_INFO": path, "REMOTE_ADDR": "10.0.0.1"} | {
        f"HTTP_{name}": value for name, value in headers.items()
    }


def bearer(key: str) -> Environ:
    return environ_of(AUTHORIZATION=f"Bearer {key}")


def is_known(path: str = BATCH, **headers: str) -> bool:
    return asyncio.run(KnownRequesters().identify(environ_of(path, **headers))).is_known


def test_a_key_is_accepted_until_it_is_revoked() -> None:
    _, key = factories.api_key()
    assert is_known(AUTHORIZATION=f"Bearer {key}")
    ApiKey.objects.update(revoked_at=timezone.now())
    assert not is_known(AUTHORIZATION=f"Bearer {key}")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"AUTHORIZATION": "Bearer x"},
        {"AUTHORIZATION": "Basic eDp5"},
        {"AUTHORIZATION": "Basic eDp5", "path": "/event/queue/a/ack"},
        {"AUTHORIZATION": "Basic é", "path": "/event/queue/a/ack"},
        {"COOKIE": "="},
        {"path": "/receiver/x"},
        {"path": "/v4/inbox/A.B/00000000-0000-4000-8000-000000000000"},
    ],
)
def test_others_are_strangers(given: dict[str, str]) -> None:
    assert not is_known(**given)


def test_a_session_is_accepted() -> None:
    ann = Client()
    ann.force_login(User.objects.create_superuser("ann"))
    name = settings.SESSION_COOKIE_NAME
    assert is_known("/admin/", COOKIE=f"a=b; {name}={ann.cookies[name].value}")
    assert not is_known("/admin/", COOKIE=f"{name}=x")


def test_tokens_in_an_address_are_accepted() -> None:
    token = make_token(17, key=callback_key(settings.SECRET_KEY))
    assert is_known(f"/callbacks/{token}")
    assert not is_known(f"/callbacks/18{token[2:]}")
    token = make_token(17, key=reply_key(settings.SECRET_KEY))
    assert is_known(f"/replies/{token}")
    assert not is_known(f"/callbacks/{token}")


def test_a_publish_id_is_accepted_below_any_prefix() -> None:
    _, text = rotate_publish_id(factories.publisher(), now=timezone.now())
    assert is_known(f"/v4/inbox/A.B/{text}")
    assert is_known(f"/kept/by/proxy/inbox/A.B/{text}/")
    assert not is_known(f"/v4/other/A.B/{text}")


@pytest.mark.parametrize("header", ["SESSIONID", "X_USER_TOKEN", "AUTHORIZATION"])
def test_a_bare_key_is_accepted_from_workfronts_clients(header: str) -> None:
    _, key = factories.api_key()
    assert is_known("/attask/eventsubscription/api/v1/subscriptions", **{header: key})
    assert not is_known(BATCH, **{header: key})


def test_a_fetch_key_is_accepted_as_password_of_a_queue() -> None:
    _, key = factories.api_key()
    basic = base64.b64encode(f"abc:{key}".encode()).decode()
    assert is_known("/event/queue/abc/ack", AUTHORIZATION=f"Basic {basic}")


def test_a_flood_of_unknown_credentials_takes_few_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A known requester that comes last is found by the same query as those that wait before it."""
    _, key = factories.api_key()
    groups: list[int] = []
    valid = requesters.valid_credentials

    def counted(credentials: Any) -> Any:
        groups.append(len(credentials))
        return valid(credentials)

    monkeypatch.setattr(requesters, "valid_credentials", counted)

    async def scenario() -> None:
        process = KnownRequesters()
        flood = [asyncio.ensure_future(process.identify(bearer(f"x{n}"))) for n in range(1500)]
        assert (await process.identify(bearer(key))).is_known
        assert {requester.is_known for requester in await asyncio.gather(*flood)} == {False}

    asyncio.run(scenario())
    assert groups == [1000, 501]


def test_a_known_requester_waits_for_the_database_and_never_becomes_a_stranger() -> None:
    _, key = factories.api_key()

    async def scenario() -> None:
        process = KnownRequesters(seconds=0.2)
        with psycopg.connect(**connection_parameters()) as holding:
            # As while the database is away, for every look-up of a key.
            holding.execute("LOCK subscriptions_apikey")
            results = await asyncio.gather(
                *(process.identify(bearer(key)) for _ in range(5)), return_exceptions=True
            )
            assert {result.status_code for result in results if isinstance(result, Problem)} == {
                503
            }
            assert len(results) == 5
            waiting = asyncio.ensure_future(KnownRequesters().identify(bearer(key)))
            await asyncio.sleep(0)
        assert (await waiting).is_known
        assert (await process.identify(bearer(key))).is_known

    asyncio.run(scenario())


def test_a_requester_at_work_does_not_wait_and_is_looked_up_again_beside() -> None:
    _, key = factories.api_key()

    async def scenario() -> None:
        process = KnownRequesters(seconds=0.2)
        known = await process.identify(bearer(key))
        (entry,) = process._known.values()
        entry.again_at = 0.0
        with psycopg.connect(**connection_parameters()) as holding:
            holding.execute("LOCK subscriptions_apikey")
            assert await process.identify(bearer(key)) == known
            (again,) = [*process._waiting.values(), *process._under_way.values()]
        assert await again
        with psycopg.connect(**connection_parameters()) as administrator:
            administrator.execute("UPDATE subscriptions_apikey SET revoked_at = now()")
        entry = process._known[next(iter(process._known))]
        entry.again_at = 0.0
        assert process.remembered(bearer(key)) == known
        await next(iter(process._waiting.values()))
        assert not process.remembered(bearer(key)).is_known

    asyncio.run(scenario())


def test_look_ups_that_wait_for_the_database_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requesters, "MOST_WAITING", 3)
    _, key = factories.api_key()

    async def scenario() -> None:
        process = KnownRequesters()
        known = await process.identify(bearer(key))
        with psycopg.connect(**connection_parameters()) as holding:
            holding.execute("LOCK subscriptions_apikey")
            for number in range(10):
                assert not process.remembered(bearer(f"x{number}")).is_known
            assert len(process._waiting) == 3
            with pytest.raises(Problem) as refused:
                await process.identify(bearer("another"))
            assert refused.value.status_code == 503
            assert await process.identify(bearer(key)) == known
            # A look-up that waits already serves another request as well.
            waiting = asyncio.ensure_future(process.identify(bearer("x1")))
            await asyncio.sleep(0)
        assert not (await waiting).is_known
        assert not (await process.identify(bearer("another"))).is_known

    asyncio.run(scenario())


def test_strangers_count_by_their_origin_and_leave_nothing_but_digests() -> None:
    async def scenario() -> None:
        process = KnownRequesters()
        text = "x" * 8000
        assert await process.identify(bearer(text)) == Requester("10.0.0.1", is_known=False)
        assert all(len(credential.text) == 64 for credential in process._unknown_until)
        cookie = environ_of(COOKIE=f"{settings.SESSION_COOKIE_NAME}={text}")
        assert not (await process.identify(cookie)).is_known
        assert len(process._unknown_until) == 1

    asyncio.run(scenario())
