"""What strangers write into headers is not kept by any cache."""

import pytest

from config.web import environ
from config.web.environ import for_waiting
from delivery.incoming.short_way import intake
from delivery.incoming.short_way.cache import LONGEST_KEPT, ConfigurationCache
from tests.support import factories

LONG = "x" * 5000


def test_long_names_of_headers_are_not_kept() -> None:
    before = environ._short_key.cache_info().currsize
    assert environ._key(f"a-{LONG}") == f"HTTP_A_{LONG.upper()}"
    assert environ._short_key.cache_info().currsize == before
    assert environ._key("content-type") == "CONTENT_TYPE"
    assert environ._short_key.cache_info().maxsize == 1024


def test_long_hosts_are_not_kept() -> None:
    before = intake._is_allowed_host.cache_info().currsize
    assert not intake._is_host(LONG)
    assert intake._is_allowed_host.cache_info().currsize == before
    assert intake._is_host("localhost:8000")


@pytest.mark.django_db
def test_of_a_long_filter_string_only_a_digest_is_kept() -> None:
    event_type = factories.event_type()
    kept = ConfigurationCache()
    for text in (LONG, f"{LONG}y", "short"):
        kept.subscribed(event_type, text)
    places = [text for _, text in kept._subscribed]
    assert len(set(places)) == 3
    assert max(map(len, places)) == LONGEST_KEPT
    assert "short" in places


def test_a_waiting_client_keeps_only_what_its_next_call_needs() -> None:
    asked = {
        "PATH_INFO": "/api/v1/mailboxes/abc/messages",
        "QUERY_STRING": "wait=20",
        "CONTENT_LENGTH": "5",
        "HTTP_AUTHORIZATION": "Bearer x",
        "HTTP_HOST": "localhost",
        "HTTP_X_LONG": LONG,
        "HTTP_COOKIE": LONG,
    }
    assert for_waiting(asked) == {
        "PATH_INFO": "/api/v1/mailboxes/abc/messages",
        "QUERY_STRING": "wait=20",
        "CONTENT_LENGTH": "0",
        "HTTP_AUTHORIZATION": "Bearer x",
        "HTTP_HOST": "localhost",
    }
