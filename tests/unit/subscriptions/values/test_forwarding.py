"""The message headers that a subscription may forward, and the chosen ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscriptions.values.forwarding import checked_patterns, forwarded_headers
from subscriptions.values.header_values import (
    MAX_HEADERS,
    MAX_TOTAL_LENGTH,
    HeaderError,
    is_sendable,
)

NEVER = [
    "accept-encoding",
    "authorization",
    "callbackurl",
    "connection",
    "content-encoding",
    "content-type",
    "cookie",
    "destination",
    "errorsto",
    "replyto",
    "expect",
    "forwarded",
    "host",
    "idempotency-key",
    "inturn-event",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "webhook-id",
    "x-forward-authorization",
    "x-forwarded-for",
]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (["X-GitHub-Event"], ["x-github-event"]),
        (["X-GitHub-*", " x-github-* "], ["x-github-*"]),
        (["*"], ["*"]),
        (["FILTER_STRING", "filter-string"], ["filter_string"]),
        (["X_Custom_Id", "X_*"], ["x_custom_id", "x_*"]),
        (["cookie*"], ["cookie*"]),
        ([], []),
    ],
)
def test_patterns_are_kept_in_lower_case_and_once_for_a_header(
    given: list[str], stored: list[str]
) -> None:
    assert checked_patterns(given) == stored


@pytest.mark.parametrize(
    "pattern", ["", "a b", "x-*-y", "**", "x:y", "über", "x" * 201, "x" * 201 + "*"]
)
def test_a_pattern_that_is_no_header_name_is_refused(pattern: str) -> None:
    with pytest.raises(HeaderError, match="is no header name"):
        checked_patterns([pattern])


@pytest.mark.parametrize(
    "pattern", [*NEVER, "Content-*", "webhook-*", "inturn-x*", "X_Forwarded_*", "proxy-*"]
)
def test_a_pattern_that_only_matches_reserved_names_is_refused(pattern: str) -> None:
    with pytest.raises(HeaderError, match="is never sent along"):
        checked_patterns([pattern])


def test_too_many_patterns_are_refused() -> None:
    with pytest.raises(HeaderError, match="at most 50"):
        checked_patterns([f"x-{number}" for number in range(51)])


@pytest.mark.parametrize("name", NEVER)
def test_a_reserved_header_is_not_sent_along_by_a_star(name: str) -> None:
    found = forwarded_headers({name: "v", "x-other": "w"}, ["*"], own={})
    assert (found.headers, found.left_out) == ({"x-other": "w"}, ())


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["x-github-event"], ["x-github-event"]),
        (["x-github-*"], ["x-github-delivery", "x-github-event"]),
        (["x-github-*", "traceparent"], ["traceparent", "x-github-delivery", "x-github-event"]),
        (["x-github"], []),
        ([], []),
    ],
)
def test_what_matches_is_sent_along(patterns: list[str], names: list[str]) -> None:
    stored = dict.fromkeys(
        ["x-github-event", "x-github-delivery", "traceparent", "user-agent"], "v"
    )
    assert list(forwarded_headers(stored, patterns, own={}).headers) == names


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["filter_string", "x_custom_id"], ["FILTER_STRING", "x_custom_id"]),
        (["*"], ["FILTER_STRING", "x-custom-id"]),
        (["filter-string", "x_custom*"], ["filter-string", "x-custom-id"]),
        (["filter*", "X-Custom-Id".lower()], ["FILTER_STRING", "x-custom-id"]),
    ],
)
def test_names_with_underscores_are_sent_as_the_list_spells_them(
    patterns: list[str], names: list[str]
) -> None:
    stored = {"filter-string": "proj1", "x-custom-id": "7"}
    assert list(forwarded_headers(stored, patterns, own={}).headers) == names
    own = forwarded_headers(stored, patterns, own={"X_CUSTOM_ID": "8", "Filter-String": "p"})
    assert (own.headers, own.note) == ({}, "")


def test_the_subscriptions_own_header_wins_whatever_its_case() -> None:
    found = forwarded_headers({"x-team": "theirs"}, ["*"], own={"X_Team": "ours"})
    assert (found.headers, found.note) == ({}, "")


def test_what_is_too_many_is_left_out_and_named() -> None:
    stored = {f"x-{number:03}": "v" for number in range(60)}
    found = forwarded_headers(stored, ["*"], own={"X-Own": "1"})
    assert len(found.headers) == MAX_HEADERS - 1
    assert found.left_out == tuple(f"x-{number:03}" for number in range(49, 60))
    assert found.note.startswith("sent without headers of the message: x-049, x-050,")
    assert "x-058, …" in found.note


def test_what_is_too_long_together_is_left_out_and_what_fits_is_sent() -> None:
    stored = {"x-a": "a" * 8000, "x-b": "b" * 8000, "x-c": "c"}
    found = forwarded_headers(stored, ["*"], own={})
    assert list(found.headers) == ["x-a", "x-c"]
    assert "x-b" in found.note
    own = {"X-Own": "o" * (MAX_TOTAL_LENGTH - 5)}
    assert forwarded_headers({"x-c": "c"}, ["*"], own=own).left_out == ("x-c",)


@given(st.dictionaries(st.text(max_size=10), st.text(max_size=20), max_size=5))
def test_what_is_sent_along_is_always_one_line(stored: dict[str, str]) -> None:
    for name, value in forwarded_headers(stored, ["*"], own={}).headers.items():
        assert is_sendable(name, value)
        assert not {"\r", "\n", "\0"} & set(value)
        value.encode()


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\rb", "a\nb", "a\0b", "\ud800"])
def test_a_value_with_a_line_break_is_left_out_however_it_came_to_be_stored(value: str) -> None:
    found = forwarded_headers({"x-a": value}, ["*"], own={})
    assert (found.headers, found.left_out) == ({}, ("x-a",))
