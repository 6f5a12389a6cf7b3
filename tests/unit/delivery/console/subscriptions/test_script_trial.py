"""Scripts in the console: a subscription's form, and outputs on a delivery's page."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from delivery.console.messages import curl
from delivery.models import Delivery, ScriptOutput
from delivery.states import Status
from subscriptions.models import Kind, Subscription
from tests.support import factories
from tests.unit.delivery.console.subscription_form import form_values

ADD = "/admin/subscriptions/subscription/add/"


@pytest.fixture
def values(db: None) -> dict[str, Any]:
    return form_values()


def test_a_script_is_saved_with_the_lines_of_its_author(
    ann: Client, values: dict[str, Any]
) -> None:
    ann.post(ADD, values | {"script": "var a;\r\n$outmessage = a;\r\n"})
    assert Subscription.objects.get().script == "var a;\n$outmessage = a;\n"


def test_a_response_script_is_saved_with_the_endpoint_webr(
    ann: Client, values: dict[str, Any]
) -> None:
    sync = factories.event_type("Asked", kind=Kind.SYNC).pk
    ann.post(
        ADD, values | {"event_type": sync, "endpoint": "webr://", "script": "$statuscode = 400;"}
    )
    assert Subscription.objects.get().endpoint == "webr://"


@pytest.mark.parametrize("role", ["Support", "Auditors"])
def test_only_administrators_edit_scripts(db: None, role: str) -> None:
    user = User.objects.create_user("sue", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(user)
    row = factories.subscription(script="$outmessage = 1;")
    address = f"/admin/subscriptions/subscription/{row.pk}/change/"
    page = client.get(address)
    assert "$outmessage = 1;" in page.text
    assert '<textarea name="script"' not in page.text
    client.post(address, {"script": "$outmessage = 2;"})
    row.refresh_from_db()
    assert row.script == "$outmessage = 1;"


@pytest.fixture
def made(db: None) -> Delivery:
    subscription = factories.subscription(
        script="$outmessage = 'made';", endpoint="https://receiver.example/hook?a=1"
    )
    row = factories.delivery(Status.REJECTED, subscription=subscription)
    ScriptOutput.objects.create(
        pk=row.pk,
        script_version=1,
        body=b"<made>",
        headers={"X-Key": "seen-in-payload"},
        path="/artf1",
    )
    return Delivery.objects.select_related("message__event_type", "subscription").get(pk=row.pk)


def test_a_deliverys_page_shows_what_the_script_made(ann: Client, made: Delivery) -> None:
    page = ann.get(f"/admin/delivery/delivery/{made.pk}/change/").text
    assert "Output of the script" in page
    assert "&lt;made&gt;" in page
    assert "X-Key: seen-in-payload" in page


def test_who_may_not_see_payloads_sees_nothing_a_script_made_of_one(
    reader: Client, made: Delivery
) -> None:
    User.objects.get(username="ray").user_permissions.remove(
        Permission.objects.get(codename="view_payload")
    )
    page = reader.get(f"/admin/delivery/delivery/{made.pk}/change/").text
    assert "https://receiver.example/hook/•••?•••" in page
    assert "seen-in-payload" not in page
    assert "&lt;made&gt;" not in page
    assert "artf1" not in page


def test_a_copied_request_is_what_the_script_made(made: Delivery) -> None:
    command = curl.send_command(made)
    assert "printf %s '<made>'" in command
    assert "https://receiver.example/hook/artf1?a=1" in command
    assert "X-Key: seen-in-payload" in command
