"""Only users with the right see payloads, and each view is logged."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from delivery.models import PayloadView
from delivery.states import Status
from delivery.support.payload import log_view, may_see_payload
from tests.support import factories

BODY = b'{"secret": "of-the-body"}'
HEADERS = {"x-trace": "of-the-header", "filter-string": "of-the-header"}


@pytest.fixture
def paula(db: None) -> User:
    """An auditor."""
    user = User.objects.create_user("paula", is_staff=True)
    user.groups.add(Group.objects.get(name="Auditors"))
    return user


@pytest.fixture
def visitor(paula: User) -> Client:
    client = Client()
    client.force_login(paula)
    return client


def deny(role: str) -> None:
    group = Group.objects.get(name=role)
    group.permissions.remove(group.permissions.get(codename="view_payload"))


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["Administrators", "Support", "Auditors"])
def test_each_role_sees_payloads_until_the_right_is_taken_away(role: str) -> None:
    user = User.objects.create_user("una", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    assert may_see_payload(User.objects.get(pk=user.pk))
    deny(role)
    assert not may_see_payload(User.objects.get(pk=user.pk))


def test_views_within_an_hour_are_added_up(paula: User) -> None:
    message = factories.message()
    for _ in range(3):
        log_view(paula, message.pk)
    seen = PayloadView.objects.get()
    assert (seen.actor, seen.message_id, seen.views) == ("paula", message.pk, 3)
    assert seen.hour <= seen.first_at <= seen.last_at
    assert (seen.hour.minute, seen.hour.second) == (0, 0)


def test_another_hour_or_message_or_person_is_another_row(paula: User) -> None:
    first, second = factories.message(), factories.message()
    log_view(paula, first.pk)
    PayloadView.objects.update(hour="2026-01-01T00:00:00Z")
    log_view(paula, first.pk)
    log_view(paula, second.pk)
    log_view(User.objects.create_user("ulf"), first.pk)
    assert PayloadView.objects.count() == 4


def test_opening_or_downloading_a_message_is_logged(visitor: Client) -> None:
    message = factories.message(BODY, headers=HEADERS)
    page = visitor.get(f"/admin/delivery/message/{message.pk}/change/").text
    assert "of-the-body" in page
    assert "of-the-header" in page
    assert b"of-the-body" in visitor.get(f"/admin/delivery/message/{message.pk}/raw/").content
    assert PayloadView.objects.get().views == 2


@pytest.mark.parametrize(
    "address",
    [
        "delivery/message/?body__contains=of-the-body",
        "delivery/message/?headers__x-trace=of-the-header",
        "delivery/delivery/?message__body__contains=of-the-body",
        "subscriptions/apikey/?hash__startswith=a",
        "auth/user/?password__startswith=p",
        "auth/user/?groups__user__password__startswith=p",
    ],
)
def test_hidden_payloads_cannot_be_reached_by_address(ann: Client, address: str) -> None:
    factories.message(BODY, headers=HEADERS)
    assert ann.get(f"/admin/{address}").status_code == 400


def test_a_person_without_the_right_sees_the_rest_and_is_not_logged(visitor: Client) -> None:
    deny("Auditors")
    message = factories.message(BODY, headers=HEADERS)
    delivery = factories.delivery(Status.REJECTED, message=message, attempts=1)
    factories.subscription("picky", event_type=message.event_type, header_filter_string="other")
    factories.attempt(delivery, excerpt=b"of-the-answer")
    pages = [
        visitor.get(f"/admin/delivery/{page}/change/").text
        for page in (f"message/{message.pk}", f"delivery/{delivery.pk}")
    ]
    for page in pages:
        assert "REJECTED" in page
        for hidden in ("of-the-body", "of-the-header", "of-the-answer"):
            assert hidden not in page
    assert "x-trace" in pages[0]
    assert "it has another FILTER_STRING header" in pages[0]
    assert "You may not see payloads" in pages[0]
    assert visitor.get(f"/admin/delivery/message/{message.pk}/raw/").status_code == 403
    assert not PayloadView.objects.exists()
