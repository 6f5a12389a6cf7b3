"""Failed sign-ins at one door, or of strangers at one address, do not lock out the owner."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from subscriptions import sign_in
from subscriptions.models import Door, SignIn
from subscriptions.sign_in import ThrottledError, Visitor
from tests.unit.delivery.console.people.test_sign_in import PASSWORD, fail, try_to


@pytest.fixture
def una(db: None) -> User:
    return User.objects.create_user("una", password=PASSWORD, is_staff=True)


def test_failures_at_another_door_lock_only_that_door(una: User, client: Client) -> None:
    now = timezone.now()
    for door in (Door.EVENT_QUEUE, Door.TEAMFORGE):
        for number in range(30):
            stranger = Visitor(door=door, username=f"queue {number}", address="127.0.0.1")
            sign_in.begin_sign_in(stranger, now=now)
        with pytest.raises(ThrottledError):
            sign_in.begin_sign_in(
                Visitor(door=door, username="queue", address="127.0.0.1"), now=now
            )
    assert try_to(client, password=PASSWORD).status_code == 302


def test_wrong_passwords_at_the_login_of_teamforge_do_not_lock_the_console(
    una: User, client: Client
) -> None:
    statuses = []
    for number in range(31):
        given = {"Username": f"name{number}", "Password": "wrong"}
        answer = client.post("/inbox/login", given, content_type="application/json")
        statuses.append(answer.status_code)
    assert statuses[-1] == 429
    assert try_to(client, password=PASSWORD).status_code == 302
    assert set(SignIn.objects.values_list("door", flat=True)) == {"TEAMFORGE", "CONSOLE"}


def test_strangers_of_the_same_address_do_not_lock_out_who_signed_in_there(
    una: User, client: Client
) -> None:
    try_to(Client(), password=PASSWORD)
    for number in range(30):
        fail(Client(), 1, name=f"name{number}")
    assert try_to(Client(), name="other", password=PASSWORD).status_code == 429
    assert try_to(client, password=PASSWORD).status_code == 302


def test_strangers_who_know_the_name_do_not_lock_out_the_owners_browser(
    una: User, client: Client
) -> None:
    try_to(client, password=PASSWORD)
    client.post("/admin/logout/")
    fail(Client(), 6)
    assert try_to(Client(), password=PASSWORD).status_code == 429
    assert try_to(client, password=PASSWORD).status_code == 302


def test_a_known_browser_has_five_guesses_of_its_own_and_for_its_account_only(
    una: User, client: Client
) -> None:
    User.objects.create_user("ben", password=PASSWORD, is_staff=True)
    try_to(client, password=PASSWORD)
    client.post("/admin/logout/")
    fail(client, 5)
    assert try_to(client, password=PASSWORD).status_code == 429
    assert try_to(Client(), password=PASSWORD).status_code == 302
    fail(Client(), 5, name="ben")
    assert try_to(client, name="ben", password=PASSWORD).status_code == 429


def test_the_cookie_of_a_known_browser_cannot_be_made_up(una: User, client: Client) -> None:
    try_to(client, password=PASSWORD)
    (cookie,) = (morsel for name, morsel in client.cookies.items() if name.endswith("_known"))
    assert (cookie["path"], cookie["httponly"]) == ("/admin/login/", True)
    client.post("/admin/logout/")
    client.cookies[cookie.key] = cookie.value[:-1] + ("a" if cookie.value[-1] != "a" else "b")
    fail(client, 5)
    assert try_to(Client(), password=PASSWORD).status_code == 429
