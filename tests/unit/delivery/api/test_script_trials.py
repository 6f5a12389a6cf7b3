"""Script trials by REST: on the sample, a body, a stored message; nothing is stored or sent."""

from typing import Any

import pytest

from delivery.models import Delivery
from subscriptions.models import Kind, Mode, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, fields_of, refused

SCRIPT = (
    "$outmessage = {id: $inmessage.id}; $param = $inmessage.id; "
    "$outheader = {'X-From': $inheader.FROM};"
)


@pytest.fixture
def row(db: None) -> Subscription:
    return factories.subscription(event_type=factories.event_type("Made", sample={"id": "sample"}))


def tried(manager: Caller, row: Subscription, **body: Any) -> dict[str, Any]:
    answer = manager.post(f"subscriptions/{row.pk}/try", body)
    assert answer.status == 200, answer
    return dict(answer.body)


def test_a_script_is_tried_on_the_sample_before_it_is_saved(
    manager: Caller, row: Subscription
) -> None:
    assert tried(manager, row, script=SCRIPT, headers={"From": "us"}) == {
        "error": None,
        "line": None,
        "column": None,
        "body": '{"id":"sample"}',
        "content_type": "application/json",
        "headers": {"X-From": "us"},
        "path": "/sample",
        "status_code": None,
        "warnings": [],
    }
    row.refresh_from_db()
    assert row.script == ""
    assert not Delivery.objects.exists()


def test_the_stored_script_is_tried_unless_another_is_given(manager: Caller) -> None:
    row = factories.subscription(script="$outmessage = 'stored';")
    assert tried(manager, row, body=1)["body"] == "stored"


def test_a_script_is_tried_on_a_stored_message_with_its_headers(
    manager: Caller, row: Subscription
) -> None:
    message = factories.message(
        b'{"id": "m1"}', event_type=row.event_type, headers={"from": "them"}
    )
    said = tried(manager, row, script=SCRIPT, message=message.public_id)
    assert (said["body"], said["headers"]) == ('{"id":"m1"}', {"X-From": "them"})


def test_a_message_of_another_event_type_is_refused(manager: Caller, row: Subscription) -> None:
    other = factories.message()
    answer = manager.post(
        f"subscriptions/{row.pk}/try", {"script": "1;", "message": other.public_id}
    )
    assert fields_of(refused(answer, 400)) == {"message"}


def test_an_unset_output_is_reported_as_null(manager: Caller, row: Subscription) -> None:
    assert tried(manager, row, script="var nothing;")["body"] is None


@pytest.mark.parametrize(
    ("script", "error", "line", "column"),
    [
        ("var a;\n  var = 1;", "SyntaxError", 2, 7),
        ("var a;\n\n$inmessage.none.at = a;", "TypeError", 3, None),
        ("while (true) {}", "500 ms", 1, None),
    ],
)
def test_a_fault_is_reported_with_its_place(
    manager: Caller, row: Subscription, script: str, error: str, line: int, column: int | None
) -> None:
    said = tried(manager, row, script=script)
    assert error in said["error"]
    assert said["line"] == line
    assert column is None or said["column"] == column
    assert said["body"] is None


def test_the_answer_of_a_sync_subscription_is_tried_whatever_its_endpoint(
    manager: Caller, db: None
) -> None:
    row = factories.subscription(event_type=factories.event_type("Asked", kind=Kind.SYNC))
    said = tried(manager, row, script="$statuscode = 400; $outmessage = 'no';", body={})
    assert (said["status_code"], said["body"], said["content_type"]) == (
        400,
        "no",
        "text/plain; charset=utf-8",
    )


def test_a_text_is_tried_as_it_is(manager: Caller, db: None) -> None:
    row = factories.subscription(event_type=factories.event_type("Text", content_type="text/plain"))
    assert (
        tried(manager, row, script="$outmessage = $inmessage.length;", body="four")["body"] == "4"
    )
    refusal = refused(manager.post(f"subscriptions/{row.pk}/try", {"script": "1;", "body": 4}), 400)
    assert fields_of(refusal) == {"body"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "script"),
        ({"script": "1;", "message": "msg_1", "body": 1}, ""),
        ({"script": "1;", "message": "none"}, "message"),
        ({"script": "1;"}, "body"),
        ({"script": "1;", "more": 1}, "more"),
    ],
)
def test_a_trial_without_script_or_message_is_refused(
    manager: Caller, db: None, body: dict[str, Any], field: str
) -> None:
    row = factories.subscription()
    problem = refused(manager.post(f"subscriptions/{row.pk}/try", body), 400)
    assert {error["field"].removesuffix("non_field_errors") for error in problem["errors"]} == {
        field
    }


def test_a_script_without_effect_is_not_tried(manager: Caller, db: None) -> None:
    queue = factories.subscription(event_type=factories.event_type("Job", kind=Kind.QUEUE))
    pull = factories.subscription(mode=Mode.PULL, endpoint="")
    for row in (queue, pull):
        answer = manager.post(f"subscriptions/{row.pk}/try", {"script": "1;", "body": 1})
        assert fields_of(refused(answer, 400)) == {"script"}


def test_numbers_that_a_script_cannot_keep_are_named(manager: Caller, row: Subscription) -> None:
    message = factories.message(b'{"id": 9007199254740993, "id": -0}', event_type=row.event_type)
    said = tried(manager, row, script="$outmessage = $intext;", message=message.public_id)
    assert said["body"] == '{"id": 9007199254740993, "id": -0}'
    assert said["warnings"] == [
        "the number 9007199254740993 becomes 9007199254740992",
        "the number -0 becomes 0",
        "the name 'id' stands 2 times; the last one counts",
    ]
