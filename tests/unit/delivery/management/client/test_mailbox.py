"""Reading the answer of `next`: above all each body, byte for byte."""

from typing import Any

import orjson
import pytest

from delivery.management.client.mailbox import parse_messages

KNOWN = {
    "id": "msg_1",
    "event": "Test.Event",
    "published_at": "2026-11-21T22:53:01Z",
    "headers": {"content-type": "application/json", "body": "a header of that name"},
    "receipt": "r",
    "receive_count": 1,
    "ack": "http://127.0.0.1/ack",
}


def answer(*bodies: dict[str, Any]) -> bytes:
    """Return messages as Inturn writes them: with `body` in the middle."""
    first = dict(list(KNOWN.items())[:4])
    return orjson.dumps({"messages": [first | body | KNOWN for body in bodies]})


@pytest.mark.parametrize(
    "body",
    [
        "12345678901234567890123",
        "1.0",
        "1E300",
        '{ "b" : 1, "a":[ ] ,"a": {"body": [1, "}]"]}}',
        '"\\u00e9 é \\ud83d\\ude00 \\" }"',
        "null",
        '\n{"indented":\n  [1,\r\n\t2]}\n ',
        "9" * 300,
    ],
)
def test_a_json_body_has_its_published_bytes(body: str) -> None:
    (message, other) = parse_messages(answer({"body": orjson.Fragment(body)}, {"body": 2}))
    assert (message.body.decode(), message.is_json) == (body, True)
    assert other.body == b"2"


def test_any_other_body_is_bytes() -> None:
    (message,) = parse_messages(answer({"body_base64": "AP8="}))
    assert (message.body, message.is_json) == (b"\x00\xff", False)


def test_bodies_of_both_kinds_stay_with_their_messages() -> None:
    found = parse_messages(answer({"body_base64": "YQ=="}, {"body": []}, {"body_base64": "Yg=="}))
    assert [message.body for message in found] == [b"a", b"[]", b"b"]


def test_no_answer_is_no_message() -> None:
    assert parse_messages(b"") == []


def test_surrounding_fields_are_read_too() -> None:
    (message,) = parse_messages(answer({"body": 1}))
    assert (message.id, message.receipt, message.headers["body"]) == (
        "msg_1",
        "r",
        "a header of that name",
    )
