"""The script tester: the script as typed, tried by those who may edit it.

It is tried on the sample, a stored message or one's own.
"""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from delivery.models import PayloadView
from subscriptions.models import EventType, Kind
from tests.support import factories

ADDRESS = "/admin/subscriptions/subscription/script-test/"
SCRIPT = "var made = $inmessage.id;\r\n$outmessage = {made: made};"


@pytest.fixture
def event_type(db: None) -> EventType:
    return factories.event_type("Made", sample={"id": "from-sample"})


def tried(client: Client, of: EventType, **typed: Any) -> str:
    answer = client.post(ADDRESS, {"event_type": of.pk, "script": SCRIPT} | typed)
    assert answer.status_code == 200
    return answer.text


def test_a_new_script_is_tried_on_the_sample(ann: Client, event_type: EventType) -> None:
    said = tried(ann, event_type)
    assert "{&quot;made&quot;:&quot;from-sample&quot;}" in said
    assert "Request to the endpoint" in said


def test_a_script_is_tried_on_a_message_of_ones_own(ann: Client, event_type: EventType) -> None:
    script = "$outmessage = $inheader.FILTER_STRING + $inmessage.id;"
    typed = {"tried_body": '{"id": 7}', "tried_headers": "FILTER_STRING: proj"}
    assert "proj7" in tried(ann, event_type, script=script, tried_on="own", **typed)
    assert "Line 1 is not a header" in tried(ann, event_type, tried_on="own", tried_headers="none")


def test_a_script_is_tried_on_the_newest_message_or_a_chosen_one(
    ann: Client, event_type: EventType
) -> None:
    first, second = (
        factories.message(json.dumps({"id": f"seen-{number}"}).encode(), event_type=event_type)
        for number in range(2)
    )
    said = tried(ann, event_type, tried_on="last")
    assert "{&quot;made&quot;:&quot;seen-1&quot;}" in said
    assert f'"tried_message": "{first.pk}"' in said
    assert "seen-0" in tried(ann, event_type, tried_on="last", tried_message=first.pk)
    assert set(PayloadView.objects.values_list("message_id", flat=True)) == {first.pk, second.pk}


def test_a_message_of_another_event_type_is_not_shown(ann: Client, event_type: EventType) -> None:
    factories.message(event_type=event_type)
    other = factories.message(b'{"id": "of-another"}')
    assert "of-another" not in tried(ann, event_type, tried_on="last", tried_message=other.pk)


def test_who_may_not_see_payloads_tries_no_stored_message(event_type: EventType) -> None:
    user = User.objects.create_user("eve", is_staff=True)
    user.groups.add(Group.objects.get(name="Administrators"))
    payloads = Permission.objects.get(codename="view_payload")
    Group.objects.get(name="Administrators").permissions.remove(payloads)
    client = Client()
    client.force_login(user)
    factories.message(b'{"id": "secret"}', event_type=event_type)
    said = tried(client, event_type, tried_on="last")
    assert "secret" not in said
    assert "You may not see payloads" in said
    assert "from-sample" in tried(client, event_type)


def test_a_fault_names_its_line_and_marks_its_place(ann: Client, event_type: EventType) -> None:
    said = tried(ann, event_type, script="var a;\r\n$inmessage.none.at = 1;")
    assert 'data-script-line="2"' in said
    assert 'data-script-go="2:' in said
    assert "$inmessage.none.at = 1;\n" in said
    assert "TypeError" in said


def test_the_syntax_is_checked_while_somebody_types(ann: Client, event_type: EventType) -> None:
    said = ann.post(ADDRESS, {"script": "var a;\r\n  var = 1;", "check": "1"}).text
    assert 'data-script-go="2:7"' in said
    assert "Valid script." in ann.post(ADDRESS, {"script": SCRIPT, "check": "1"}).text
    assert not ann.post(ADDRESS, {"script": "", "check": "1"}).text.strip()


def test_the_answer_of_a_sync_subscription_is_shown_with_its_status(ann: Client, db: None) -> None:
    row = factories.subscription(
        event_type=factories.event_type("Asked", kind=Kind.SYNC, sample={})
    )
    script = "$statuscode = 403; $outmessage = 'refused';"
    said = ann.post(ADDRESS, {"tried_subscription": row.pk, "script": script}).text
    assert "Response to the publisher" in said
    assert "<code>403</code>" in said
    assert "refused" in said


@pytest.mark.parametrize(
    ("typed", "note"),
    [
        ({"script": " "}, "Write a script first."),
        ({"event_type": ""}, "Choose an event type first"),
        ({"tried_on": "last"}, "No message of Made is stored yet"),
        ({"tried_on": "last", "event_type": ""}, "Choose an event type first"),
    ],
)
def test_the_tester_says_what_is_missing(
    ann: Client, event_type: EventType, typed: dict[str, str], note: str
) -> None:
    assert note in tried(ann, event_type, **typed)


def test_an_event_type_without_sample_is_named(ann: Client, db: None) -> None:
    assert "Bare has no sample" in tried(ann, factories.event_type("Bare"))


@pytest.mark.parametrize("role", ["Support", "Auditors"])
def test_only_those_who_edit_scripts_try_them(event_type: EventType, role: str) -> None:
    user = User.objects.create_user("sue", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    row = factories.subscription(event_type=event_type, script="$outmessage = 1;")
    assert client.post(ADDRESS, {"tried_subscription": row.pk, "script": SCRIPT}).status_code == 403
    assert client.post(ADDRESS, {"event_type": event_type.pk, "script": SCRIPT}).status_code == 403
    assert (
        "Test the script"
        not in client.get(f"/admin/subscriptions/subscription/{row.pk}/change/").text
    )


def test_numbers_that_a_script_cannot_keep_are_named(ann: Client, event_type: EventType) -> None:
    typed = {"tried_on": "own", "tried_body": '{"id": 0.1000000000000000055}'}
    said = tried(ann, event_type, **typed)
    assert "the number 0.1000000000000000055 becomes 0.1" in said
    assert "<code>$intext</code>" in said
    assert "JavaScript cannot keep" not in tried(ann, event_type)
