"""Configuring in the console: the API's refusals, hidden secrets, logged changes."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from delivery.console.shared import header_lines
from delivery.lifecycle import notifier
from subscriptions.changes import MASKED
from subscriptions.models import ConfigurationChange, EventType, Publisher, Subscriber, Subscription
from subscriptions.values.header_values import HeaderError
from tests.support import factories
from tests.unit.delivery.console.subscription_form import errors, form_values

ROOT = "/admin/subscriptions"
NO_ROWS = {
    f"{rows}-{n}_FORMS": "0" for rows in ("keys", "publish_ids") for n in ("TOTAL", "INITIAL")
}


class TestSubscription:
    @pytest.fixture
    def values(self, db: None) -> dict[str, Any]:
        return form_values()

    def test_is_created_with_a_secret_shown_once(self, ann: Client, values: dict[str, Any]) -> None:
        page = ann.post(f"{ROOT}/subscription/add/", values, follow=True)
        subscription = Subscription.objects.get()
        secret = subscription.secrets.get().secret
        assert secret in page.text
        assert "no-store" in page.headers["Cache-Control"]
        assert secret not in ann.get("/admin/shown-once/").text
        assert secret not in ann.get(f"{ROOT}/subscription/{subscription.pk}/change/").text

    @pytest.mark.parametrize(
        ("field", "wrong", "said"),
        [
            ("endpoint", "", "A PUSH subscription needs an endpoint"),
            ("endpoint", "ftp://127.0.0.1/", "begins with https:// or http://"),
            ("endpoint", "https://10.0.0.1/hook", "10.0.0.1 is refused"),
            ("filter", "$$->'Body' = = 1", "(line 1, column 14)"),
            ("header_lines", "webhook-id: 1", "is set by Inturn itself"),
            ("header_lines", "no colon", "Line 1 is not a header"),
            ("header_lines", f"X-New: {MASKED}", "no value of X-New is stored"),
            ("name", "with space", "Use letters"),
            ("timeout_seconds", "500", "less than or equal"),
            ("header_filter_string", "proj\x011", "holds a control character"),
        ],
    )
    def test_shows_errors_at_their_field(
        self, ann: Client, values: dict[str, Any], field: str, wrong: str, said: str
    ) -> None:
        answer = ann.post(f"{ROOT}/subscription/add/", values | {field: wrong})
        assert said in " ".join(errors(answer)[field])
        assert not Subscription.objects.exists()

    def test_incomplete_credentials_are_refused(self, ann: Client, values: dict[str, Any]) -> None:
        answer = ann.post(f"{ROOT}/subscription/add/", values | {"auth_type": "bearer"})
        assert "token" in errors(answer)["auth_type"][0]

    @pytest.fixture
    def stored(self, values: dict[str, Any]) -> Subscription:
        return factories.subscription(
            "artifacts",
            subscriber=Subscriber.objects.get(),
            event_type=EventType.objects.get(name="Made"),
            endpoint=values["endpoint"],
            headers={"X-Key": "topsecret", "X-Other": "alsosecret"},
            auth={"type": "basic", "username": "inturn", "password": "hunter2"},
        )

    def test_never_shows_its_secrets(self, ann: Client, stored: Subscription) -> None:
        for address in (f"{stored.pk}/change/", ""):
            page = ann.get(f"{ROOT}/subscription/{address}").text
            for secret in ("topsecret", "alsosecret", "hunter2", stored.secrets.get().secret):
                assert secret not in page

    def test_saving_it_unchanged_keeps_every_secret(
        self, ann: Client, values: dict[str, Any], stored: Subscription
    ) -> None:
        shown = {
            "header_lines": f"X-Key: {MASKED}\nX-Other: {MASKED}",
            "auth_type": "basic",
            "username": "inturn",
        }
        ann.post(f"{ROOT}/subscription/{stored.pk}/change/", values | shown)
        assert not ConfigurationChange.objects.exists()
        kept = Subscription.objects.get()
        assert (kept.headers, kept.auth) == (stored.headers, stored.auth)

    def test_a_new_secret_is_logged_without_its_value(
        self, ann: Client, values: dict[str, Any], stored: Subscription
    ) -> None:
        given = {
            "header_lines": "X-Key: rotated",
            "auth_type": "basic",
            "username": "inturn",
            "password": "hunter3",
        }
        ann.post(f"{ROOT}/subscription/{stored.pk}/change/", values | given)
        kept = Subscription.objects.get()
        assert kept.headers == {"X-Key": "rotated"}
        assert kept.auth["password"] == "hunter3"
        change = ConfigurationChange.objects.get()
        assert change.after == {"headers": f"{MASKED}, new value", "auth": f"{MASKED}, new value"}

    def test_stays_with_its_subscriber_and_event_type(
        self, ann: Client, values: dict[str, Any], stored: Subscription
    ) -> None:
        moved = {"subscriber": factories.subscriber().pk, "event_type": factories.event_type().pk}
        ann.post(f"{ROOT}/subscription/{stored.pk}/change/", values | moved)
        kept = Subscription.objects.get()
        assert (kept.subscriber_id, kept.event_type_id) == (
            stored.subscriber_id,
            stored.event_type_id,
        )

    def test_a_name_in_use_is_refused_at_the_field(
        self, ann: Client, values: dict[str, Any], stored: Subscription
    ) -> None:
        factories.subscription("taken", subscriber=stored.subscriber)
        answer = ann.post(f"{ROOT}/subscription/{stored.pk}/change/", values | {"name": "taken"})
        assert errors(answer) == {
            "name": ["crm already has a subscription taken; choose another name."]
        }
        assert ann.post(f"{ROOT}/subscription/add/", values).status_code == 200
        assert Subscription.objects.filter(name="artifacts").count() == 1

    def test_rotating_shows_the_new_secret_while_the_old_one_signs_on(
        self, ann: Client, stored: Subscription
    ) -> None:
        old = stored.secrets.get()
        page = ann.post(f"{ROOT}/subscription/{stored.pk}/rotate/", follow=True).text
        new = stored.secrets.exclude(pk=old.pk).get()
        assert new.secret in page
        assert set(stored.secrets.valid(now=timezone.now())) == {old, new}
        old.refresh_from_db()
        assert old.expires_at is not None
        assert ConfigurationChange.objects.get().action == "rotated"

    def test_five_secrets_are_enough(self, ann: Client, stored: Subscription) -> None:
        for _ in range(4):
            ann.post(f"{ROOT}/subscription/{stored.pk}/rotate/")
        page = ann.post(f"{ROOT}/subscription/{stored.pk}/rotate/", follow=True).text
        assert "revoke an old one first" in page
        assert stored.secrets.count() == 5

    def test_with_deliveries_it_is_not_deleted(self, ann: Client, stored: Subscription) -> None:
        factories.delivery(subscription=stored)
        address = f"{ROOT}/subscription/{stored.pk}/delete/"
        assert "has deliveries" in ann.get(address).text
        ann.post(address, {"post": "yes"})
        assert Subscription.objects.filter(pk=stored.pk).exists()

    def test_every_change_is_logged_and_notifies_the_senders(
        self,
        ann: Client,
        values: dict[str, Any],
        monkeypatch: pytest.MonkeyPatch,
        django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    ) -> None:
        reported: list[str] = []
        monkeypatch.setattr(notifier, "notify_of_change", lambda: reported.append("changed"))
        ann.post(f"{ROOT}/subscription/add/", values)
        subscription = Subscription.objects.get()
        ann.post(
            f"{ROOT}/subscription/{subscription.pk}/change/", values | {"timeout_seconds": "10"}
        )
        ann.post(f"{ROOT}/subscription/{subscription.pk}/delete/", {"post": "yes"})
        changes = ConfigurationChange.objects.order_by("id")
        assert [(change.actor, change.action) for change in changes] == [
            ("ann", "created"),
            ("ann", "changed"),
            ("ann", "deleted"),
        ]
        assert (changes[1].before, changes[1].after) == (
            {"timeout_seconds": 30},
            {"timeout_seconds": 10},
        )
        assert reported == ["changed"] * 3


class TestOtherThings:
    def test_a_publishers_event_types_are_logged(self, ann: Client) -> None:
        publisher = factories.publisher("wiki")
        event_type = factories.event_type("Page.Create")
        ann.post(
            f"{ROOT}/publisher/{publisher.pk}/change/",
            {"name": "wiki", "event_types": [event_type.pk], **NO_ROWS},
        )
        change = ConfigurationChange.objects.get()
        assert change.after == {"all_event_types": False, "event_types": ["Page.Create"]}
        assert Publisher.objects.get().may_publish(event_type)

    def test_an_event_type_explains_the_end_of_its_ttl(self, ann: Client) -> None:
        page = ann.get(f"{ROOT}/eventtype/add/").text
        assert "Time to live, seconds" in page
        assert "Empty: never, except in a mailbox." in page

    @pytest.mark.parametrize(
        ("field", "wrong"),
        [
            ("json_schema", '{"type": "nonsense"}'),
            ("json_schema", '{"$ref": "https://elsewhere.example/schema"}'),
            ("sample", '"\\u0000"'),
            ("content_type", "nonsense"),
            ("ttl_seconds", "0"),
        ],
    )
    def test_an_event_type_is_checked_as_the_api_does(
        self, ann: Client, field: str, wrong: str
    ) -> None:
        values = {
            "name": "A",
            "kind": "TOPIC",
            "content_type": "application/json",
            "durability": "GUARANTEED",
            "errors_when": "DELIVERY",
        }
        assert field in errors(ann.post(f"{ROOT}/eventtype/add/", values | {field: wrong}))
        assert not EventType.objects.filter(name="A").exists()

    def test_a_new_password_is_logged_without_its_value(self, ann: Client) -> None:
        user = User.objects.create_user("ray")
        given = {"password1": "correct horse battery", "password2": "correct horse battery"}
        ann.post(f"/admin/auth/user/{user.pk}/password/", given)
        change = ConfigurationChange.objects.get()
        assert (change.object_name, change.after) == ("ray", {"password": f"{MASKED}, new value"})


class TestHeaderLines:
    def test_a_masked_value_keeps_the_stored_one(self) -> None:
        read = header_lines.parse_header_lines(
            f"X-Key: {MASKED}\n\nX-New: a: b", stored={"X-Key": "s", "X-Gone": "t"}
        )
        assert read == {"X-Key": "s", "X-New": "a: b"}

    @pytest.mark.parametrize("text", ["X-Key", ": value", "A: 1\na: 2"])
    def test_an_invalid_header_is_refused_with_its_line(self, text: str) -> None:
        with pytest.raises(HeaderError, match="Line"):
            header_lines.parse_header_lines(text, stored={})
