"""Addresses for people who may not change them; Python and SQL mask the same."""

import pytest
from django.db import connection

from subscriptions.values.shown_addresses import (
    masked_address,
    masked_addresses,
    named_secret_address,
    recorded_address,
    secret_address_key,
)

CASES = [
    ("https://a.example/hook", "https://a.example/hook"),
    ("https://a.example/hook?token=URLSECRET55&x=1", "https://a.example/hook?•••"),
    ("PATCH:https://a.example/orders/v2?a", "PATCH:https://a.example/orders/v2?•••"),
    (
        "https://hooks.example/services/T01/XyZ0123456789abcdef/in",
        "https://hooks.example/services/T01/•••/in",
    ),
    (
        "https://a.example/3f2504e0-4f89-11d3-9a0c-0305e82c3301/abcdefghijklmnopqrst",
        "https://a.example/•••/•••",
    ),
    (
        "https://a-very-long-host-name.example:8443/x",
        "https://a-very-long-host-name.example:8443/x",
    ),
    ("https://a.example/?x/abcdefghijklmnopqrst", "https://a.example/?•••"),
    ("https://[::1]:8443/%E4%F6%E4%F6%E4%F6?", "https://[::1]:8443/•••?•••"),
    ("webr://", "webr://"),
    ("", ""),
]


@pytest.mark.parametrize(("address", "shown"), CASES)
def test_the_query_and_long_parts_of_the_path_are_masked(address: str, shown: str) -> None:
    assert masked_address(address) == shown
    assert masked_address(shown) == shown


@pytest.mark.django_db
@pytest.mark.parametrize(("address", "shown"), CASES)
def test_statements_mask_as_python_does(address: str, shown: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT subscriptions_masked_url(%s)", [address])
        assert cursor.fetchone() == (shown,)


def test_each_address_of_a_text_is_masked() -> None:
    text = 'POST "https://a.example/x?t=1" and http://b.example/0123456789abcdef: refused ?y'
    assert masked_addresses(text) == (
        'POST "https://a.example/x?•••" and http://b.example/••• refused ?y'
    )


def test_a_changed_secret_is_seen_in_a_record_that_has_neither() -> None:
    first, second = (recorded_address(f"https://a.example/?token={n}") for n in ("one", "two"))
    assert first != second
    assert first.startswith("https://a.example/?••• (")
    assert recorded_address("https://a.example/x") == "https://a.example/x"


def test_a_secret_address_is_named_by_its_host_and_end() -> None:
    url = "https://hooks.example/services/T0/SECRET99"
    mark = secret_address_key(url)[:6]
    assert named_secret_address(url) == f"hooks.example •••ET99 ({mark})"
