"""Built-in receivers in the console: requests, the switch, limits and rights."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from delivery.models import BuiltInReceiver, PayloadView, ReceivedRequest
from delivery.models.receiver import MOST_RECEIVERS
from delivery.receivers.stored_requests import url_of
from subscriptions.models import ConfigurationChange
from tests.support import factories
from tests.unit.delivery.console.refreshing import refresh

LIST = "/admin/delivery/builtinreceiver/"


@pytest.fixture
def receiver(db: None) -> BuiltInReceiver:
    return BuiltInReceiver.objects.create(name="example")


def page(receiver: BuiltInReceiver) -> str:
    return f"{LIST}{receiver.pk}/"


def received(receiver: BuiltInReceiver, body: bytes, **fields: object) -> ReceivedRequest:
    given = {
        "at": timezone.now(),
        "method": "POST",
        "headers": [["webhook-id", "msg_7"], ["x-forwarded", "a secret"]],
        "size": len(body),
        "signature": "VALID",
        "answer": "OK",
        "message_id": 7,
    }
    return ReceivedRequest.objects.create(receiver=receiver, body=body, **given | fields)


def test_the_page_shows_the_url_and_the_newest_request(
    ann: Client, receiver: BuiltInReceiver
) -> None:
    received(receiver, b"first")
    received(receiver, b"<second>", signature="INVALID")
    shown = ann.get(page(receiver)).text
    assert url_of(receiver) in shown
    assert "&lt;second&gt;" in shown
    assert "a secret" in shown
    assert ("signature valid" in shown, "signature invalid" in shown) == (True, True)
    assert "first" not in shown.partition('id="opened"')[2]


def test_another_request_can_be_opened(ann: Client, receiver: BuiltInReceiver) -> None:
    first = received(receiver, b"the first one")
    received(receiver, b"the second one")
    other = received(BuiltInReceiver.objects.create(name="other"), b"of another")
    shown = ann.get(page(receiver), {"request": first.pk}).text
    assert "the first one" in shown
    assert "the second one" not in shown
    assert "of another" not in ann.get(page(receiver), {"request": other.pk}).text


def test_the_opened_request_is_replaced_only_by_another_one(
    ann: Client, receiver: BuiltInReceiver
) -> None:
    first = received(receiver, b"the first one")
    after, chosen = (f"{page(receiver)}?{name}={first.pk}" for name in ("after", "request"))
    assert 'id="opened"' not in refresh(ann, after).text
    received(receiver, b"the second one")
    assert "the second one" in refresh(ann, after).text
    assert 'id="opened"' not in refresh(ann, chosen).text


def test_a_body_is_a_payload(ann: Client, receiver: BuiltInReceiver) -> None:
    received(receiver, b"the body")
    una = User.objects.create_user("una", is_staff=True)
    una.user_permissions.set(Permission.objects.filter(codename="view_builtinreceiver"))
    client = Client()
    client.force_login(una)
    shown = client.get(page(receiver)).text
    assert "the body" not in shown
    assert "a secret" not in shown
    assert "msg_7" in shown
    assert not PayloadView.objects.exists()
    ann.get(page(receiver))
    assert [(view.actor, view.message_id) for view in PayloadView.objects.all()] == [("ann", 7)]


def test_its_answer_is_switched_and_recorded(ann: Client, receiver: BuiltInReceiver) -> None:
    ann.post(f"{page(receiver)}answer/ERROR/", {"next": page(receiver)})
    receiver.refresh_from_db()
    assert receiver.answer == "ERROR"
    change = ConfigurationChange.objects.get()
    assert (change.object_name, change.after) == ("example", {"answer": "ERROR"})
    assert ann.post(f"{page(receiver)}answer/TEAPOT/").status_code == 404


def test_a_reader_has_no_switch(reader: Client, receiver: BuiltInReceiver) -> None:
    assert "/answer/" not in reader.get(page(receiver)).text
    assert reader.post(f"{page(receiver)}answer/ERROR/").status_code == 403


def test_there_is_a_limit_of_receivers(ann: Client, db: None) -> None:
    given = {"name": "mine", "description": "", "answer": "OK"}
    assert ann.post(f"{LIST}add/", given).status_code == 302
    assert len(BuiltInReceiver.objects.get().token) == 32
    for number in range(MOST_RECEIVERS - 1):
        BuiltInReceiver.objects.create(name=f"r{number}")
    assert "delete one that is not used" in ann.post(f"{LIST}add/", given | {"name": "x"}).text
    assert BuiltInReceiver.objects.count() == MOST_RECEIVERS
    changed = given | {"name": "renamed"}
    row = BuiltInReceiver.objects.get(name="mine")
    assert ann.post(f"{LIST}{row.pk}/change/", changed).status_code == 302


def test_it_stays_while_subscriptions_send_to_it(ann: Client, receiver: BuiltInReceiver) -> None:
    row = factories.subscription(endpoint=url_of(receiver))
    assert "has subscriptions that send to it" in ann.get(f"{page(receiver)}delete/").text
    ann.post(f"{page(receiver)}delete/", {"post": "yes"})
    assert BuiltInReceiver.objects.exists()
    row.secrets.all().delete()
    row.delete()
    received(receiver, b"")
    ann.post(f"{page(receiver)}delete/", {"post": "yes"})
    assert not BuiltInReceiver.objects.exists()


def test_its_page_names_the_subscriptions(ann: Client, receiver: BuiltInReceiver) -> None:
    assert "No subscription sends here yet" in ann.get(page(receiver)).text
    row = factories.subscription(endpoint=url_of(receiver))
    assert str(row) in ann.get(page(receiver)).text


def test_an_endpoint_of_it_is_accepted_by_the_form_without_any_network(
    ann: Client, receiver: BuiltInReceiver, no_networks: None
) -> None:
    given = {
        "name": "greetings",
        "subscriber": factories.subscriber().pk,
        "event_type": factories.event_type().pk,
        "mode": "PUSH",
        "policy": factories.policy("teamforge").pk,
    }
    add = "/admin/subscriptions/subscription/add/"
    refused = ann.post(add, given | {"endpoint": url_of(receiver) + "/x"}).text
    assert "is refused" in refused
    accepted = ann.post(add, given | {"endpoint": url_of(receiver)})
    assert "is refused" not in accepted.content.decode()
