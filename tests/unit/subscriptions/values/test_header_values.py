"""The headers and credentials that can be sent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscriptions.values.header_values import HeaderError, check_auth, check_header, check_headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Token", "abc"),
        ("X-Empty", ""),
        ("x_a", "b\tc d"),
        ("Authorization", "ApiKey x"),
        ("Cookie", "a=b"),
    ],
)
def test_an_ordinary_header_is_accepted(name: str, value: str) -> None:
    check_header(name, value)


@given(st.text(max_size=20), st.text(max_size=20))
def test_accepted_values_are_one_line_of_ascii(name: str, value: str) -> None:
    try:
        check_header(name, value)
    except HeaderError:
        return
    line = f"{name}: {value}"
    assert line.isascii()
    assert line.splitlines() == [line]
    assert "\0" not in line
    assert ":" not in name


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-length",
        "Content-Type",
        "Content-Encoding",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Proxy-Authorization",
        "CallbackURL",
        "webhook-id",
        "Webhook_Signature",
        "inturn-event",
        "",
        "X A",
        "X:A",
        "X-Ä",
        "X\r\nY",
        "x" * 201,
    ],
)
def test_a_reserved_or_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(HeaderError):
        check_header(name, "x")


@pytest.mark.parametrize(
    "value", ["a\r\nb", "a\nb", "a\rb", "a\0b", "\x7f", "é", " a", "a ", "x" * 4001]
)
def test_a_value_that_would_not_arrive_as_it_is_is_refused(value: str) -> None:
    with pytest.raises(HeaderError):
        check_header("X-A", value)


def test_headers_have_a_limit_together() -> None:
    check_headers({f"X-{number}": "a" for number in range(50)})
    with pytest.raises(HeaderError, match="50"):
        check_headers({f"X-{number}": "a" for number in range(51)})
    with pytest.raises(HeaderError, match="longer"):
        check_headers({f"X-{number}": "a" * 4000 for number in range(5)})
    with pytest.raises(HeaderError, match="twice"):
        check_headers({"X-A": "a", "x-a": "b"})


@pytest.mark.parametrize(
    "auth",
    [
        {},
        {"type": "none"},
        {"type": "basic", "username": "u", "password": ""},
        {"type": "basic", "username": "ů", "password": "p:ä"},
        {"type": "bearer", "token": "a.b-c_d~e+f/g="},
    ],
)
def test_the_three_forms_of_auth_are_accepted(auth: dict[str, Any]) -> None:
    check_auth(auth, header_names=["X-A"])


def test_a_header_that_contradicts_auth_is_refused() -> None:
    check_auth({"type": "none"}, header_names=["authorization"])
    with pytest.raises(HeaderError):
        check_auth({"type": "bearer", "token": "x"}, header_names=["authorization"])
