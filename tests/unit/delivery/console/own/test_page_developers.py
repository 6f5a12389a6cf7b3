"""Developers of publishers: their own pages, and no way to the messages of others."""

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from delivery.console.own import admin
from delivery.database.connections import connection_parameters
from delivery.models import Delivery, PayloadView
from delivery.states import Status
from subscriptions.models import ConfigurationChange, Publisher
from tests.support import factories
from tests.unit.delivery.console.everything import make_everything
from tests.unit.delivery.console.matrix import DEVELOPER, MATRIX, address_of

SECRET = "payload-of-the-bank"


@pytest.fixture
def shop(db: None) -> Publisher:
    return factories.publisher("shop")


@pytest.fixture
def dora(shop: Publisher) -> Client:
    """A developer of shop."""
    user = User.objects.create_user("dora", is_staff=True)
    user.groups.add(Group.objects.get(name=DEVELOPER))
    shop.developers.add(user)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def own(shop: Publisher) -> Delivery:
    subscription = factories.subscription("orders", endpoint="https://crm.example/hook")
    message = factories.message(
        b'{"order": 1005}', publisher=shop, event_type=subscription.event_type
    )
    return factories.delivery(
        Status.REJECTED, message=message, subscription=subscription, reason="cancelled by ann"
    )


def secret_delivery() -> Delivery:
    message = factories.message(
        f'{{"order": "{SECRET}"}}'.encode(),
        publisher=factories.publisher("bank"),
        event_type=factories.event_type("Bank.Secret"),
        headers={"x-order": SECRET},
    )
    subscription = factories.subscription(event_type=message.event_type)
    return factories.delivery(Status.REJECTED, message=message, subscription=subscription)


def test_the_first_page_shows_what_became_of_their_messages(dora: Client, own: Delivery) -> None:
    secret_delivery()
    page = dora.get("/admin/").text
    assert own.message.public_id in page
    assert "Failed in the last 24 hours" in page
    assert f"/api/v1/events/{own.message.event_type.name}/messages" in page
    assert "bank" not in page


def test_a_message_shows_its_deliveries_reasons_and_the_api(dora: Client, own: Delivery) -> None:
    page = dora.get(f"/admin/delivery/ownmessage/{own.message_id}/change/").text
    for text in ("REJECTED", "it matches", "&quot;order&quot;: 1005", "/explain"):
        assert text in page
    for text in ("cancelled by ann", "crm.example", "/admin/subscriptions/"):
        assert text not in page
    assert PayloadView.objects.get().actor == "dora"


def test_without_the_right_to_payloads_the_body_is_left_out(dora: Client, own: Delivery) -> None:
    role = Group.objects.get(name=DEVELOPER)
    role.permissions.remove(role.permissions.get(codename="view_payload"))
    page = dora.get(f"/admin/delivery/ownmessage/{own.message_id}/change/").text
    assert "1005" not in page
    assert "REJECTED" in page


def test_lists_and_searches_find_their_own_only(dora: Client, own: Delivery) -> None:
    secret = secret_delivery()
    messages, deliveries = "/admin/delivery/ownmessage/", "/admin/delivery/owndelivery/"
    for query in ("", "?body=order&since=1970-01-01T00:00:00", "?status=REJECTED"):
        page = dora.get(messages + query).text
        assert own.message.public_id in page, query
        assert secret.message.public_id not in page, query
    for query in ("", "?status=REJECTED", f"?message={secret.message_id}"):
        assert secret.message.public_id + "<" not in dora.get(deliveries + query).text, query
    assert own.message.public_id in dora.get(deliveries).text
    assert dora.get(f"{messages}{secret.message_id}/change/").status_code == 404
    assert dora.get(f"{deliveries}{secret.pk}/change/").status_code == 404
    assert dora.get(f"{deliveries}{own.pk}/change/").status_code == 302


def test_no_page_of_the_console_leads_to_what_others_published(dora: Client) -> None:
    everything = make_everything()
    secret = secret_delivery()
    about_secret = {"object_id": secret.message_id, "message_id": secret.message_id}
    shown = set()
    for name in MATRIX:
        kind = "_".join(name.split("_")[:2])
        given = {kind: everything.get(kind, {}), name: everything.get(name, {})}
        if kind in ("delivery_message", "delivery_ownmessage", "delivery_archivefile"):
            given = {key: value | about_secret for key, value in given.items() if value}
        if kind in ("delivery_delivery", "delivery_owndelivery"):
            given = {key: value | {"object_id": secret.pk} for key, value in given.items()}
        # A refusal in one line takes less time than its page.
        answer = dora.get(address_of(name, everything | given), headers={"accept": "text/plain"})
        content = b"".join(answer) if answer.streaming else answer.content
        assert SECRET.encode() not in content, name
        if answer.status_code == 200 and content:
            shown.add(name)
    assert shown == {
        "index",
        "app_list",
        "sending_banner",
        "shown_once",
        "delivery_ownmessage_changelist",
        "delivery_owndelivery_changelist",
    }


def test_a_developer_of_nothing_reads_whom_to_ask(dora: Client, shop: Publisher) -> None:
    shop.developers.clear()
    assert "You are a developer of no publisher yet" in dora.get("/admin/").text
    assert "msg_" not in dora.get("/admin/delivery/ownmessage/").text.partition("result_list")[2]


def test_an_administrator_chooses_the_publishers(ann: Client, shop: Publisher) -> None:
    user = User.objects.create_user("dora", is_staff=True)
    role = Group.objects.get(name=DEVELOPER)
    given = {"username": "dora", "is_active": "on", "groups": [role.pk], "publishers": [shop.pk]}
    assert ">New publisher</a>" in ann.get(f"/admin/auth/user/{user.pk}/change/").text
    assert ann.post(f"/admin/auth/user/{user.pk}/change/", given).status_code == 302
    assert list(shop.developers.all()) == [user]
    change = ConfigurationChange.objects.get(object_type="user")
    assert change.after == {"groups": [DEVELOPER], "publishers": ["shop"]}


def test_nobody_opens_messages_that_they_do_not_see(db: None, shop: Publisher) -> None:
    """Who manages people, but sees no messages, neither names publishers nor takes over dora."""
    lead = User.objects.create_user("lead", is_staff=True)
    group = Group.objects.create(name="Leads")
    codenames = ["view_user", "change_user", "view_ownmessage", "view_owndelivery", "view_payload"]
    group.permissions.set(
        permission
        for permission in Group.objects.get(name="Administrators").permissions.all()
        if permission.codename in codenames
    )
    lead.groups.add(group)
    client = Client()
    client.force_login(lead)
    given = {"username": "lead", "is_active": "on", "groups": [group.pk], "publishers": [shop.pk]}
    assert client.post(f"/admin/auth/user/{lead.pk}/change/", given).status_code == 302
    assert not shop.developers.exists()
    dora = User.objects.create_user("dora", is_staff=True)
    shop.developers.add(dora)
    new = {"password1": "another long password", "password2": "another long password"}
    assert client.post(f"/admin/auth/user/{dora.pk}/password/", new).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_a_list_that_takes_too_long_leads_to_the_messages(
    dora: Client, own: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin, "LONGEST_SECONDS", 0.05)
    with psycopg.connect(**connection_parameters()) as other:
        other.execute("LOCK TABLE delivery_settled IN ACCESS EXCLUSIVE MODE")
        answer = dora.get("/admin/delivery/owndelivery/")
    assert answer.headers["location"] == "/admin/delivery/ownmessage/"
    assert "not found within 10 seconds" in dora.get(answer.headers["location"]).text
