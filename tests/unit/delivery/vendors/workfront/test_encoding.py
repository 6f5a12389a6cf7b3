"""Workfront's base64Encoding: a script that encodes both states of an object."""

import base64
from typing import Any

import orjson
import pytest

from delivery.vendors.workfront.encoding import BASE64_SCRIPT
from subscriptions.scripts.jobs import Job, Output
from subscriptions.scripts.pool import pool
from tests.unit.delivery.vendors.workfront.test_translate import translated


@pytest.mark.parametrize("encoded", [False, "false", "", " ", None])
def test_no_encoding_may_be_said_in_each_way(encoded: Any) -> None:
    assert translated(base64Encoding=encoded).script == ""


@pytest.mark.parametrize("encoded", [True, "true", " TRUE "])
def test_an_encoding_is_a_script(encoded: Any) -> None:
    assert translated(base64Encoding=encoded).script == BASE64_SCRIPT


PROJECT = {"ID": "59d7ddf7", "name": "Ü “50 %” 🎉", "priority": 2, "groups": ["a"], "ownerID": None}


@pytest.mark.parametrize("length", range(4))
def test_the_script_encodes_both_states_and_nothing_else(length: int) -> None:
    body = {
        "eventType": "UPDATE",
        "newState": PROJECT | {"n": "é" * length},
        "oldState": {},
        "eventTime": {"nano": 1},
    }
    sent = orjson.loads(encoded_by_script(body) or b"")
    assert {name: sent[name] for name in ("eventType", "eventTime")} == {
        "eventType": "UPDATE",
        "eventTime": {"nano": 1},
    }
    for state in ("newState", "oldState"):
        assert orjson.loads(base64.b64decode(sent[state], validate=True)) == body[state]
    assert base64.b64decode(sent["oldState"]) == b"{}"


@pytest.mark.parametrize(
    "body", [{"newState": None}, {"newState": "ewo="}, {"more": 1}, [1], "text"]
)
def test_what_is_no_object_is_not_encoded(body: Any) -> None:
    sent = encoded_by_script(body)
    assert (orjson.loads(sent) if sent is not None else body) == body


def test_a_body_of_the_greatest_length_is_encoded_in_time() -> None:
    body = {"newState": {"text": "é" * (500 * 1024)}, "oldState": {}}
    sent = encoded_by_script(body)
    assert sent is not None
    assert orjson.loads(base64.b64decode(orjson.loads(sent)["newState"])) == body["newState"]


def encoded_by_script(body: Any) -> bytes | None:
    job = Job(script=BASE64_SCRIPT, message=orjson.dumps(body).decode(), is_json=True, headers="{}")
    (result,) = pool().run([job], seconds=0).result()
    assert isinstance(result, Output), result
    return result.body
