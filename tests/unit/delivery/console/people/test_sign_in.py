"""Signing in: recorded, throttled after too many failures, and unlocked by an administrator."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from delivery.console.people.sign_in import throttled
from subscriptions import sign_in
from subscriptions.models import ConfigurationChange, Door, SignIn
from subscriptions.sign_in import ThrottledError, Visitor

PASSWORD = "correct horse battery"
OTHER = "198.51.100.7"


@pytest.fixture
def una(db: None) -> User:
    return User.objects.create_user("una", password=PASSWORD, is_staff=True)


def try_to(client: Client, *, name: str = "una", password: str = "", **extra: Any) -> HttpResponse:
    given = {"username": name, "password": password or "wrong"}
    answer: Any = client.post("/admin/login/", given, **extra)
    return answer  # type: ignore[no-any-return]


def fail(client: Client, times: int, **given: Any) -> None:
    for _ in range(times):
        try_to(client, **given)


def pass_time(span: timedelta) -> None:
    for row in SignIn.objects.all():
        SignIn.objects.filter(pk=row.pk).update(at=row.at - span)


def kinds() -> list[str]:
    return list(SignIn.objects.order_by("id").values_list("kind", flat=True))


class TestRecord:
    def test_sign_ins_and_sign_outs_are_recorded_with_the_address(
        self, una: User, client: Client
    ) -> None:
        try_to(client)
        try_to(client, password=PASSWORD)
        client.post("/admin/logout/")
        assert kinds() == ["FAILED", "SIGNED_IN", "SIGNED_OUT"]
        assert set(SignIn.objects.values_list("username", "address")) == {("una", "127.0.0.1")}

    def test_an_unknown_name_is_not_stored_because_it_may_be_a_password(
        self, db: None, client: Client
    ) -> None:
        try_to(client, name="hunter2")
        row = SignIn.objects.get()
        assert (row.kind, row.username) == ("FAILED", "")
        assert "hunter2" not in str(SignIn.objects.values().get())

    def test_signing_out_without_a_session_is_not_recorded(self, db: None, client: Client) -> None:
        client.post("/admin/logout/")
        assert kinds() == []

    def test_a_person_without_access_to_the_console_counts_as_failed(
        self, una: User, client: Client
    ) -> None:
        User.objects.update(is_staff=False)
        try_to(client, password=PASSWORD)
        assert kinds() == ["FAILED"]

    def test_can_be_read_by_auditors(self, una: User, client: Client) -> None:
        una.groups.add(Group.objects.get(name="Auditors"))
        try_to(client, password=PASSWORD, REMOTE_ADDR=OTHER)
        page = client.get("/admin/subscriptions/signin/?kind=SIGNED_IN&username=una").text
        assert OTHER in page
        assert OTHER in client.get(f"/admin/subscriptions/signin/?address={OTHER}").text
        assert (
            "No sign-ins found" in client.get("/admin/subscriptions/signin/?username=nobody").text
        )


class TestThrottling:
    def test_after_five_failures_even_the_right_password_has_to_wait(
        self, una: User, client: Client
    ) -> None:
        fail(client, 5)
        answer = try_to(client, password=PASSWORD)
        assert answer.status_code == 429
        assert 0 < int(answer.headers["Retry-After"]) <= 15 * 60 + 1
        assert "Too many sign-ins failed. Try again in 14 min" in answer.text
        assert "UTC, or ask an administrator" in answer.text
        assert "_auth_user_id" not in client.session

    def test_ends_when_the_first_failure_is_a_quarter_of_an_hour_old(
        self, una: User, client: Client
    ) -> None:
        fail(client, 5)
        pass_time(timedelta(minutes=15))
        assert try_to(client, password=PASSWORD).status_code == 302

    def test_a_wait_is_recorded_once(self, una: User, client: Client) -> None:
        fail(client, 9)
        assert kinds() == [*["FAILED"] * 5, "REFUSED"]

    def test_a_success_clears_earlier_failures(self, una: User, client: Client) -> None:
        fail(client, 4)
        try_to(client, password=PASSWORD)
        fail(client, 4)
        assert try_to(client, password=PASSWORD).status_code == 302

    def test_does_not_hold_back_the_same_person_elsewhere(self, una: User, client: Client) -> None:
        fail(client, 5, REMOTE_ADDR=OTHER)
        assert try_to(client, password=PASSWORD).status_code == 302

    def test_does_not_hold_back_others_of_the_same_place_at_first(
        self, una: User, client: Client
    ) -> None:
        fail(client, 5, name="somebody")
        assert try_to(client, password=PASSWORD).status_code == 302

    def test_an_unknown_name_gets_the_same_answer(self, una: User, client: Client) -> None:
        fail(client, 5, name="nobody")
        assert try_to(client, name="nobody").status_code == 429
        assert try_to(client, name="nobody2").status_code == 200

    def test_an_address_that_tries_many_names_waits_for_every_name(self, una: User) -> None:
        now = timezone.now()
        for number in range(30):
            sign_in.begin_sign_in(
                Visitor(door=Door.CONSOLE, username=f"name{number}", address=OTHER), now=now
            )
        with pytest.raises(ThrottledError):
            sign_in.begin_sign_in(
                Visitor(door=Door.CONSOLE, username="una", address=OTHER), now=now
            )

    def test_an_account_that_is_tried_from_everywhere_waits(self, una: User) -> None:
        now = timezone.now()
        for number in range(100):
            sign_in.begin_sign_in(
                Visitor(door=Door.CONSOLE, username="una", address=f"198.51.{number}.1"), now=now
            )
        with pytest.raises(ThrottledError):
            sign_in.begin_sign_in(
                Visitor(door=Door.CONSOLE, username="una", address="127.0.0.1"), now=now
            )

    def test_an_account_that_is_tried_from_everywhere_does_not_wait_where_it_is_at_home(
        self, una: User
    ) -> None:
        try_to(Client(REMOTE_ADDR=OTHER), password=PASSWORD)
        for number in range(100):
            fail(Client(REMOTE_ADDR=f"203.0.113.{number}"), 1)
        assert try_to(Client(REMOTE_ADDR="203.0.113.200"), password=PASSWORD).status_code == 429
        assert try_to(Client(REMOTE_ADDR=OTHER), password=PASSWORD).status_code == 302

    def test_all_addresses_of_an_ipv6_network_count_as_one(self, una: User) -> None:
        now = timezone.now()
        for number in range(5):
            sign_in.begin_sign_in(
                Visitor(door=Door.CONSOLE, username="una", address=f"2001:db8:1:2::{number}"),
                now=now,
            )
        with pytest.raises(ThrottledError):
            sign_in.begin_sign_in(
                Visitor(door=Door.CONSOLE, username="una", address="2001:db8:1:2:ffff::1"), now=now
            )
        sign_in.begin_sign_in(
            Visitor(door=Door.CONSOLE, username="una", address="2001:db8:1:3::1"), now=now
        )


class TestClientAddress:
    def test_without_a_proxy_the_header_is_a_strangers(self, una: User, client: Client) -> None:
        fail(client, 1, HTTP_X_FORWARDED_FOR=OTHER)
        assert SignIn.objects.get().address == "127.0.0.1"

    def test_behind_one_only_its_own_entry_is_believed(
        self, una: User, client: Client, settings: Settings
    ) -> None:
        settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
        fail(client, 1, HTTP_X_FORWARDED_FOR=f"192.0.2.1, {OTHER}")
        assert SignIn.objects.get().address == OTHER

    def test_nonsense_is_no_address(self, una: User, client: Client, settings: Settings) -> None:
        settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
        fail(client, 1, HTTP_X_FORWARDED_FOR="nonsense")
        assert SignIn.objects.get().address is None


class TestEndingTheWait:
    def test_an_administrator_sees_waiting_accounts_and_ends_the_wait(
        self, una: User, ann: Client, client: Client
    ) -> None:
        fail(client, 5, REMOTE_ADDR=OTHER)
        (waits,) = throttled(now=timezone.now())
        page = ann.get("/admin/subscriptions/signin/").text
        assert "Locked out" in page
        assert f"/admin/subscriptions/signin/{waits.pk}/let-in/" in page
        ann.post(f"/admin/subscriptions/signin/{waits.pk}/let-in/")
        assert throttled(now=timezone.now()) == []
        assert try_to(client, password=PASSWORD, REMOTE_ADDR=OTHER).status_code == 302
        change = ConfigurationChange.objects.get()
        assert (change.actor, change.action, change.before) == ("ann", "let in", {"failures": 5})

    def test_an_auditor_sees_waiting_accounts_without_a_button(
        self, una: User, reader: Client, client: Client
    ) -> None:
        fail(client, 5)
        page = reader.get("/admin/subscriptions/signin/").text
        assert "Locked out" in page
        assert "formaction" not in page
        failure = SignIn.objects.filter(counts=True).first()
        assert failure is not None
        assert reader.post(f"/admin/subscriptions/signin/{failure.pk}/let-in/").status_code == 403
        assert SignIn.objects.filter(counts=True).count() == 5


@pytest.mark.django_db(transaction=True)
def test_guesses_at_the_same_moment_count_each_other() -> None:
    begun, refused = [], []
    barrier = threading.Barrier(12)
    now = timezone.now()

    def guess() -> None:
        try:
            barrier.wait()
            begun.append(
                sign_in.begin_sign_in(
                    Visitor(door=Door.CONSOLE, username="una", address=OTHER), now=now
                )
            )
        except ThrottledError as error:
            refused.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=guess) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(begun), len(refused)) == (5, 7)


def test_changing_ones_own_password_is_a_recorded_change(una: User, client: Client) -> None:
    client.force_login(una)
    new = "another long password"
    given = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert client.post("/admin/password_change/", given).status_code == 302
    change = ConfigurationChange.objects.get()
    assert (change.actor, change.object_name, change.after) == (
        "una",
        "una",
        {"password": "•••, new value"},
    )


def test_the_form_says_only_that_there_is_a_password(ann: Client) -> None:
    user = User.objects.create_user("lena", password="a-long-pass-phrase")
    address = f"/admin/auth/user/{user.pk}/change/"
    assert "A password is set." in ann.get(address).text
    assert "algorithm" not in ann.get(address).text
    user.set_unusable_password()
    user.save()
    assert "No password is set." in ann.get(address).text
